"""What people do to a run while it is recorded."""

from __future__ import annotations

from typing import Final

from pydantic import JsonValue
from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue

from tests.replay.stage import Stage
from tests.workflow.decisions import ISSUE, a_request
from tests.workflow.runs import Run, envelope, eventually
from triage.contracts.state import PendingView, StateView

EDITED: Final = a_request(title="The API returns 503", body="It is every second call, not all.")


async def approve_by_signal(_stage: Stage, run: Run) -> None:
    """Approve what is pending."""
    await run.signal("approve", envelope(await run.waiting()))


async def approve_by_update(_stage: Stage, run: Run) -> None:
    """Approve what is pending and read the answer."""
    answer = await run.review("approve", note="looks right")
    assert answer.accepted, answer


async def reject_by_signal(_stage: Stage, run: Run) -> None:
    """Reject what is pending."""
    await run.signal("reject", envelope(await run.waiting(), note="not a bug"))


async def reject_by_update(_stage: Stage, run: Run) -> None:
    """Reject what is pending and read the answer."""
    answer = await run.review("reject")
    assert answer.accepted, answer


async def approve_two(_stage: Stage, run: Run) -> None:
    """Approve what is pending, and what is pending after it."""
    first = await run.waiting()
    await run.signal("approve", envelope(first))
    await run.signal("approve", envelope(await _waiting_beyond(run, first.version)))


async def only_look(_stage: Stage, run: Run) -> None:
    """See that the run waits, and do nothing."""
    await run.waiting()


async def cancel(_stage: Stage, run: Run) -> None:
    """Cancel the execution while it waits."""
    await run.waiting()
    await run.handle.cancel()


async def change_issue_then_approve(stage: Stage, run: Run) -> None:
    """Approve a write whose issue says something else by now."""
    pending = await run.waiting()
    await stage.tracker.edit_issue(run.id, ISSUE, body="It was a typo of ours.", by="author")
    await run.signal("approve", envelope(pending))


async def edit_then_approve(_stage: Stage, run: Run) -> None:
    """Correct the request while its write is pending, then approve the new proposal."""
    first = await run.waiting()
    await run.signal("edit", EDITED)
    await run.signal("approve", envelope(await _waiting_beyond(run, first.version)))


async def edit_in_thought(stage: Stage, run: Run) -> None:
    """Correct the request while the model still thinks about the first one."""
    await run.reaches(_has_begun)
    await run.signal("edit", EDITED)
    stage.thoughts[run.id].set()


async def leave_in_thought(_stage: Stage, run: Run) -> None:
    """See that the model thinks, and let it."""
    await run.reaches(_has_begun)


async def send_junk_then_approve(stage: Stage, run: Run) -> None:
    """Send everything that must not count, then one approval that does."""
    await send_junk(stage, run)
    await run.signal("approve", envelope(await run.waiting()))


async def send_junk(_stage: Stage, run: Run) -> None:
    """Send signals that are refused, each for another reason, and one that nobody knows."""
    pending = await run.waiting()
    junk: list[tuple[str, tuple[object, ...]]] = [
        ("applaud", ({"operation_id": pending.operation_id},)),
        ("approve", ()),
        ("approve", (envelope(pending), "and more")),
        ("approve", (_raw(b"binary/plain", b"\x00"),)),
        ("approve", (_raw(b"json/plain", b"{"),)),
        ("edit", ({"request_id": "another"},)),
        *(("approve", (message,)) for message in _refused(pending)),
    ]
    for name, values in junk:
        await run.signal(name, *values)
    state = await run.reaches(lambda state: state.refusals_total == len(junk))
    assert state.pending == pending


def _refused(pending: PendingView) -> list[dict[str, JsonValue]]:
    return [
        envelope(pending, approver=" "),
        envelope(pending, version=pending.version - 1),
        envelope(pending, operation_id="op-0"),
        envelope(pending, digest="sha256:" + "0" * 64),
        envelope(pending, approver="helper[bot]"),
    ]


async def _waiting_beyond(run: Run, version: int) -> PendingView:
    """Return what is pending once the run waits at a later version."""

    async def look() -> PendingView | None:
        pending = await run.pending()
        return pending if pending and pending.version > version else None

    return await eventually(look)


def _has_begun(state: StateView) -> bool:
    return state.steps == 1


def _raw(encoding: bytes, data: bytes) -> RawValue:
    return RawValue(Payload(metadata={"encoding": encoding}, data=data))
