"""Replays in a process of their own, with a time limit: a broken history may hang the SDK."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
LIMIT_SECONDS: Final = 300.0

Answer = dict[str, Any]


def replay(files: Iterable[Path]) -> dict[str, Answer]:
    """Replay files as production does, with ``python -m worker --replay``.

    Returns:
        The answer to each file, by its name without the suffix.
    """
    return _answers(["-P", "-m", "worker", "--replay", *map(str, files)])


def run_module(module: str, files: Iterable[Path]) -> dict[str, Answer]:
    """Run a module of these tests on files; it answers like ``worker --replay``."""
    return _answers(["-m", module, *map(str, files)])


def run_code(code: str) -> dict[str, Answer]:
    """Run code that answers like ``worker --replay``."""
    return _answers(["-c", code])


def _answers(arguments: list[str]) -> dict[str, Answer]:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    assert done.returncode in {0, 1}, f"exit status {done.returncode}: {done.stderr}"
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == int(any(not answer["ok"] for answer in answers))
    return {Path(answer["file"]).stem: answer for answer in answers}
