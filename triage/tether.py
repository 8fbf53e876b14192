"""Runs a program that cannot outlive the process that started it.

Why it exists: a parent that is killed cannot clean up. On Linux the kernel kills the program with
its parent; elsewhere this process stays between the two and watches. It is a program of its own,
so that nothing runs between a fork and an exec in a process that has threads.

Usage: ``python -I -S tether.py PARENT_PID PROGRAM [ARGUMENT ...]``, with PROGRAM as a full path.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from types import FrameType
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_LOOK_SECONDS: Final = 0.2


def become(parent: int, command: list[str]) -> None:
    """Turn this process into `command`, tied to the thread that started it (Linux only)."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() == parent:
        os.execv(command[0], command)  # noqa: S606 - the parent's own command, without a shell


def watch(parent: int, command: list[str]) -> int:
    """Run `command` while `parent` lives, and return its exit status."""
    with subprocess.Popen(command) as child:  # noqa: S603 - the parent's own command

        def pass_on(number: int, _frame: FrameType | None) -> None:
            child.send_signal(number)

        signal.signal(signal.SIGTERM, pass_on)
        while True:
            try:
                return child.wait(_LOOK_SECONDS)
            except subprocess.TimeoutExpired:
                if os.getppid() != parent:
                    child.kill()


def main() -> int:
    """Run the program that the arguments name."""
    parent, command = int(sys.argv[1]), sys.argv[2:]
    if os.uname().sysname == "Linux":
        become(parent, command)
        return 1
    status = watch(parent, command)
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main())
