"""``python -m benchmarks``: what a triage costs against the smallest durable workflow.

Exits with 1 if the measurement does not count, with 2 if it could not be made, or saved, to its
end, and as every program does if a signal ended it. What was measured by then is shown.
"""

from __future__ import annotations

import shlex
import signal
import sys
import traceback
from collections.abc import Sequence
from typing import Final

from benchmarks.arms import WrongEnd
from benchmarks.checks import Refused, check
from benchmarks.driver import play
from benchmarks.peers.loading import NoPeer
from benchmarks.plan import read_plan
from benchmarks.replay import ReplayFailed
from benchmarks.results import Results
from benchmarks.room import NoSpace, first_fault
from benchmarks.saving import show
from tests.postgres_server import NoPostgresError
from triage.cli.errors import StoppedError
from triage.cli.running import leave, run
from triage.embedded import EmbeddedError

_NOT_MADE: Final = (EmbeddedError, NoPeer, NoPostgresError, ReplayFailed, TimeoutError, WrongEnd)
"""Why a measurement could not be made."""
_NOT_MADE_STATUS: Final = 2
_SIGNALLED: Final = 128


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure as the command line says."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    plan = read_plan(given)
    command = shlex.join(["python", "-m", "benchmarks", *given])
    results, status = Results({}), 0
    try:
        check(plan)
        run(play(plan, command, results))
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the boundary: every error ends here
        status, results.partial = _told(error)
        _say(results.partial)
        if not results.anything:
            return status
    for problem in show(plan, results):
        _say(problem)
        status = status or _NOT_MADE_STATUS
    return status or int(results.counts is False)


def _told(error: BaseException) -> tuple[int, str]:
    """Return the exit status that an error has, and what to say of it."""
    match first_fault(error):
        case KeyboardInterrupt():
            return _SIGNALLED + signal.SIGINT, "interrupted"
        case StoppedError(number=signal.SIGINT):
            return _SIGNALLED + signal.SIGINT, "interrupted"
        case StoppedError(number=number):
            return _SIGNALLED + number, f"ended by {signal.Signals(number).name}"
        case Refused() | NoSpace() as known:
            return _NOT_MADE_STATUS, str(known)
        case found:
            if not isinstance(found, _NOT_MADE):
                traceback.print_exception(found)
            return _NOT_MADE_STATUS, f"{type(found).__name__}: {found}"


def _say(text: str) -> None:
    print(f"bench: {text}", file=sys.stderr, flush=True)  # noqa: T201 - for people


if __name__ == "__main__":
    leave(main())
