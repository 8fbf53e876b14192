"""What people do to a run while it is recorded."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Final

from pydantic import JsonValue
from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue

from tests.replay.stage import Stage
from tests.workflow.decisions import ISSUE, a_request, label, lookup
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


async def approve_too_late_then_again(_stage: Stage, run: Run) -> None:
    """Correct the request, approve what was withdrawn by it, then what is pending now."""
    first = await run.waiting()
    await run.signal("edit", EDITED)
    second = await _waiting_beyond(run, first.version)
    await run.signal("approve", {**envelope(first), "operation_id": second.operation_id})
    state = await run.reaches(lambda state: state.refusals_total == 1)
    assert "was edited since (title, body)" in state.refusals[0].reason, state.refusals
    await run.signal("approve", envelope(second))


async def approve_one_twice(_stage: Stage, run: Run) -> None:
    """Approve two writes, and in between the first one once more."""
    first = await run.waiting()
    await run.signal("approve", envelope(first))
    second = await _waiting_beyond(run, first.version)
    await run.signal("reject", envelope(first, approver="latecomer"))
    state = await run.reaches(lambda state: state.refusals_total == 1)
    assert state.refusals[0].reason.startswith("approved by maintainer at "), state.refusals
    await run.signal("approve", envelope(second))


async def approve_by_two(_stage: Stage, run: Run) -> None:
    """One person approves, and again under another spelling; then a second person does."""
    pending = await run.waiting()
    await run.signal("approve", envelope(pending, approver="ann"))
    await run.signal("approve", envelope(pending, approver="@Ann"))
    state = await run.reaches(lambda state: state.refusals_total == 1)
    assert state.pending is not None
    assert ("ann",) == state.pending.approved_by
    answer = await run.review("approve", approver="bob")
    assert answer.accepted, answer


async def flood_then_approve(_stage: Stage, run: Run) -> None:
    """Send noise until the run has continued as new, then approve what is still pending."""
    pending = await run.waiting()
    for number in itertools.count(1):
        await run.signal("noise", {"number": number})
        await run.reaches(_has_refused(number))
        if (await run.handle.describe()).run_id != run.handle.first_execution_run_id:
            break
    assert pending == await run.pending()
    await run.signal("approve", envelope(pending))


async def end_a_run_before(stage: Stage, name: str) -> dict[str, JsonValue]:
    """Play a run about the same issue that ends without an approval, to be continued."""
    ended = await stage.start(
        lookup(), label(), context={"repository": name}, run_id=f"{name}-before"
    )
    await ended.response()
    link: dict[str, JsonValue] = {
        "workflow_id": ended.id,
        "run_id": ended.handle.first_execution_run_id,
        "version": (await ended.state()).version,
    }
    return {"continued_from": link}


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


def _has_refused(count: int) -> Callable[[StateView], bool]:
    return lambda state: state.refusals_total == count


def _has_begun(state: StateView) -> bool:
    return state.steps == 1


def _raw(encoding: bytes, data: bytes) -> RawValue:
    return RawValue(Payload(metadata={"encoding": encoding}, data=data))
