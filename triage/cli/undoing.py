"""`triage undo`: shows what taking a write back would do, asks, and does just that.

What it removes are the labels that the write itself put on and that nobody has touched since. It
goes through the ledger like every write: once, audited, with a receipt, and not while writes are
stopped.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from triage.cli.errors import RefusedError, StoppedError
from triage.cli.operation_names import find_operation
from triage.cli.output import Format, put, put_json, put_table, say
from triage.cli.running import run
from triage.cli.stores import open_store
from triage.cli.text import quoted
from triage.cli.undo_rights import Rights, key_of
from triage.settings import Settings, load_settings
from triage.storage.engine import Store
from triage.storage.ledger import Ledger
from triage.storage.operations import OperationRecord
from triage.storage.switches import Switches
from triage.storage.transitions import OperationState
from triage.trackers.factory import open_trackers
from triage.trackers.undo import Ending, Undo, Undone, undo_row
from triage.trackers.undo_plan import APPLIED, UndoPlan, target_of

YES: Final = "yes"
CALLS_A_LEASE: Final = 3
NOTHING_DONE: Final = "nothing was done"
HOW_TO: Final = f"{NOTHING_DONE}: --yes does it"
_BY_READING: Final = "'triage operations' shows it; a worker settles it by reading the issue"
_WHY: Final = {
    Ending.CHANGED: "look again: 'triage undo' shows what is there now",
    Ending.REFUSED: "nothing was done",
    Ending.IN_DOUBT: _BY_READING,
    Ending.UNKNOWN: f"{_BY_READING}, or once a person is asked 'triage operations reconcile' does",
}


@dataclass(frozen=True)
class Given:
    """What the command line says."""

    operation: str
    workflow: str | None
    by: str | None
    sign: bool
    key: Path | None
    yes: bool


@dataclass(frozen=True)
class _Seen:
    """What was found: what would be done, as which attempt, or the undo that is there already."""

    plan: UndoPlan | None
    attempt: int
    standing: OperationRecord | None
    required: int = 1


def undo(given: Given, format_: Format) -> None:
    """Show what an undo would do, ask unless told not to, and do it.

    Raises:
        RefusedError: there is nothing to undo, it may not be, nobody said yes, or it did not work.
        TrackerError: the issue cannot be read.
        StorageError: the database cannot be used.
    """
    settings = load_settings()
    rights = Rights(settings, given.by, key_of(settings, given.key, given.by, wanted=given.sign))
    seen = run(_look(given, settings, rights))
    if seen.plan is None:
        _put_standing(seen, format_)
        return
    if format_ is Format.TEXT:
        _put_plan(seen.plan)
        if seen.required > 1:
            put(f"{seen.required} people have to agree: each types this, the last one's does it")
    if not given.yes:
        _ask(rights.name, seen.plan, format_)
    _put_undone(run(_carry_out(seen, settings, rights)), seen.plan, format_)


async def _look(given: Given, settings: Settings, rights: Rights) -> _Seen:
    async with _opened(settings) as (store, undo):
        record = await find_operation(store, undo.ledger, given.operation, given.workflow)
        attempt, standing = await undo.latest(record)
        if standing is not None:
            return _Seen(None, attempt, _done(standing))
        plan = await undo.plan(record)
        if not plan.taking_off:
            told = "; ".join(f"{quoted(name)}: {fate.value}" for name, fate in plan.fates.items())
            raise RefusedError("none of its labels is there and still ours: nothing to undo", told)
        rules = await rights.check(store, plan)
        return _Seen(plan, attempt, None, rules.approvals_required)


async def _carry_out(seen: _Seen, settings: Settings, rights: Rights) -> Undone:
    if seen.plan is None:
        raise ValueError("there is nothing to carry out")
    async with _opened(settings) as (store, undo):
        # Between the question and the answer the rules, the lock or the switch may have changed.
        rules = await rights.check(store, seen.plan)
        row = undo_row(seen.plan, seen.attempt)
        decision = await rights.approval(store, seen.plan, row, rules)
        needed = rules.approvals_required
        consents = await rights.consents(store, decision, row.tenant, needed)
        if not consents.suffice:
            told = f"{consents.given} of {consents.required} people agree"
            return Undone(ending=Ending.COUNTED, operation_key=row.operation_key, detail=told)
        return await undo.carry_out(seen.plan, row, decision, consents.required)


@asynccontextmanager
async def _opened(settings: Settings) -> AsyncIterator[tuple[Store, Undo]]:
    async with open_store(create=False) as store:
        lease = settings.lease_seconds
        ledger = Ledger(
            store, lease_seconds=lease, quiet_period_seconds=settings.quiet_period_seconds
        )
        seconds = min(settings.write_timeout_seconds, lease / CALLS_A_LEASE)
        trackers = open_trackers(settings, store)
        yield store, Undo(ledger, Switches(store), trackers, timeout_seconds=seconds)


def _done(standing: OperationRecord) -> OperationRecord:
    if standing.state not in APPLIED:
        message = f"an earlier undo of it, {standing.operation_key}, is {standing.state.value}"
        by_person = f"'triage operations reconcile {standing.operation_key}' reads and settles it"
        asked = standing.state is OperationState.ATTENTION
        raise RefusedError(message, by_person if asked else _WHY[Ending.IN_DOUBT])
    return standing


def _put_standing(seen: _Seen, format_: Format) -> None:
    """Answer a repeat with the first receipt."""
    record = seen.standing
    if record is None:
        return
    if format_ is Format.JSON:
        put_json(_json(Ending.DONE_BEFORE, record.operation_key, record.receipt, None))
    else:
        put(f"it was undone before, by {record.operation_key}: nothing is left to do")


def _put_plan(plan: UndoPlan) -> None:
    tracker, repository, number = target_of(plan.record)
    put(
        f"Undo of {plan.record.operation_id} of {plan.record.workflow_id},"
        f" on {tracker}:{repository}#{number}:"
    )
    put_table(("LABEL", "BECOMES"), [(name, fate.value) for name, fate in plan.fates.items()])


def _ask(name: str, plan: UndoPlan, format_: Format) -> None:
    """Return only if whoever sits there says yes; what would be done was shown where nobody does.

    Raises:
        RefusedError: nobody said yes.
    """
    if format_ is Format.JSON:
        put_json(_json(None, None, None, plan))
    if format_ is Format.JSON or not sys.stdin.isatty():
        raise RefusedError(HOW_TO)
    say("", f"Take off {len(plan.taking_off)} of its labels as {quoted(name)}? Type yes:")
    try:
        answer = sys.stdin.readline()
    except KeyboardInterrupt:
        raise StoppedError(signal.SIGINT) from None
    if answer.strip().lower() != YES:
        raise RefusedError(NOTHING_DONE)


def _put_undone(undone: Undone, plan: UndoPlan, format_: Format) -> None:
    if undone.ending in _WHY:
        raise RefusedError(undone.detail or undone.ending.value, _WHY[undone.ending])
    if format_ is Format.JSON:
        told = _json(undone.ending, undone.operation_key, undone.receipt, plan)
        put_json({**told, "detail": undone.detail} if undone.detail else told)
    elif undone.ending is Ending.COUNTED:
        put(f"{undone.detail}: {NOTHING_DONE}; the others type the same under their own names")
    else:
        put(f"undone: {len(plan.taking_off)} off, seen on the issue, as {undone.operation_key}")


def _json(
    ending: Ending | None, key: str | None, receipt: bytes | None, plan: UndoPlan | None
) -> dict[str, JsonValue]:
    document: dict[str, JsonValue] = {
        "ending": None if ending is None else ending.value,
        "operation_key": key,
        "receipt": None if receipt is None else json.loads(receipt),
    }
    if plan is not None:
        document["undoes"] = plan.record.operation_key
        document["labels"] = {name: fate.name.lower() for name, fate in plan.fates.items()}
    return document
