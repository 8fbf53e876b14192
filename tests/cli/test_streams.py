"""Standard output that is closed or full: one sentence, never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_TRIAGE = "from triage.cli.main import main; main()"


def _typed(redirection: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command whose standard output goes elsewhere."""
    typed = [sys.executable, "-c", _TRIAGE, *arguments]
    return subprocess.run(
        ["/bin/sh", "-c", f'"$@" {redirection}', "sh", *typed],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "TRIAGE_HOME": "/nonexistent"},
    )


def test_a_closed_output_is_a_sink() -> None:
    """Who closes it does not want the answer, and gets the status all the same."""
    done = _typed(">&-", "schema")
    assert (0, "") == (done.returncode, done.stderr)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is full")
@pytest.mark.parametrize("arguments", [("schema",), ("--help",)], ids=["answer", "help"])
def test_a_full_output_is_told_in_a_sentence(arguments: tuple[str, ...]) -> None:
    """The answer is lost, so the status says so, and no traceback is shown."""
    done = _typed("> /dev/full", *arguments)
    assert (3, "error: the answer cannot be written: No space left on device") == (
        done.returncode,
        done.stderr.splitlines()[0],
    )
