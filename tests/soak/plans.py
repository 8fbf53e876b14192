"""What happens to each run, drawn from a seed before it starts. Pure.

A run's plan depends on the seed and its number alone. When its acts meet which step of the run is
up to the machine: that is what a soak is for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from random import Random
from typing import Final, TypeVar

from pydantic import JsonValue

from tests.workflow.decisions import Script, final, label
from triage.contracts.options import DEFAULT_TENANT

T = TypeVar("T")

REPOSITORY: Final = "soak"
LABELS: Final = ("bug", "component:api")
TENANTS: Final = (DEFAULT_TENANT, "other")
FIRST: Final = "op-a"
SECOND: Final = "op-b"
LAST_ACT_SECONDS: Final = 14.0


class Kind(StrEnum):
    """Who asks for which writes."""

    PROPOSED = "proposed"
    """The model reads and answers; the labels are proposed to a person."""
    TWICE = "twice"
    """The model asks for one label, then for another."""
    REPEATED = "repeated"
    """The model asks for the same write twice, under the same operation id."""
    AT_START = "at start"
    """Whoever starts the run has approved the write that the model asks for."""


class Act(StrEnum):
    """What people do to a run, or to its issue."""

    TERMINATE = "run terminated"
    CANCEL = "run cancelled"
    EDIT_REQUEST = "request edited"
    STARE = "request edited while it is looked at"
    EDIT_ISSUE = "issue edited"
    LOCK = "issue locked"
    DELETE = "issue deleted"
    ADD_LABEL = "label added by a person"
    REMOVE_LABEL = "label removed by a person"
    JUNK = "junk signals"
    EARLY = "approval guessed"
    LATE_REJECT = "rejection signalled"


class Anchor(StrEnum):
    """What an act's time is counted from."""

    START = "start"
    APPROVAL = "approval"


class Answer(StrEnum):
    """How a person answers a wait."""

    SIGNAL = "approved by signal"
    UPDATE = "approved by update"
    BOTH = "approved many times at once"
    REJECT = "rejected"
    SILENCE = "left to expire"


@dataclass(frozen=True, kw_only=True)
class TimedAct:
    """An act and its moment."""

    act: Act
    anchor: Anchor
    seconds: float


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """One run.

    Attributes:
        number: of the run and of its issue.
        kind: who asks for which writes.
        tenant: whose it is.
        window_seconds: how long a person may take.
        acts: what happens to it besides.
        answers: how a person answers its first waits; later ones are approved.
        continues: whether it is continued if it ends with a person.
        seed: of all that is drawn while it goes on.
    """

    number: int
    kind: Kind
    tenant: str
    window_seconds: int
    acts: tuple[TimedAct, ...]
    answers: tuple[Answer, ...]
    continues: bool
    seed: int

    def continuation(self) -> RunPlan:
        """Return the plan of the run that continues this one: nothing more happens to it."""
        return replace(
            self,
            kind=Kind.PROPOSED,
            window_seconds=LONG_WINDOW,
            acts=(),
            answers=(),
            continues=False,
            seed=self.seed + 1,
        )

    @property
    def issue(self) -> str:
        """The number of its issue."""
        return str(self.number)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels that it is about to put on."""
        return LABELS[:1] if self.kind in {Kind.REPEATED, Kind.AT_START} else LABELS

    def script(self) -> Script | None:
        """Return the model's answers; None if the rules answer."""
        end = final("mutation-receipt", labels=self.labels)
        match self.kind:
            case Kind.PROPOSED:
                return None
            case Kind.TWICE:
                asked = [self._label(LABELS[0], FIRST), self._label(LABELS[1], SECOND)]
            case Kind.REPEATED:
                asked = [self._label(LABELS[0], FIRST)] * 2
            case Kind.AT_START:
                asked = [self._label(LABELS[0], FIRST)]
        return [*asked, end, end, end]

    def approvals(self) -> dict[str, int]:
        """Return the approvals that the run starts with."""
        return {FIRST: 3} if self.kind is Kind.AT_START else {}

    def _label(self, name: str, operation_id: str) -> JsonValue:
        return label(name, operation_id=operation_id, issue=self.issue)


_KINDS: Final = {Kind.PROPOSED: 6, Kind.TWICE: 2, Kind.REPEATED: 1, Kind.AT_START: 2}
_ANSWERS: Final = {
    Answer.SIGNAL: 8,
    Answer.UPDATE: 5,
    Answer.BOTH: 5,
    Answer.REJECT: 1,
    Answer.SILENCE: 1,
}
_ACTS: Final = {
    Act.TERMINATE: 6,
    Act.CANCEL: 4,
    Act.EDIT_REQUEST: 4,
    Act.STARE: 3,
    Act.EDIT_ISSUE: 3,
    Act.LOCK: 1,
    Act.DELETE: 1,
    Act.ADD_LABEL: 3,
    Act.REMOVE_LABEL: 3,
    Act.JUNK: 3,
    Act.EARLY: 2,
    Act.LATE_REJECT: 2,
}
_ACTS_PER_RUN: Final = {0: 6, 1: 4, 2: 2}
LONG_WINDOW: Final = 600
CONTINUED: Final = 0.4
_WINDOWS: Final = {LONG_WINDOW: 8, 15: 2}
_SHORT_WINDOW: Final = 4
"""For runs that nobody answers, so that they end."""


def draw_run(seed: int, number: int) -> RunPlan:
    """Draw the plan of one run."""
    random = Random(f"{seed} run {number}")  # noqa: S311 - a test repeats it
    answers = tuple(_one_of(random, _ANSWERS) for _ in range(2))
    window = _SHORT_WINDOW if Answer.SILENCE in answers else _one_of(random, _WINDOWS)
    return RunPlan(
        number=number,
        kind=_one_of(random, _KINDS),
        tenant=random.choice(TENANTS),
        window_seconds=window,
        acts=tuple(_draw_act(random) for _ in range(_one_of(random, _ACTS_PER_RUN))),
        answers=answers,
        continues=random.random() < CONTINUED,
        seed=random.getrandbits(64),
    )


def _draw_act(random: Random) -> TimedAct:
    return TimedAct(
        act=_one_of(random, _ACTS),
        anchor=random.choice(tuple(Anchor)),
        # Most things happen within the first seconds, so most acts have to fall there, too.
        seconds=LAST_ACT_SECONDS * random.random() ** 2,
    )


def _one_of(random: Random, weights: dict[T, int]) -> T:
    return random.choices([*weights], [*weights.values()])[0]
