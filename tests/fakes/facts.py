"""What the store and the commit log say, side by side, read at one moment.

Why it exists: the checks of the invariants are pure, so that each can be shown to fail.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, Final

from sqlalchemy import select

from tests.fakes.commit_log import Action, Entry, Via
from tests.fakes.http_tracker import BOT
from triage.contracts.state import StateView
from triage.storage.engine import Store
from triage.storage.ledger_rows import to_record
from triage.storage.operations import OperationRecord
from triage.storage.schema import approvals, audit, operation_tombstones, operations
from triage.storage.transitions import OperationState

CARRIED_OUT: Final = frozenset({Action.LABELED, Action.REPEATED})
"""What the request to add a label may lead to."""

TOLERANCE_SECONDS: Final = 0.0015
"""SQLite's clock counts whole milliseconds, so that much later may have been earlier.

The log's clock and the database's are one machine's; a store with an offset cannot be judged.
"""


@dataclass(frozen=True, kw_only=True)
class Audited:
    """One entry of the audit trail."""

    seq: int
    kind: str
    subject: str
    at: datetime
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def state(self) -> OperationState | None:
        """The state that an operation moved to, if this is a move."""
        name = self.kind.removeprefix("operation.")
        known = self.kind.startswith("operation.") and name in set(OperationState)
        return OperationState(name) if known else None


@dataclass(frozen=True, kw_only=True)
class Consent:
    """One decision of a reviewer, as its row has it."""

    approval_id: str
    scope: str
    operation_key: str
    version: int
    operation_digest: str
    verdict: str
    token_id: str | None
    expires_at: datetime | None
    revoked_at: datetime | None
    consumed_by: str | None
    consumed_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """What is known of one workflow that nobody terminated.

    Attributes:
        view: its answer to the ``state`` query.
        running: whether it is still under way.
        history_bytes: the size of its history.
        history_events: its length.
    """

    view: StateView
    running: bool = False
    history_bytes: int = 0
    history_events: int = 0


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Everything that the checks look at.

    Attributes:
        operations: the ledger, by operation key.
        buried: the states of purged operations.
        consents: the reviewers' decisions.
        audit: the audit trail, oldest first within each tenant.
        log: the tracker's commits.
        early: how many of those were there before the store was read; the ledger knows of them.
        ours: the names under which triage acts on the tracker.
        runs: the workflows, by id, as far as they are known.
    """

    operations: Mapping[str, OperationRecord]
    buried: Mapping[str, OperationState]
    consents: Sequence[Consent]
    audit: Sequence[Audited]
    log: Sequence[Entry]
    early: int
    ours: frozenset[str] = frozenset({BOT})
    runs: Mapping[str, RunFacts] = field(default_factory=dict)

    @cached_property
    def our_entries(self) -> list[Entry]:
        """What triage did on the tracker: under its name, or under an operation's."""
        return [
            entry
            for entry in self.log[: self.early]
            if entry.via is Via.API and (entry.actor in self.ours or entry.operation)
        ]

    @cached_property
    def commits(self) -> list[Entry]:
        """The labels that triage added, those that were there already included."""
        return [entry for entry in self.our_entries if entry.action in CARRIED_OUT]

    @cached_property
    def added_by(self) -> Counter[str]:
        """How many labels each operation has put on, up to the end of the log."""
        return Counter(e.operation for e in self.log if e.action is Action.LABELED and e.operation)

    @cached_property
    def _moves(self) -> dict[str, list[Audited]]:
        found: dict[str, list[Audited]] = {}
        for entry in self.audit:
            if entry.state is not None:
                found.setdefault(entry.subject, []).append(entry)
        return found

    def moves(self, operation_key: str) -> list[Audited]:
        """The audited moves of one operation, oldest first."""
        return self._moves.get(operation_key, [])

    def moved_to(self, operation_key: str, *states: OperationState) -> list[Audited]:
        """Those of an operation's moves that led to one of `states`."""
        return [entry for entry in self.moves(operation_key) if entry.state in states]


def not_after(moment: datetime, entry: Entry) -> bool:
    """Whether `moment` is no later than a commit."""
    return moment.timestamp() <= entry.time + TOLERANCE_SECONDS


async def read_facts(store: Store, read: Callable[[], Sequence[Entry]]) -> Facts:
    """Read the store in one snapshot, and the log before and after it."""
    early = len(read())
    async with store.snapshot() as connection:
        rows = (await connection.execute(select(operations))).mappings().all()
        graves = (await connection.execute(select(operation_tombstones))).mappings().all()
        decisions = (await connection.execute(select(approvals))).mappings().all()
        trail = select(audit).order_by(audit.c.tenant_key, audit.c.seq)
        entries = (await connection.execute(trail)).mappings().all()
    names = Consent.__dataclass_fields__
    return Facts(
        operations={row["operation_key"]: to_record(row) for row in rows},
        buried={row["operation_key"]: OperationState(row["state"]) for row in graves},
        consents=[Consent(**{name: row[name] for name in names}) for row in decisions],
        audit=[_audited(row["body"], row["at"]) for row in entries],
        log=read(),
        early=early,
    )


def _audited(body: bytes, at: datetime) -> Audited:
    """Read an entry; one that was damaged has no place here, and the chain's check tells of it."""
    try:
        found = json.loads(body)
        return Audited(
            seq=found["seq"],
            kind=found["kind"],
            subject=found["subject"],
            at=at,
            details=found["details"],
        )
    except (KeyError, TypeError, ValueError):
        return Audited(seq=0, kind="damaged", subject="", at=at)
