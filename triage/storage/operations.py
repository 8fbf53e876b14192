"""What the operations ledger takes and answers: plain records, no database.

A `Reservation` is one of `Reserved`, `Busy`, `Settled`, `Conflict`, `InDoubt` and `Refused`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from triage.contracts.canonical import short_hash
from triage.storage.approvals import RefusalCode
from triage.storage.transitions import OperationState


def operation_key(scope: str, operation_id: str) -> str:
    """Return the ledger's key of a run's operation: its id within its scope."""
    return f"op_{short_hash(scope, operation_id)}"


@dataclass(frozen=True, kw_only=True)
class OperationRow:
    """One write that somebody wants to happen once.

    Attributes:
        operation_key: the ledger's key.
        scope: the run's scope.
        tenant: whose audit chain records it.
        workflow_id: the run that asked for it.
        operation_id: its name inside that run.
        version: the run's version at which it was approved.
        operation_type: such as ``apply_labels``.
        digest: over type, target and arguments.
        target: canonical JSON.
        arguments: canonical JSON.
        labels: what it adds, for people who list operations.
    """

    operation_key: str
    scope: str
    tenant: str
    workflow_id: str
    operation_id: str
    version: int
    operation_type: str
    digest: str
    target: str
    arguments: str
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class OperationRecord(OperationRow):
    """A write as the ledger has it.

    Attributes:
        state: where it stands.
        epoch: grows with every claim; every move names the one that it belongs to.
        owner: the attempt that holds the epoch.
        lease_until: until when nobody else may take over.
        not_before: the far end asked for a pause until then.
        dispatched_at: when an effect last became possible.
        dispatches: how often it did.
        read_back_at: when a reading last found no effect, after the quiet period.
        receipt: what happened, byte for byte; at most 4,096.
        receipt_digest: ``sha256:`` over the receipt.
        reason: a code or sentence for the last move, if one was given.
        attention_owner: who has to look at it.
        attention_at: since when.
        created_at: when it was first reserved.
        updated_at: when it last moved.
    """

    state: OperationState
    epoch: int
    owner: str
    lease_until: datetime
    not_before: datetime | None
    dispatched_at: datetime | None
    dispatches: int
    read_back_at: datetime | None
    receipt: bytes | None
    receipt_digest: str | None
    reason: str | None
    attention_owner: str | None
    attention_at: datetime | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True)
class Timings:
    """How long the ledger waits, by the database's clock.

    Attributes:
        lease_seconds: longer than one attempt's call to the far end may take.
        quiet_period_seconds: longer than any call may still take effect after it was sent.
        max_redispatch: how often a write that was read back as absent may be sent again.
    """

    lease_seconds: float = 60.0
    quiet_period_seconds: float = 120.0
    max_redispatch: int = 2


@dataclass(frozen=True, kw_only=True)
class Reserved:
    """The caller holds the write under `epoch` until `lease_until`; no effect is possible yet.

    `dispatches` counts how often an earlier claim sent it: a part of it may have been done.
    """

    epoch: int
    lease_until: datetime
    taken_over: bool = False
    dispatches: int = 0


@dataclass(frozen=True, kw_only=True)
class Busy:
    """Another attempt holds it, or the far end asked for a pause: come back later."""

    retry_after_seconds: float


@dataclass(frozen=True, kw_only=True)
class Settled:
    """It is over: answer with the receipt and do nothing.

    `receipt` is None for a cancelled write, and when the row was purged (`purged`): then its digest
    and the state are all that is left. `owner` is the attempt that held it last.
    """

    state: OperationState
    receipt: bytes | None
    receipt_digest: str | None
    reason: str | None = None
    purged: bool = False
    owner: str = ""


class ConflictCode(StrEnum):
    """Why a write does not fit the row under its key."""

    DIGEST_MISMATCH = "digest_mismatch"
    STALE_VERSION = "stale_version"


@dataclass(frozen=True, kw_only=True)
class Conflict:
    """The key stands for something else, or for a newer version: never execute this."""

    code: ConflictCode
    state: OperationState


@dataclass(frozen=True, kw_only=True)
class InDoubt:
    """An effect may exist: `mark_unknown` if dispatched, read the far end, then `reconcile`.

    Attributes:
        state: dispatched, unknown, reconciled_absent or attention.
        epoch: what the moves must name.
        dispatched_at: when an effect last became possible.
        quiet_for_seconds: until then a reading that finds nothing proves nothing.
        patience_seconds: until then a tracker that does not answer may do so yet.
        exhausted: it was sent as often as it may be; absent now means `attention`.
    """

    state: OperationState
    epoch: int
    dispatched_at: datetime
    quiet_for_seconds: float
    exhausted: bool
    patience_seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Refused:
    """The decision that stands does not allow it; nothing was reserved."""

    code: RefusalCode


Reservation = Reserved | Busy | Settled | Conflict | InDoubt | Refused


class MoveCode(StrEnum):
    """How a move ended."""

    DONE = "done"
    MISSING = "missing"
    """There is no such operation."""
    FENCED = "fenced"
    """Another attempt has taken over: do nothing more."""
    ILLEGAL = "illegal"
    """The state allows no such move, or another one came first."""
    LEASE_EXPIRED = "lease_expired"
    """Too late: reserve again."""
    NOT_APPROVED = "not_approved"
    """`refusal` says why."""
    TOO_EARLY = "too_early"
    """The quiet period is not over: read again in `retry_after_seconds`."""


@dataclass(frozen=True, kw_only=True)
class Moved:
    """The outcome of a move, true only if the ledger now says so."""

    code: MoveCode
    state: OperationState | None = None
    refusal: RefusalCode | None = None
    retry_after_seconds: float = 0.0

    def __bool__(self) -> bool:
        return self.code is MoveCode.DONE


@dataclass(frozen=True, kw_only=True)
class Redispatch:
    """Whether a write may be sent again, true only if so.

    `read_again`: a fresh reading, after the quiet period, has to find it absent first.
    """

    allowed: bool
    read_again: bool = False
    exhausted: bool = False
    retry_after_seconds: float = 0.0

    def __bool__(self) -> bool:
        return self.allowed
