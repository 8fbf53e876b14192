"""Where the `triage` program begins: Ctrl-C ends it in order from its first moment.

Why it exists: loading the commands takes a part of a second, in which nothing of ours is there yet
to take a signal. So this module loads nothing of ours before it has said what Ctrl-C does.
"""

from __future__ import annotations

import os
import signal

STOPPED_STATUS = 128 + signal.SIGINT


def main() -> None:
    """Load the command line, and run it."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        # Nothing is begun yet that would have to be cleaned up.
        signal.signal(signal.SIGINT, lambda *_: os._exit(STOPPED_STATUS))
    from triage.cli import main as commands  # noqa: PLC0415 - see above

    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, before)
    commands.main()
