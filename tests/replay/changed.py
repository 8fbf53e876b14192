"""Replays one history through several copies of the workflows, each changed in some way.

Run as a process of its own with the folders of the copies and then the history: it prints one
JSON line a copy, ``{"file", "ok", "error"}``.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

from triage.connection import run_async
from triage.replay import read_history, replay_failure

PACKAGE = "workflows"


def load(folder: str) -> list[type]:
    """Import the workflows of a folder, and forget those that were imported before."""
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]
    sys.path[0] = folder
    importlib.invalidate_caches()
    module = importlib.import_module(f"{PACKAGE}.issue_triage")
    assert Path(folder) in Path(str(module.__file__)).parents
    return [module.IssueTriage]


async def main() -> int:
    """Replay the last argument through each of the others."""
    *folders, history = sys.argv[1:]
    status = 0
    for folder in folders:
        error = await replay_failure(read_history(Path(history)), load(folder))
        answer = {"file": folder, "ok": error is None, "error": error}
        print(json.dumps(answer), flush=True)  # noqa: T201 - its answer
        status = status or int(error is not None)
    return status


if __name__ == "__main__":
    sys.exit(run_async(main()))
