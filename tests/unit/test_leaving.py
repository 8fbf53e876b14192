"""Programs end when they should, whatever a database driver waits for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.clock import PATIENCE_SECONDS

STUCK = """
import asyncio, sys
from triage import leaving
from triage.{module} import {run}
from triage.storage import engine
engine.CLOSE_SECONDS, leaving.ROUND_SECONDS = 0.2, 0.5
async def stubborn():
    # As a driver that waits in its own clean-up: it takes two cancellations to give up.
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        await asyncio.Event().wait()
async def main():
    store = await engine.Store.open(sys.argv[1])
    store._engine.dispose = stubborn
    stuck = [asyncio.create_task(stubborn()) for _ in range(2)]
    await asyncio.sleep(0)
    try:
        print("ready", flush=True)
        {body}
    finally:
        await store.close()
        print("closed", flush=True)
{run}(main())
"""
DEAF = """
import sys, threading
from triage.leaving import end_within
end_within(0.2, "worker")
threading.Event().wait()
"""


@pytest.mark.parametrize(
    ("module", "run"), [("connection", "run_async"), ("cli.running", "run")], ids=["worker", "cli"]
)
def test_a_connection_that_does_not_close_keeps_no_program(
    tmp_path: Path, module: str, run: str
) -> None:
    """A driver whose close never comes back delays the end of a program by seconds only."""
    code = STUCK.format(module=module, run=run, body="pass")
    command = [sys.executable, "-c", code, f"sqlite:///{tmp_path}/triage.db"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )
    assert (0, "ready\nclosed\n") == (done.returncode, done.stdout), done.stderr


def test_a_connection_that_does_not_close_keeps_no_worker_from_sigterm(tmp_path: Path) -> None:
    """The same holds for a program that is told to stop."""
    code = STUCK.format(module="connection", run="run_async", body="await asyncio.Event().wait()")
    with subprocess.Popen(
        [sys.executable, "-c", code, f"sqlite:///{tmp_path}/triage.db"],
        stdout=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdout
        assert "ready\n" == program.stdout.readline()
        program.terminate()
        assert "closed\n" == program.stdout.read()
        assert 143 == program.wait(PATIENCE_SECONDS)


def test_a_program_whose_end_hangs_is_ended() -> None:
    """Where clean-up never comes to an end the process does, and says so."""
    done = subprocess.run(
        [sys.executable, "-c", DEAF],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert (70, "worker: did not end in 0.2 s: ends now\n") == (done.returncode, done.stderr)
