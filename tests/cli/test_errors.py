"""Checks the one place where errors become sentences and exit statuses."""

import pytest

from tests.cli.conftest import Triage
from triage.cli.errors import InputError, StoppedError, report
from triage.connection import NamespaceNotFound
from triage.contracts.base import ContractError
from triage.embedded import EmbeddedError, PortBusy
from triage.evaluation.fixture import FixtureError
from triage.evaluation.investigate import RunFailed
from triage.settings import SettingsError
from triage.storage.errors import StorageMisconfigured, StorageRejected, StorageUnavailable
from triage.trackers.base import TrackerRefused, TrackerTimeout

CASES: list[tuple[Exception, int]] = [
    (InputError("no"), 2),
    (ContractError("no"), 2),
    (SettingsError("TRIAGE_X: no", "TRIAGE_Y: no"), 2),
    (FixtureError("no"), 2),
    (RunFailed("no"), 1),
    (PortBusy(7233), 2),
    (EmbeddedError("no"), 3),
    (NamespaceNotFound("no"), 3),
    (StorageUnavailable("no"), 3),
    (StorageMisconfigured("no"), 3),
    (StorageRejected("no"), 1),
    (TrackerRefused("issue_exists", "no"), 1),
    (TrackerTimeout("no"), 3),
    (StoppedError(15), 143),
    (ExceptionGroup("side by side", [PortBusy(7233), ZeroDivisionError()]), 2),
    (ZeroDivisionError("secret text"), 70),
]


@pytest.mark.parametrize(("error", "status"), CASES, ids=lambda given: type(given).__name__)
def test_each_error_has_its_status(
    error: Exception, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Typed errors have the status of their kind and no traceback; nothing goes to stdout."""
    assert status == report(error, debug=False)
    told = capsys.readouterr()
    assert "" == told.out
    assert "Traceback" not in told.err


def test_the_unexpected_is_one_line_and_a_hint(capsys: pytest.CaptureFixture[str]) -> None:
    """A bug shows its type and how to learn more, and nothing of what it was about."""
    report(ZeroDivisionError("secret text"), debug=False)
    expected = ["error: unexpected ZeroDivisionError"]
    expected += ["hint: set TRIAGE_DEBUG=1 to see the traceback"]
    assert expected == capsys.readouterr().err.splitlines()


def test_debugging_shows_the_traceback(triage: Triage) -> None:
    """TRIAGE_DEBUG=1 and --debug add the traceback to the message."""
    by_variable = triage("show", "x", env={"TRIAGE_DEBUG": "1"})
    by_option = triage("--debug", "show", "x")
    for answer in (by_variable, by_option):
        assert 3 == answer.status
        assert "Traceback" in answer.err


def test_a_message_cannot_drive_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Control characters in an error's text are written out."""
    report(InputError("\x1b[2Jgone"), debug=False)
    assert "error: \\u{1b}[2Jgone\n" == capsys.readouterr().err
