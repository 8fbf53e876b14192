"""`triage operations reconcile`: reads the issue of a write that needs a person.

It sends nothing. What it finds is recorded with who looked, and ends the question. Of a write that
failed or was given up there is nothing to find: that somebody has looked is all that is recorded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from triage.cli.errors import RefusedError
from triage.cli.operation_names import find_operation
from triage.cli.output import Format, put, put_json
from triage.cli.running import run
from triage.cli.stores import open_store
from triage.cli.who import who
from triage.settings import Settings, load_settings
from triage.storage.ledger import Ledger
from triage.storage.leftovers import OVER, Closing, acknowledge
from triage.storage.operations import MoveCode, Moved, OperationRecord
from triage.storage.transitions import OperationState
from triage.trackers.factory import open_trackers
from triage.trackers.read_back import ReadBack
from triage.trackers.undo_plan import UNDOES
from triage.trackers.undo_reading import is_partly_done

READABLE: Final = frozenset({OperationState.ATTENTION, OperationState.RECONCILED_ABSENT})
ABSENT: Final = "a person had it read back: its labels are not on the issue"
UNDO_ABSENT: Final = "a person had it read back: it took none of its labels off"


def reconcile(name: str, by: str | None, format_: Format) -> None:
    """Read the tracker, record what is there and print it.

    Raises:
        RefusedError: the write needs no person, or nothing can be said yet.
        TrackerError: the issue cannot be read; nothing was recorded.
        StorageError: the database cannot be used.
    """
    key, found = run(_reconcile(name, who(by), load_settings()))
    if format_ is Format.JSON:
        put_json({"operation_key": key, "found": found.what, "state": found.state.value})
    else:
        put(f"{key} {found.told}")


@dataclass(frozen=True)
class _Found:
    """What was recorded: `what` is None where nothing was looked for."""

    what: str | None
    state: OperationState
    told: str


async def _reconcile(name: str, by: str, settings: Settings) -> tuple[str, _Found]:
    """Return the operation's key, whatever it was named by, and what was found."""
    async with open_store(create=False) as store:
        ledger = Ledger(store, quiet_period_seconds=settings.quiet_period_seconds)
        record = _checked(await find_operation(store, ledger, name))
        key = record.operation_key
        if record.state in OVER:
            state = _recorded(record, await acknowledge(store, key, by))
            told = f"is {state.value}: noted that you have looked; nothing was read or sent"
            return key, _Found(None, state, told)
        closing = Closing(reason=_absent(record), owner=by, attention=False)
        read_back = ReadBack(store, ledger, open_trackers(settings, store))
        state = _recorded(record, await read_back.settle(record, closing))
        return key, _found(await ledger.get(key) or record, state)


def _absent(record: OperationRecord) -> str:
    return UNDO_ABSENT if record.operation_type == UNDOES else ABSENT


def _found(record: OperationRecord, state: OperationState) -> _Found:
    is_there = state is OperationState.RECONCILED_APPLIED
    is_undo = record.operation_type == UNDOES
    if is_there and is_partly_done(record):
        told = "was done in part: its receipt says what it took off, 'triage undo' takes the rest"
        return _Found("partly", state, told)
    if is_there and is_undo:
        told = "is done: its labels are off the issue, and its receipt says which it took off"
    elif is_there:
        told = "is done: its labels were seen on the issue, and it has a receipt now"
    elif is_undo:
        told = "did not happen: it took none of its labels off, and nothing was sent"
    else:
        told = "did not happen: its labels are not on the issue, and nothing was sent"
    return _Found("present" if is_there else "absent", state, told)


def _checked(record: OperationRecord) -> OperationRecord:
    if record.attention_at is None or record.state not in READABLE | OVER:
        raise RefusedError(
            f"{record.operation_key} is {record.state.value}: it needs no person",
            "'triage operations --attention' shows those that do",
        )
    return record


def _recorded(record: OperationRecord, moved: Moved) -> OperationState:
    if moved.code is MoveCode.TOO_EARLY:
        seconds = max(1, round(moved.retry_after_seconds))
        is_undo = record.operation_type == UNDOES
        seen = (
            "not all of its labels were taken off" if is_undo else "its labels are not on the issue"
        )
        raise RefusedError(
            f"{seen}, which proves nothing for another {seconds} s",
            "the quiet period is not over: it may still happen; ask again then",
        )
    if not moved or moved.state is None:
        raise RefusedError("somebody else settled it at this moment", "ask again")
    return moved.state
