"""The cells of the crash matrix: every place, killed and frozen, on both databases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import product
from typing import Final

from tests.crash.places import COMMAND, Action, Place
from tests.crash.plays import FIRST_BYTE, WAITING
from tests.crash.scenarios import (
    BOUNDED,
    EDITED,
    LIMITED,
    LOST,
    NOTHING,
    PLAIN,
    SIGNED,
    Scenario,
)
from triage.contracts.names import (
    ACTIVITY_APPLY_LABELS,
    ACTIVITY_CHOOSE_ACTION,
    ACTIVITY_DECIDE,
    ACTIVITY_LOOKUP_OWNER,
    ACTIVITY_OPEN_INCIDENT,
    ACTIVITY_PIN_RUN_CONTEXT,
    ACTIVITY_PREVIEW_OPERATION,
    ACTIVITY_READ_REFERENCE,
    ACTIVITY_VERIFY_APPROVAL,
)
from triage.faults import Point


class Database(StrEnum):
    """Where the store is."""

    SQLITE = "sqlite"
    POSTGRESQL = "postgresql"


def _around(activity: str, *inner: str, turn: int = 1) -> list[Place]:
    """List the places of one activity, from the task that asks for it to its end."""
    return [
        Place(COMMAND, activity, turn),
        Place(Point.ACTIVITY_BEGIN, activity, turn),
        *(Place(point, turn=turn) for point in inner),
        Place(Point.ACTIVITY_END, activity, turn),
    ]


def _move(name: str, state: str, turn: int = 1) -> list[Place]:
    """List the places of one move of the ledger; its entry is the `turn`-th of that state."""
    return [
        Place(Point.LEDGER_BEFORE, name),
        Place(Point.AUDIT_BEFORE_COMMIT, f"operation.{state}", turn),
        Place(Point.LEDGER_AFTER, name),
    ]


ASKING: Final = (Point.DECIDE_BEFORE_MODEL, Point.DECIDE_AFTER_MODEL)
DECIDING: Final[Sequence[Place]] = (
    *_around(ACTIVITY_PIN_RUN_CONTEXT, Point.PIN_AFTER_ADMIT, Point.PIN_AFTER_STORE, *ASKING),
    *_around(
        ACTIVITY_LOOKUP_OWNER, Point.READ_BEFORE_TOOL, Point.READ_BEFORE_KEEP, Point.READ_AFTER_KEEP
    ),
    *(Place(point, turn=2) for point in ASKING),
    *_around(ACTIVITY_PREVIEW_OPERATION, Point.PREVIEW_BEFORE_LOOK, Point.PREVIEW_AFTER_LOOK),
    WAITING,
)
WRITING: Final[Sequence[Place]] = (
    Place(COMMAND, ACTIVITY_APPLY_LABELS),
    Place(Point.ACTIVITY_BEGIN, ACTIVITY_APPLY_LABELS),
    *_move("reserve", "reserved"),
    *_move("dispatch", "dispatched"),
    Place(Point.WRITE_BEFORE_SEND),
    Place("wire.connected"),
    FIRST_BYTE,
    Place("wire.sent"),
    Place("wire.answered"),
    Place(Point.WRITE_AFTER_SEND),
    *_move("settle", "applied"),
    Place(Point.ACTIVITY_END, ACTIVITY_APPLY_LABELS),
)
VERIFYING: Final[Sequence[Place]] = (
    *_around(ACTIVITY_VERIFY_APPROVAL, Point.VERIFY_BEFORE_RECORD, Point.VERIFY_AFTER_RECORD),
    Place(Point.AUDIT_BEFORE_COMMIT, "approval.recorded"),
)
BRANCHES: Final[Sequence[tuple[Scenario, Sequence[Place]]]] = (
    (LOST, (*_move("mark_unknown", "unknown"), *_move("reconcile", "reconciled_applied"))),
    (NOTHING, _move("reconcile", "reconciled_absent")),
    (LIMITED, _move("release", "reserved", turn=2)),
    (EDITED, _move("cancel", "cancelled")),
    (SIGNED, VERIFYING),
    (BOUNDED, (*_around(ACTIVITY_DECIDE, *ASKING), *_around(ACTIVITY_DECIDE, *ASKING, turn=2))),
)


LOOPING: Final[Sequence[Place]] = (
    *_around(ACTIVITY_OPEN_INCIDENT),
    *_around(ACTIVITY_CHOOSE_ACTION),
    *_around(ACTIVITY_READ_REFERENCE),
    *_around(ACTIVITY_CHOOSE_ACTION, turn=2),
)
SWEEPING: Final[Sequence[Place]] = (
    Place(Point.SWEEP_BEGIN),
    Place(Point.SWEEP_BEFORE_MOVE),
    *_move("mark_unknown", "unknown"),
    Place(Point.SWEEP_BEFORE_READ),
    Place(Point.READ_BACK_BEFORE_RECORD),
    *_move("reconcile", "reconciled_applied"),
    Place(Point.SWEEP_END),
)
STARTING: Final[Sequence[Place]] = (Place(Point.START_BEFORE_RUN), Place(Point.START_AFTER_RUN))


DELIVERING: Final[Sequence[Place]] = (
    Place(Point.ADMIT_AFTER_COMMIT),
    Place(Point.OUTBOX_BEFORE_SEND),
    Place(Point.OUTBOX_AFTER_SEND),
)


class Kind(StrEnum):
    """What is disturbed."""

    RUN = "run"
    LOOP = "loop"
    LEFT = "left"
    """The sweeper, which settles the write of a run that was terminated."""
    START = "start"
    DELIVERY = "delivery"


class Stage(StrEnum):
    """Which part of the matrix a cell belongs to."""

    DECIDING = "deciding"
    WRITING = "writing"
    BRANCHING = "branching"
    LOOPING = "looping"
    SWEEPING = "sweeping"
    STARTING = "starting"
    DELIVERING = "delivering"


@dataclass(frozen=True, kw_only=True)
class Spec:
    """One cell."""

    stage: Stage
    kind: Kind
    scenario: Scenario = field(hash=False)
    place: Place
    action: Action
    database: Database

    def __str__(self) -> str:
        other = [self.kind] if self.kind is not Kind.RUN else []
        different = [self.scenario.name] if self.scenario is not PLAIN else []
        about = "".join(f"{word}: " for word in (*other, *different))
        return f"{about}{self.action} {self.place} {self.database}"

    @property
    def baseline(self) -> Kind:
        """Whose undisturbed run it must be equal to."""
        return Kind.RUN if self.kind is Kind.START else self.kind

    @property
    def waits_long(self) -> bool:
        """Whether PostgreSQL has to end the transaction of a frozen process, after 30 seconds."""
        inside = self.place.point == Point.AUDIT_BEFORE_COMMIT
        return inside and self.action is Action.FREEZE and self.database is Database.POSTGRESQL

    @property
    def may_repeat(self) -> bool:
        """Whether a request that nothing can call back goes out after the run has ended."""
        return self.action is Action.FREEZE and self.place == FIRST_BYTE

    @property
    def expected(self) -> str:
        """What must be seen, in short."""
        if self.kind is Kind.LOOP:
            return "the same reads, once, and the same end"
        if self.kind is Kind.DELIVERY:
            return "one run, which ends as if its delivery had come once"
        if self.scenario is EDITED:
            return "given up as if undisturbed, nothing written"
        if self.kind is Kind.LEFT:
            return "settled without its run: one write, one receipt, one audit entry"
        if self.may_repeat:
            return "one write; the late request changes nothing, and is in the log"
        frozen_inside = self.action is Action.FREEZE and self.place.point.startswith("audit.")
        if frozen_inside and self.database is Database.SQLITE:
            return "all wait for the lock; once thawed, one write, one receipt, one entry"
        return "one write, one receipt, one audit entry; all else as undisturbed"


def every_cell() -> Iterator[Spec]:
    """List the whole matrix."""
    for stage in Stage:
        yield from _cells(stage)


WAYS: Final[Sequence[tuple[Action, Database]]] = (
    (Action.KILL, Database.SQLITE),
    (Action.FREEZE, Database.POSTGRESQL),
    (Action.KILL, Database.POSTGRESQL),
    (Action.FREEZE, Database.SQLITE),
)
"""How a place is disturbed; the first two meet both actions and both databases."""

STRIDE: Final[Mapping[Stage, int]] = {
    Stage.DECIDING: 5,
    Stage.WRITING: 3,
    Stage.BRANCHING: 3,
    Stage.LOOPING: 6,
    Stage.SWEEPING: 5,
    Stage.STARTING: 2,
    Stage.DELIVERING: 3,
}
"""Of how many places the part of the matrix that every test run plays has one."""

ALWAYS: Final = frozenset(
    {
        Place(Point.LEDGER_AFTER, "dispatch"),
        Place(Point.WRITE_BEFORE_SEND),
        Place(Point.WRITE_AFTER_SEND),
    }
)
"""Places at which an effect is possible and nothing is known of it: both killed and frozen."""


def pairwise() -> Iterator[Spec]:
    """List a part of the matrix in which every stage meets actions and databases in turn.

    Its places are some of a stage's, each disturbed in one way, and `ALWAYS`, in two.
    """
    for stage in Stage:
        cells = [*_cells(stage)]
        groups = [cells[n : n + len(WAYS)] for n in range(0, len(cells), len(WAYS))]
        for number, group in enumerate(groups):
            if group[0].place in ALWAYS:
                yield from group[:2]
            elif number % STRIDE[stage] == 0:
                turn = number // STRIDE[stage] % len(group)
                turned = group[turn:] + group[:turn]
                yield next(cell for cell in turned if not cell.waits_long)


def _cells(stage: Stage) -> Iterator[Spec]:
    kind = _KINDS.get(stage, Kind.RUN)
    for scenario, places in _PLACES[stage]:
        for place, (action, database) in product(places, WAYS):
            yield Spec(
                stage=stage,
                kind=kind,
                scenario=scenario,
                place=place,
                action=action,
                database=database,
            )


_PLACES: Final[Mapping[Stage, Sequence[tuple[Scenario, Sequence[Place]]]]] = {
    Stage.DECIDING: [(PLAIN, DECIDING)],
    Stage.WRITING: [(PLAIN, WRITING)],
    Stage.BRANCHING: BRANCHES,
    Stage.LOOPING: [(PLAIN, LOOPING)],
    Stage.SWEEPING: [(PLAIN, SWEEPING)],
    Stage.STARTING: [(PLAIN, STARTING)],
    Stage.DELIVERING: [(PLAIN, DELIVERING)],
}
_KINDS: Final[Mapping[Stage, Kind]] = {
    Stage.LOOPING: Kind.LOOP,
    Stage.SWEEPING: Kind.LEFT,
    Stage.STARTING: Kind.START,
    Stage.DELIVERING: Kind.DELIVERY,
}
