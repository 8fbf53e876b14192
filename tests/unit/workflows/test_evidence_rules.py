"""Pattern 01's permission checks: how an investigation goes on or ends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.contracts.strategies import PROPERTY
from triage.contracts.incident import LoopDecision, LoopStatus
from workflows.evidence_rules import stop_reason

ALLOWED = ("latency", "errors")
TABLE: list[tuple[str, str | None, tuple[str, ...], LoopStatus | None]] = [
    ("read", "latency", (), None),
    ("read", "errors", ("latency",), None),
    ("read", "latency", ("latency",), LoopStatus.REPEATED),
    ("read", "latency", ("errors", "latency"), LoopStatus.REPEATED),
    ("read", "secrets", (), LoopStatus.DENIED),
    ("read", "Latency", (), LoopStatus.DENIED),
    ("read", "latency ", (), LoopStatus.DENIED),
    ("read", "", (), LoopStatus.DENIED),
    ("read", None, (), LoopStatus.DENIED),
    ("read", None, ("latency",), LoopStatus.DENIED),
    ("READ", "latency", (), LoopStatus.DENIED),
    ("write", "latency", (), LoopStatus.DENIED),
    ("write", "latency", ("latency",), LoopStatus.DENIED),
    ("", "latency", (), LoopStatus.DENIED),
    ("Finish", None, ("latency",), LoopStatus.DENIED),
    ("finish", None, (), LoopStatus.UNSUPPORTED),
    ("finish", "latency", (), LoopStatus.UNSUPPORTED),
    ("finish", None, ("latency",), LoopStatus.COMPLETE),
    ("finish", "anything", ("latency", "errors"), LoopStatus.COMPLETE),
]


@pytest.mark.parametrize(("action", "argument", "observed", "expected"), TABLE)
def test_decision_table(
    action: str, argument: str | None, observed: tuple[str, ...], expected: LoopStatus | None
) -> None:
    """A new read of an allowed reference goes on; all else ends the loop in a named way."""
    decision = LoopDecision(action=action, argument=argument)
    assert expected is stop_reason(decision, ALLOWED, observed)


@pytest.mark.parametrize("observed", [(), ("latency",)])
def test_what_is_no_decision_is_invalid(observed: tuple[str, ...]) -> None:
    """Without a decision the loop ends as invalid, whatever was read."""
    assert stop_reason(None, ALLOWED, observed) is LoopStatus.INVALID


def test_nothing_may_be_read_where_nothing_is_allowed() -> None:
    """An empty inventory denies every read."""
    decision = LoopDecision(action="read", argument="latency")
    assert stop_reason(decision, (), ()) is LoopStatus.DENIED


_names = st.sampled_from(("latency", "errors", "secrets", "", None))


@PROPERTY
@given(st.sampled_from(("read", "finish", "write", "")), _names, st.sets(st.sampled_from(ALLOWED)))
def test_only_a_new_read_of_an_allowed_reference_goes_on(
    action: str, argument: str | None, observed: set[str]
) -> None:
    """The loop reads exactly when the action is read, the reference allowed, and not yet seen."""
    goes_on = action == "read" and argument in ALLOWED and argument not in observed
    decision = LoopDecision(action=action, argument=argument)
    assert goes_on is (stop_reason(decision, ALLOWED, observed) is None)
