"""Settles writes whose run is over, and removes what was kept for long enough.

Why it exists: a write is carried by its run's activity, and whoever terminates the run ends that
too. The row stays, perhaps with an effect that nobody saw. So every write worker looks through the
ledger now and then. It reads and records; it never sends anything. A write that an attempt holds or
whose run still lives is left alone, and each move names the epoch that was looked at, so whoever
came first has won. The ledger's runs are looked for in the worker's own namespace.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from activities.label_answers import OWNER
from activities.label_write import LEFT_BEHIND
from activities.services import Services
from triage.continuing import first_run_id
from triage.contracts.canonical import short_hash
from triage.faults import Point, reach
from triage.storage.intake_retention import purge_intake
from triage.storage.judgement import patience_seconds, quiet_for_seconds
from triage.storage.ledger_listing import UnreadableOperation
from triage.storage.leftovers import Closing, find_leftovers
from triage.storage.operations import MoveCode, Moved, OperationRecord, Timings
from triage.storage.retention import purge_settled
from triage.storage.transitions import OperationState
from triage.trackers.base import TrackerRefused, TrackerTimeout, TrackerUnavailable
from triage.trackers.read_back import ReadBack
from triage.trackers.undo_plan import UNDOES

RUN_OVER: Final = "its run is over"
ABSENT: Final = f"{RUN_OVER}, and not all of its labels are on the issue"
BEGUN: Final = f"{RUN_OVER}, {LEFT_BEHIND}"
UNREADABLE: Final = f"{RUN_OVER}, and the issue cannot be read"
CUT_SHORT: Final = "its command ended without an answer"
NOT_UNDONE: Final = f"{CUT_SHORT}, and it took none of its labels off"

_S = OperationState
_OVER: Final = frozenset(
    {
        WorkflowExecutionStatus.COMPLETED,
        WorkflowExecutionStatus.FAILED,
        WorkflowExecutionStatus.CANCELED,
        WorkflowExecutionStatus.TERMINATED,
        WorkflowExecutionStatus.TIMED_OUT,
    }
)
_RPC_TIMEOUT: Final = timedelta(seconds=5)
_PAGE: Final = 200
NO_KEY: Final = "(no key)"
PURGE_LIMIT: Final = 100
"""They go in one transaction, which keeps others from writing."""
CALLS_KEPT: Final = timedelta(days=400)
"""A run may wait for people again and again, but hardly for a year."""
_log = logging.getLogger(__name__)

Left = Callable[[OperationRecord, datetime, Timings], float]
"""How many seconds are left of something, by the database's time."""


class Outcome(StrEnum):
    """What a pass did about one write."""

    LIVES = "lives"
    """Its run goes on, or comes back: left alone."""
    CANCELLED = "cancelled"
    APPLIED = "applied"
    ABSENT = "absent"
    """Nothing shows after the quiet period: a person was told, and nobody sends it again."""
    BEGUN = "begun"
    """An earlier attempt may have done a part of it: a person was told."""
    UNREADABLE = "unreadable"
    """It could not be read even after the quiet period: a person was told."""
    WAITS = "waits"
    """The quiet period is not over: a later pass looks again."""
    LOST = "lost"
    """Somebody else moved it meanwhile."""
    EDITED = "edited"
    """Its row cannot be read: somebody edited the database, and has to mend it."""
    BROKEN = "broken"
    """Something went wrong; a later pass tries again."""


@dataclass(frozen=True, kw_only=True)
class Swept:
    """What one pass did: an outcome for each write that it looked at, by operation key."""

    outcomes: Mapping[str, Outcome] = field(default_factory=dict)
    documents: int = 0
    evidence: int = 0
    purged: int = 0
    calls: int = 0
    deliveries: int = 0


