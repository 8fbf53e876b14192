"""Child processes: what is read of them, how they stop, and that they never outlive us."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.clock import PATIENCE_SECONDS
from triage.processes import ChildProcess

STUBBORN = """
import signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("deaf", flush=True)
time.sleep(600)
"""
PARENT = """
import asyncio, os, signal, sys
from triage.processes import ChildProcess
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup it would be ignored
async def main():
    child = await ChildProcess.start([sys.executable, "-c", sys.argv[1]], environment=os.environ)
    assert await child.wait_for_line("deaf")
    print(child.pid, flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""
WATCHER = """
import os, sys
from triage.tether import watch
sys.exit(watch(os.getppid(), sys.argv[1:]))
"""


def ended(pid_file: int, seconds: float = 20) -> bool:
    """Wait until the process behind `pid_file` has ended, and tell whether it did."""
    return bool(select.select([pid_file], [], [], seconds)[0])


async def start(code: str, *arguments: str, log: Path | None = None) -> ChildProcess:
    """Start a small program as a child."""
    command = [sys.executable, "-c", code, *arguments]
    return await ChildProcess.start(command, environment=os.environ, log=log)


async def test_lines_are_kept_and_logged(tmp_path: Path) -> None:
    """The last lines are at hand, without what cannot be seen; the log has every byte."""
    log = tmp_path / "log"
    child = await start(r"print('one'); print('two\x1b[31m\u202e', flush=True); exit(3)", log=log)
    assert await child.wait_for_line("two")
    assert await child.wait() == 3
    assert child.last_lines() == "one\ntwo[31m"
    assert child.last_lines(1) == "two[31m"
    assert log.read_bytes() == "one\ntwo\x1b[31m\u202e\n".encode()


async def test_endless_line_does_not_block() -> None:
    """A child that writes a megabyte without a line break is read to its end."""
    child = await start("print('x' * 1_000_000); print('last')")
    assert await child.wait_for_line("last")
    assert await child.wait() == 0


async def test_line_that_never_comes() -> None:
    """Waiting for a line ends when the child does."""
    child = await start("print('something else')")
    assert not await child.wait_for_line("ready")
    assert await child.wait() == 0


async def test_orderly_stop() -> None:
    """A child that heeds SIGTERM is not killed."""
    child = await start("print('up', flush=True); import time; time.sleep(600)")
    assert await child.wait_for_line("up")
    assert await child.stop(20) == -signal.SIGTERM
    assert await child.stop(20) == -signal.SIGTERM


async def test_deaf_child_is_killed() -> None:
    """A child that ignores SIGTERM is killed when its grace is over."""
    child = await start(STUBBORN)
    assert await child.wait_for_line("deaf")
    assert await child.stop(0.1) == -signal.SIGKILL


async def test_log_that_cannot_be_opened(tmp_path: Path) -> None:
    """Where the log cannot be written nothing is started."""
    with pytest.raises(FileNotFoundError):
        await start("print()", log=tmp_path / "gone" / "log")


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="watches another's child by a Linux call")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_child_ends_with_its_parent(number: signal.Signals) -> None:
    """A parent that dies of any signal takes even a deaf child with it."""
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, STUBBORN], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout
        child = os.pidfd_open(int(parent.stdout.readline()))
        parent.send_signal(number)
    assert ended(child)
    os.close(child)


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="watches another's child by a Linux call")
def test_watcher_ends_a_child_where_the_kernel_does_not() -> None:
    """Without the kernel's help a process in between sees the parent die and kills the child."""
    code = f"import os; print(os.getpid(), flush=True)\n{STUBBORN}"
    parent_code = "import subprocess, sys; subprocess.run([sys.executable, '-c', *sys.argv[1:]])"
    with subprocess.Popen(
        [sys.executable, "-c", parent_code, WATCHER, sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout
        child = os.pidfd_open(int(parent.stdout.readline()))
        parent.kill()
        assert ended(child)
    os.close(child)


def test_watcher_passes_on_signal_and_status() -> None:
    """The process in between hands SIGTERM on, and returns the child's status."""
    code = "print('up', flush=True); import time; time.sleep(600)"
    with subprocess.Popen(
        [sys.executable, "-c", WATCHER, sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        text=True,
    ) as watcher:
        assert watcher.stdout
        assert watcher.stdout.readline() == "up\n"
        watcher.terminate()
        started = time.monotonic()
    assert time.monotonic() - started < PATIENCE_SECONDS
    assert watcher.returncode == 256 - signal.SIGTERM
