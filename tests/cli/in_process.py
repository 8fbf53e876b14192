"""Runs a command inside the test's own process: in a moment, where no server is needed."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.cli.conftest import Answer
from triage.cli.main import _status
from triage.cli.output import prepare_streams


class Typed:
    """Types commands in a folder of its own, where nothing is set but what a test sets."""

    def __init__(
        self, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.home = home
        self._monkeypatch = monkeypatch
        self._capsys = capsys
        for name in [name for name in os.environ if name.startswith(("TRIAGE_", "TEMPORAL_"))]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("TRIAGE_HOME", str(home))
        monkeypatch.chdir(home)

    def __call__(
        self, *arguments: str | Path, stdin: str = "", env: Mapping[str, str] | None = None
    ) -> Answer:
        """Run one command to its end."""
        with self._monkeypatch.context() as patched:
            patched.setattr("sys.stdin", io.StringIO(stdin))
            for name, value in (env or {}).items():
                patched.setenv(name, value)
            prepare_streams()
            status = _status([str(argument) for argument in arguments])
        found = self._capsys.readouterr()
        return Answer(status, found.out, found.err)
