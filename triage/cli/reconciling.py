"""`triage operations reconcile`: reads the issue of a write that needs a person.

It sends nothing. What it finds is recorded with who looked, and ends the question. Of a write that
failed or was given up there is nothing to find: that somebody has looked is all that is recorded.
"""

from __future__ import annotations

from typing import Final

from triage.cli.errors import RefusedError
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

READABLE: Final = frozenset({OperationState.ATTENTION, OperationState.RECONCILED_ABSENT})
ABSENT: Final = "a person had it read back: its labels are not on the issue"


def reconcile(key: str, by: str | None, format_: Format) -> None:
    """Read the tracker, record what is there and print it.

    Raises:
        RefusedError: the write needs no person, or nothing can be said yet.
        TrackerError: the issue cannot be read; nothing was recorded.
        StorageError: the database cannot be used.
    """
    moved = run(_reconcile(key, who(by), load_settings()))
    state = _recorded(moved)
    is_there = state is OperationState.RECONCILED_APPLIED
    if format_ is Format.JSON:
        found = None if state in OVER else "present" if is_there else "absent"
        put_json({"operation_key": key, "found": found, "state": state.value})
    elif state in OVER:
        put(f"{key} is {state.value}: noted that you have looked; nothing was read or sent")
    elif is_there:
        put(f"{key} is done: its labels were seen on the issue, and it has a receipt now")
    else:
        put(f"{key} did not happen: its labels are not on the issue, and nothing was sent")


async def _reconcile(key: str, by: str, settings: Settings) -> Moved:
    async with open_store(create=False) as store:
        ledger = Ledger(store, quiet_period_seconds=settings.quiet_period_seconds)
        record = _checked(key, await ledger.get(key))
        if record.state in OVER:
            return await acknowledge(store, key, by)
        closing = Closing(reason=ABSENT, owner=by, attention=False)
        read_back = ReadBack(store, ledger, open_trackers(settings, store))
        return await read_back.settle(record, closing)


def _checked(key: str, record: OperationRecord | None) -> OperationRecord:
    if record is None:
        raise RefusedError(
            f"there is no operation {key}", "'triage operations --format json' shows the keys"
        )
    if record.attention_at is None or record.state not in READABLE | OVER:
        raise RefusedError(
            f"{key} is {record.state.value}: it needs no person",
            "'triage operations --attention' shows those that do",
        )
    return record


def _recorded(moved: Moved) -> OperationState:
    if moved.code is MoveCode.TOO_EARLY:
        seconds = max(1, round(moved.retry_after_seconds))
        raise RefusedError(
            f"its labels are not on the issue, which proves nothing for another {seconds} s",
            "the quiet period is not over: it may still happen; ask again then",
        )
    if not moved or moved.state is None:
        raise RefusedError("somebody else settled it at this moment", "ask again")
    return moved.state
