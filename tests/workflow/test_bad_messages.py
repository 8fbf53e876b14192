"""Whatever is sent to a run, it lives on, and every message that is none of ours is counted."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from temporalio.client import WorkflowQueryFailedError, WorkflowUpdateFailedError
from temporalio.common import RawValue
from temporalio.service import RPCError

from tests.workflow import raw
from tests.workflow.decisions import a_request, final, label
from tests.workflow.raw import ODD_PAYLOADS, as_json, payload
from tests.workflow.runs import Run, envelope, refusal_of
from tests.workflow.world import World
from triage.contracts.response import Status

SCRIPT = [label(), final("mutation-receipt", labels=("bug",))]
NAMES = ["approve", "reject", "edit"]
STRANGE_NAMES = ["nonsense", "Approve", "approve ", "review", "state", "", "../../etc", "\u202e"]
LARGE = b"[" + b"[]," * 600_000 + b"0]"


async def _waiting(world: World) -> Run:
    run = await world.start(*SCRIPT, mode="approve")
    await run.waiting()
    return run


async def _counted(run: Run, count: int) -> None:
    """See that `count` messages were refused as malformed, and that the run can still be used."""
    state = await run.reaches(lambda state: state.refusals_total == count)
    assert {"malformed"} == {refusal.code for refusal in state.refusals}
    assert ("tool_pending", 3) == (state.status, state.version)
    assert [] == await run.task_failures()
    assert (await run.review("approve")).accepted
    assert Status.COMPLETED is (await run.response()).status
    assert [] == await run.task_failures()


@pytest.mark.parametrize("name", NAMES)
async def test_a_signal_of_any_payload_is_counted(world: World, name: str) -> None:
    """A signal whose argument is of any other shape, encoding or size is kept as malformed."""
    run = await _waiting(world)
    for odd in ODD_PAYLOADS.values():
        await raw.signal(world, run, name, [odd])
    await _counted(run, len(ODD_PAYLOADS))


@pytest.mark.parametrize("name", NAMES)
async def test_a_signal_of_any_number_of_arguments_is_counted(world: World, name: str) -> None:
    """A signal with no argument, or with more than one, is kept as malformed, right or not."""
    run = await _waiting(world)
    good = as_json(a_request() if name == "edit" else envelope(await run.waiting()))
    for payloads in ([], [good, good], [good] * 9, [payload(b"", b"binary/null"), good]):
        await raw.signal(world, run, name, payloads)
    await _counted(run, 4)


async def test_a_signal_of_any_name_is_counted(world: World) -> None:
    """A signal that nobody knows is kept as malformed, even with a perfect envelope."""
    run = await _waiting(world)
    good = as_json(envelope(await run.waiting()))
    sent = 0
    for name in STRANGE_NAMES:
        try:
            await raw.signal(world, run, name, [good])
        except RPCError:
            assert not name.strip(), name
        else:
            sent += 1
    assert sent >= len(STRANGE_NAMES) - 1
    await _counted(run, sent)


async def test_messages_before_the_first_task_are_counted(world: World) -> None:
    """A malformed message that overtakes the run's first task is kept as well."""
    run = await world.start(*SCRIPT, mode="approve", start_signal=("nonsense", [1, 2]))
    await run.waiting()
    await _counted(run, 1)


@pytest.mark.parametrize("name", [*NAMES, "nonsense"])
async def test_large_messages_that_arrive_together_are_refused_in_time(
    world: World, name: str
) -> None:
    """Several mebibytes of brackets do not hold a workflow task up, and each is counted."""
    run = await _waiting(world)
    large = payload(LARGE)
    await asyncio.gather(*[raw.signal(world, run, name, [large]) for _ in range(6)])
    await _counted(run, 6)


async def test_an_envelope_of_any_size_is_refused(world: World) -> None:
    """An envelope that is far too large is refused unread, also when it would be right."""
    run = await _waiting(world)
    good = envelope(await run.waiting(), note="x" * 70_000)
    await raw.signal(world, run, "approve", [as_json(good)])
    assert "malformed" == await refusal_of(run.update({**good, "verdict": "approve"}))
    await _counted(run, 1)


async def test_surrogates_in_an_envelope_match_nothing(world: World) -> None:
    """A lone surrogate becomes a replacement character before anything is compared."""
    run = await _waiting(world)
    data = b'{"operation_id": "op-105\\ud800", "version": 3, "approver": "\\udc00"}'
    await raw.signal(world, run, "approve", [payload(data)])
    state = await run.reaches(lambda state: state.refusals_total == 1)
    assert [("not_pending", "op-105\ufffd", "\ufffd")] == [
        (refusal.code, refusal.operation_id, refusal.approver) for refusal in state.refusals
    ]
    await run.handle.terminate()


async def test_an_update_of_any_payload_is_refused(world: World) -> None:
    """The `review` update refuses every other argument, and every other number of them."""
    run = await _waiting(world)
    good = {**envelope(await run.waiting()), "verdict": "approve"}
    for name, odd in ODD_PAYLOADS.items():
        assert "malformed" == await refusal_of(run.update(RawValue(odd))), name
    for values in ([], [good, good], [good] * 5):
        assert "malformed" == await refusal_of(run.update(*values))
    assert "malformed" == await refusal_of(run.update(RawValue(payload(LARGE))))
    await _nothing_happened(run)


async def test_an_unknown_update_is_refused(world: World) -> None:
    """An update that does not exist is refused by the worker, and the run does not notice."""
    run = await _waiting(world)
    with pytest.raises(WorkflowUpdateFailedError):
        await run.handle.execute_update("approve", envelope(await run.waiting()))
    await _nothing_happened(run)


async def test_an_unknown_query_is_refused(world: World) -> None:
    """A query that does not exist fails for who asked, and the run does not notice."""
    run = await _waiting(world)
    with pytest.raises(WorkflowQueryFailedError):
        await run.handle.query("secrets")
    await _nothing_happened(run)


@pytest.mark.parametrize("name", ["state", "pending", "mutations"])
async def test_a_query_with_arguments_hurts_nobody(world: World, name: str) -> None:
    """Arguments of a query that takes none are an error of who asked, at worst."""
    run = await _waiting(world)
    for odd in (payload(b"{}"), payload(b"\x00", b"binary/plain"), payload(b"{}", b"unheard-of")):
        with suppress(RPCError):
            await raw.query(world, run, name, [odd])
    await _nothing_happened(run)


async def _nothing_happened(run: Run) -> None:
    """See that the run is as it was, and can still be approved."""
    assert 0 == (await run.state()).refusals_total
    assert [] == await run.task_failures()
    assert (await run.review("approve")).accepted
    assert Status.COMPLETED is (await run.response()).status
