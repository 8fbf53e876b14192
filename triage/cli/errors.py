"""The one place where what went wrong becomes a sentence, a hint and an exit status.

Why it exists: a user's mistake never shows a traceback. Typed errors of every part are translated
here, by name, so that a command which needs no database does not load one to print its errors.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import ClassVar, Final

from triage.cli.output import say

INTERNAL_STATUS: Final = 70
DEBUG_HINT: Final = "set TRIAGE_DEBUG=1 to see the traceback"


class CliError(Exception):
    """Something that a command tells its user.

    Attributes:
        status: the command's exit status.
        hint: what to do about it; empty if there is nothing to say.
    """

    status: ClassVar[int] = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class RefusedError(CliError):
    """The answer is no, or a check failed."""


class InputError(CliError):
    """The user gave something that cannot be used."""

    status = 2


class UnreachableError(CliError):
    """A service does not answer."""

    status = 3


class StoppedError(CliError):
    """A signal ended the command."""

    def __init__(self, number: int) -> None:
        super().__init__("stopped")
        self.number = number


def report(error: BaseException, *, debug: bool) -> int:
    """Tell the user what went wrong, on stderr.

    Args:
        error: whatever a command raised.
        debug: whether to show the traceback too.

    Returns:
        The exit status.
    """
    if debug:
        say(*"".join(traceback.format_exception(error)).splitlines())
    while isinstance(error, BaseExceptionGroup):
        # Of things that ran side by side, the first that failed is the one to tell of.
        error = error.exceptions[0]
    if isinstance(error, StoppedError):
        return 128 + error.number
    told = translate(error)
    if told is None:
        say(
            f"error: unexpected {type(error).__name__}", *([] if debug else [f"hint: {DEBUG_HINT}"])
        )
        return INTERNAL_STATUS
    first, *more = str(told).splitlines() or [""]
    say(f"error: {first}", *(f"       {line}" for line in more))
    if told.hint:
        say(f"hint: {told.hint}")
    return told.status


def translate(error: BaseException) -> CliError | None:
    """Return what to tell the user about a typed error, or None if it is not one."""
    if isinstance(error, CliError):
        return error
    for kind in type(error).__mro__:
        tell = _KNOWN.get(f"{kind.__module__}.{kind.__qualname__}")
        if tell is not None:
            return tell(error)
    return None


def _told(kind: type[CliError], hint: str = "") -> Callable[[BaseException], CliError]:
    return lambda error: kind(str(error), hint)


def _rpc(error: BaseException) -> CliError:
    """Sort a Temporal error by its gRPC status."""
    status = getattr(getattr(error, "status", None), "name", "UNKNOWN")
    message = f"Temporal answered {status}: {getattr(error, 'message', '')}"
    if status in {"NOT_FOUND", "ALREADY_EXISTS", "FAILED_PRECONDITION"}:
        return RefusedError(message)
    if status == "INVALID_ARGUMENT":
        return InputError(message)
    return UnreachableError(message, _DOCTOR)


_DOCTOR: Final = "run 'triage doctor' to see what is reachable"
_KNOWN: Final[dict[str, Callable[[BaseException], CliError]]] = {
    "triage.contracts.base.ContractError": _told(InputError),
    "triage.settings_sources.SettingsError": _told(
        InputError, "correct the setting; 'triage doctor' shows all of them"
    ),
    "triage.connection.ServerUnreachable": _told(UnreachableError),
    "triage.embedded.PortBusy": _told(InputError),
    "triage.embedded.EmbeddedError": _told(UnreachableError, _DOCTOR),
    "triage.evaluation.configuration.ConfigurationError": _told(InputError),
    "triage.evaluation.fixture.FixtureError": _told(InputError),
    "triage.evaluation.investigate.RunFailed": _told(RefusedError),
    "triage.models.factory.UnknownModel": _told(InputError),
    "triage.policy.rules_findings.RulesFileError": _told(
        InputError, "'triage policy check' tells more of a rules file"
    ),
    "triage.signing.keys.SigningError": _told(InputError),
    "triage.storage.errors.StorageUnavailable": _told(UnreachableError, _DOCTOR),
    "triage.storage.errors.StorageMisconfigured": _told(UnreachableError, _DOCTOR),
    "triage.storage.errors.StorageError": _told(RefusedError),
    "triage.trackers.base.TrackerRefused": _told(RefusedError),
    "triage.trackers.undo_plan.CannotUndo": _told(RefusedError),
    "triage.trackers.base.TrackerError": _told(UnreachableError, _DOCTOR),
    "temporalio.service.RPCError": _rpc,
}
