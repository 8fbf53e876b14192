"""What a run takes along when it goes on under a fresh history.

Why it exists: whoever may signal a run can fill its history, and the server ends a run whose
history is too long. So a run that has grown long continues as new, with its version, budgets,
refusals, evidence, the operation that it waits on and the deadlines of that wait unchanged. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import ConfigDict

from triage.contracts.approval import Review
from triage.contracts.base import RECORD, Contract
from triage.contracts.intent import Intent
from triage.contracts.payloads import Operation, RunContext
from triage.contracts.state import PendingView
from workflows.review_desk import Decided
from workflows.state import RunState


class HistoryFull(Exception):  # noqa: N818 - not an error: the run goes on under a fresh history
    """The server suggests that this run continues as new."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment that a wait runs into (ISO 8601, UTC), and the name that it is counted under."""

    __pydantic_config__ = RECORD

    name: str
    at: str


@dataclass(frozen=True, slots=True)
class Wait:
    """An operation that a person has been asked about.

    Attributes:
        intent: who wants it and why.
        operation: exactly what would be sent.
        view: what the person is shown.
        began: when the wait began (ISO 8601, UTC).
        deadlines: those that are still to come, in order; the last one is the wait's end.
        decided: the answer, if it came in the last moment.
        subjects: the stable ids of those who have signed an approval so far.
        by_timers: whether its deadlines pass by timers, as they do where its beginning is recorded.
    """

    __pydantic_config__ = RECORD

    intent: Intent
    operation: Operation
    view: PendingView
    began: str
    deadlines: tuple[Deadline, ...]
    decided: Decided | None = None
    subjects: tuple[str, ...] = ()
    by_timers: bool = False


class Carried(Contract):
    """Everything that a run knows, at the moment when it continues as new.

    Attributes:
        state: the run's state.
        context: the rules, model and tools that it was pinned to.
        began: when the run began (ISO 8601, UTC).
        waited_seconds: how long it has waited for people in waits that are over.
        wait: the wait that goes on.
        edited: which fields of the request an edit changed that has not been taken up yet; the
            request is then the edited one.
        unproven: signed reviews that have not been verified yet.
        correction: what was wrong with the answer before, if the model is to correct it next.
    """

    # Few runs continue as new, and how all of this is read takes as much room as seven that wait.
    model_config = ConfigDict(defer_build=True)

    state: RunState
    context: RunContext
    began: str
    waited_seconds: float
    wait: Wait | None = None
    edited: tuple[str, ...] | None = None
    unproven: tuple[Review, ...] = ()
    correction: str | None = None
