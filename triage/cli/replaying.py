"""`triage replay`: holds recorded histories against today's code, in a process of its own.

Why it exists: a history that does not fit can hang or crash the SDK. So the replay runs in a child,
each history has its own time, and one that takes the child down does not hide the others.
"""

from __future__ import annotations

import asyncio
import json
import stat
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

import typer

from triage.cli.errors import InputError
from triage.cli.output import Format, put, put_json, say
from triage.cli.running import run

START_SECONDS: Final = 30.0
"""Time to load the code, before the first history's own time begins."""

MAX_LINE_BYTES: Final = 16_777_216


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one history; `error` is None if it fits."""

    file: str
    error: str | None


def replay(files: Sequence[Path], timeout_seconds: float, format_: Format) -> None:
    """Replay `files` and say of each whether it fits.

    Raises:
        InputError: a file does not exist.
        typer.Exit: with 1, when a history does not fit.
    """
    names = [str(_existing(file)) for file in files]
    outcomes = run(_replay_all(names, timeout_seconds, tell=format_ is Format.TEXT))
    if format_ is Format.JSON:
        put_json([{"file": o.file, "ok": o.error is None, "error": o.error} for o in outcomes])
    failed = sum(outcome.error is not None for outcome in outcomes)
    say(f"{len(outcomes) - failed} of {len(outcomes)} histories replay")
    if failed:
        raise typer.Exit(1)


def _existing(file: Path) -> Path:
    try:
        mode = file.stat().st_mode
    except (OSError, ValueError):
        raise InputError(f"{file}: there is no such file, or it may not be looked at") from None
    if stat.S_ISDIR(mode):
        raise InputError(f"{file}: this is a folder: name the histories in it, one by one")
    if not stat.S_ISREG(mode):
        raise InputError(f"{file}: this is no regular file: a history is one JSON file")
    return file.absolute()


async def _replay_all(names: list[str], timeout_seconds: float, *, tell: bool) -> list[Outcome]:
    outcomes: list[Outcome] = []
    while len(outcomes) < len(names):
        remaining = names[len(outcomes) :]
        async for outcome in _replay_some(remaining, timeout_seconds):
            outcomes.append(outcome)
            if tell:
                put(_line(outcome))
    return outcomes


async def _replay_some(names: list[str], timeout_seconds: float) -> AsyncIterator[Outcome]:
    """Replay until a child is done or dies; the history it died on is an outcome, too."""
    with tempfile.TemporaryFile() as complaints:
        child = await asyncio.create_subprocess_exec(
            *worker_command("--replay", *names),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=complaints,
            limit=MAX_LINE_BYTES,
            start_new_session=True,
        )
        try:
            allowance = START_SECONDS + timeout_seconds
            for name in names:
                outcome = await _next_outcome(child, name, allowance)
                yield outcome or Outcome(name, _last_words(complaints))
                if outcome is None or outcome.error == _too_slow(allowance):
                    return
                allowance = timeout_seconds
        finally:
            if child.returncode is None:
                child.kill()
            await child.wait()


async def _next_outcome(
    child: asyncio.subprocess.Process, name: str, allowance: float
) -> Outcome | None:
    if child.stdout is None:
        return None
    try:
        line = await asyncio.wait_for(child.stdout.readline(), allowance)
    except TimeoutError:
        return Outcome(name, _too_slow(allowance))
    try:
        document = json.loads(line)
    except ValueError:
        return None
    return Outcome(name, None if document["ok"] else str(document["error"]))


def _last_words(complaints: IO[bytes]) -> str:
    """Say how a child ended that gave no answer, with the last line that it wrote."""
    complaints.seek(0)
    lines = complaints.read().decode(errors="replace").split("\n")
    last = next((line for line in reversed(lines) if line.strip()), "")
    return f"the replay ended without an answer: {last}" if last else "the replay ended silently"


def _too_slow(allowance: float) -> str:
    return f"not done after {allowance:.0f} seconds"


def _line(outcome: Outcome) -> str:
    if outcome.error is None:
        return f"ok      {outcome.file}"
    first = outcome.error.splitlines()[0] if outcome.error else "no reason was given"
    return f"failed  {outcome.file}: {first}"


def worker_command(*arguments: str) -> list[str]:
    """Return the command that runs the installed worker, wherever this process stands."""
    # -P: a worker.py in the current folder is not the worker.
    return [sys.executable, "-P", "-m", "worker", *arguments]
