"""Runs the real command in processes of its own, each with a folder and settings of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import pytest

TRIAGE: Final = str(Path(sysconfig.get_path("scripts")) / "triage")
NOWHERE: Final = "127.0.0.1:1"
"""An address at which nothing listens."""


@dataclass(frozen=True)
class Answer:
    """What a command did."""

    status: int
    out: str
    err: str

    def json(self) -> Any:  # noqa: ANN401 - any JSON value
        """Return the one JSON document on stdout; anything beside it is an error."""
        return json.loads(self.out)


class Triage(Protocol):
    """Runs ``triage`` with arguments, to its end."""

    def __call__(
        self,
        *arguments: str | Path,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        timeout: float = 60,
    ) -> Answer:
        """Return what the command did."""
        ...


def clean_environment(home: Path, **more: str) -> dict[str, str]:
    """Return an environment in which only `more` configures anything of ours or Temporal's."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("TRIAGE_", "TEMPORAL_"))
    }
    return {**kept, "HOME": str(home), "TRIAGE_HOME": str(home), **more}


def run_triage(
    *arguments: str | Path, env: Mapping[str, str], stdin: bytes = b"", timeout: float = 60
) -> Answer:
    """Run one command to its end."""
    done = subprocess.run(
        [TRIAGE, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        env=dict(env),
        cwd=env["HOME"],
        timeout=timeout,
        check=False,
    )
    return Answer(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture
def triage(tmp_path: Path) -> Triage:
    """Run commands where no server is."""
    base = clean_environment(tmp_path, TEMPORAL_ADDRESS=NOWHERE)

    def call(
        *arguments: str | Path,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        timeout: float = 60,
    ) -> Answer:
        return run_triage(*arguments, stdin=stdin, env={**base, **(env or {})}, timeout=timeout)

    return call