class Sweeper:
    """Looks after what runs left behind, and after requests that nobody starts.

    Args:
        client: of the namespace whose runs the ledger serves.
        services: the worker's.
        start: starts the runs of requests that a process for deliveries left behind.
    """

    def __init__(
        self,
        client: Client,
        services: Services,
        start: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        self._client = client
        self._services = services
        self._start = start
        self._ledger = services.ledger
        self._read_back = ReadBack(services.store, services.ledger, services.trackers)

    async def sweep(self) -> Swept:
        """Make one pass; several workers may make theirs at the same time.

        Raises:
            StorageError: the store cannot be used; a later pass goes on from there.
        """
        await self._start_left()
        outcomes: dict[str, Outcome] = {}
        after = ""
        while page := await find_leftovers(self._services.store, after=after, limit=_PAGE):
            for record in page:
                outcomes[record.operation_key or NO_KEY] = await self._outcome(record)
                reach(Point.SWEEP_END)
            last = page[-1].operation_key
            if last is None:
                # Keys that are no text come after all others.
                break
            after = last
        return Swept(
            outcomes=outcomes,
            documents=await self._services.documents.purge_expired(),
            evidence=await self._services.evidence.purge_expired(),
            purged=await self._purge(),
            calls=await self._forget_calls(),
            deliveries=await self._purge_intake(),
        )

    async def _forget_calls(self) -> int:
        """Remove what calls of models cost, once no run that could still ask is as old."""
        store = self._services.store
        async with store.read() as connection:
            now = await store.now(connection)
        return await self._services.spending.purge(now - CALLS_KEPT, PURGE_LIMIT)

    async def _start_left(self) -> None:
        """Start what was accepted and left behind; no trouble with it keeps writes unlooked at."""
        if self._start is None:
            return
        try:
            await self._start()
        except Exception:  # noqa: BLE001 - whatever it is, the writes have their turn
            _log.warning("what was accepted could not be started", exc_info=True)

    async def _purge_intake(self) -> int:
        """Remove what deliveries left, as old as a settled write whose digests alone are kept."""
        store = self._services.store
        async with store.read() as connection:
            now = await store.now(connection)
        return await purge_intake(store, now - self._services.ledger_retention, PURGE_LIMIT)

    async def _purge(self) -> int:
        """Leave only digests of writes that were settled long ago; a pass takes some of them."""
        store = self._services.store
        async with store.read() as connection:
            now = await store.now(connection)
        return await purge_settled(store, now - self._services.ledger_retention, PURGE_LIMIT)

    async def _outcome(self, record: OperationRecord | UnreadableOperation) -> Outcome:
        """Settle one write; no trouble with it keeps a pass from the next one."""
        reach(Point.SWEEP_BEGIN)
        if isinstance(record, UnreadableOperation):
            told = {"operation_key": record.operation_key or NO_KEY}
            _log.warning("a row of the ledger cannot be read: it was edited", extra=told)
            return Outcome.EDITED
        try:
            outcome = await self._settle(record)
        except Exception:  # noqa: BLE001 - whatever it is, the other writes have their turn
            told = {"operation_key": record.operation_key, "state": record.state.value}
            _log.warning("a write could not be looked after", exc_info=True, extra=told)
            return Outcome.BROKEN
        if outcome not in {Outcome.LIVES, Outcome.WAITS}:
            told = {"operation_key": record.operation_key, "outcome": outcome.value}
            _log.info("looked after a write whose run is over", extra=told)
        return outcome

    async def _settle(self, record: OperationRecord) -> Outcome:
        if await self._lives(record):
            return Outcome.LIVES
        reach(Point.SWEEP_BEFORE_MOVE)
        key, epoch = record.operation_key, record.epoch
        if record.state is _S.RESERVED:
            return await self._give_up(record)
        if record.state is _S.DISPATCHED and not await self._ledger.mark_unknown(
            key, epoch, _worded(RUN_OVER, record)
        ):
            return Outcome.LOST
        return await self._read(record)

    async def _give_up(self, record: OperationRecord) -> Outcome:
        """Close a reserved write, unless an earlier attempt may have done a part of it."""
        key, epoch = record.operation_key, record.epoch
        if not record.dispatches:
            moved = await self._ledger.cancel(key, epoch, _worded(RUN_OVER, record))
            return Outcome.CANCELLED if moved else Outcome.LOST
        try:
            is_begun = await self._read_back.is_begun(record)
        except TrackerRefused:
            is_begun = True
        except (TrackerTimeout, TrackerUnavailable):
            return Outcome.WAITS
        if is_begun:
            moved = await self._ledger.attention(key, _worded(BEGUN, record), OWNER, epoch=epoch)
            return Outcome.BEGUN if moved else Outcome.LOST
        moved = await self._ledger.cancel(key, epoch, _worded(RUN_OVER, record))
        return Outcome.CANCELLED if moved else Outcome.LOST

    async def _read(self, record: OperationRecord) -> Outcome:
        absent = NOT_UNDONE if record.operation_type == UNDOES else ABSENT
        closing = Closing(reason=absent, owner=OWNER, attention=True)
        reach(Point.SWEEP_BEFORE_READ)
        try:
            return _outcome_of(await self._read_back.settle(record, closing))
        except TrackerRefused:
            return await self._tell(record, quiet_for_seconds)
        except (TrackerTimeout, TrackerUnavailable):
            return await self._tell(record, patience_seconds)

    async def _tell(self, record: OperationRecord, left: Left) -> Outcome:
        """Ask a person about a write that cannot be read, once time alone will not help."""
        async with self._services.store.read() as connection:
            now = await self._services.store.now(connection)
        if left(record, now, self._ledger.timings) > 0:
            return Outcome.WAITS
        why = _worded(UNREADABLE, record)
        moved = await self._ledger.attention(record.operation_key, why, OWNER)
        return Outcome.UNREADABLE if moved else Outcome.LOST

    async def _lives(self, record: OperationRecord) -> bool:
        """Whether the run that a write belongs to goes on, or may.

        The scope tells runs apart that had the same workflow id one after the other. A reset run
        and one that was continued as new have the scope of the first one.
        """
        if record.operation_type == UNDOES:
            # A person's command did it, and no run carries it on.
            return False
        handle = self._client.get_workflow_handle(record.workflow_id)
        try:
            latest = await handle.describe(rpc_timeout=_RPC_TIMEOUT)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return False
            raise
        if latest.status in _OVER:
            return False
        first = first_run_id(latest)
        return not first or record.scope == short_hash(record.tenant, record.workflow_id, first)


@asynccontextmanager
async def sweeping(sweeper: Sweeper, *, period_seconds: float) -> AsyncIterator[None]:
    """Make a pass every `period_seconds` while the body runs; no fault ends it."""
    task = asyncio.create_task(_keep_sweeping(sweeper, period_seconds))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _keep_sweeping(sweeper: Sweeper, period_seconds: float) -> None:
    while True:
        await asyncio.sleep(period_seconds)
        try:
            swept = await sweeper.sweep()
        except Exception:  # noqa: BLE001 - the next pass may do better
            _log.warning("a pass of the sweeper broke off", exc_info=True)
            continue
        for outcome, count in Counter(swept.outcomes.values()).items():
            _log.debug("swept", extra={"outcome": outcome.value, "count": count})


def _worded(reason: str, record: OperationRecord) -> str:
    """Say it of a command where there was no run."""
    return reason.replace(RUN_OVER, CUT_SHORT) if record.operation_type == UNDOES else reason


def _outcome_of(moved: Moved) -> Outcome:
    if moved.code is MoveCode.TOO_EARLY:
        return Outcome.WAITS
    if not moved:
        return Outcome.LOST
    if moved.state is _S.ATTENTION:
        return Outcome.BEGUN
    return Outcome.APPLIED if moved.state is _S.RECONCILED_APPLIED else Outcome.ABSENT
