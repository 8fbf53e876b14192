"""Whoever reaches the server may run workflows of their own: none writes without a signature."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic import JsonValue
from temporalio import workflow
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from tests.workflow.decisions import a_request
from tests.workflow.runs import Run, outcome
from tests.workflow.test_signed_approvals import Signed, opened_signing
from tests.workflow.world import World
from triage.contracts.approval import Review, Verdict
from triage.contracts.canonical import digest_of
from triage.contracts.intent import Intent
from triage.contracts.names import ISSUE_TRIAGE, writes_queue
from triage.contracts.payloads import (
    Approval,
    Operation,
    RunContext,
    Target,
    WriteOutcome,
    WriteRequest,
    WriteResult,
)
from triage.contracts.response import Status, TriageResponse
from triage.converter import plain
from workflows.carried import Carried, Deadline, Wait
from workflows.review_desk import Decided
from workflows.state import RunState

FAR = "2099-01-01T00:00:00+00:00"


@workflow.defn(name="Stranger", sandboxed=False)
class Stranger:
    """A workflow that somebody else runs on the same server."""

    @workflow.run
    async def run(self, kind: str, queue: str, args: Sequence[Any]) -> Any:  # noqa: ANN401 - either
        """Go on as one of ours, or ask for a write."""
        if kind == "continue":
            workflow.continue_as_new(args=args, workflow=ISSUE_TRIAGE, task_queue=queue)
        return await workflow.execute_activity(
            "apply_labels",
            args[0],
            task_queue=writes_queue(queue),
            start_to_close_timeout=timedelta(seconds=20),
            schedule_to_close_timeout=timedelta(seconds=20),
        )


async def _by_a_stranger(signed: Signed, kind: str, *args: JsonValue) -> Run:
    client, queue = signed.world.client, f"stranger-{uuid.uuid4().hex}"
    async with Worker(
        client,
        task_queue=queue,
        workflows=[Stranger],
        workflow_runner=UnsandboxedWorkflowRunner(),
    ):
        handle = await client.start_workflow(
            "Stranger",
            args=[kind, signed.world.queue, [*args]],
            id=f"forged-{uuid.uuid4().hex}",
            task_queue=queue,
            result_type=TriageResponse if kind == "continue" else WriteResult,
        )
        await handle.result()
        return Run(client.get_workflow_handle(handle.id, result_type=TriageResponse))


def _target(run: Run) -> Target:
    return Target(tracker="local", repository=run.id, issue="ISSUE-1")


def _operation(run: Run) -> Operation:
    target = _target(run)
    digest = digest_of(["apply_labels", target.model_dump(mode="json"), ["bug"]])
    return Operation(
        operation_id="op-6",
        version=6,
        tool="apply_labels",
        target=target,
        labels=("bug",),
        digest=digest,
        approval_digest=digest,
    )


async def _context(run: Run) -> RunContext:
    """Read what an honest run was pinned to out of its history, as anybody can."""
    for event in await run.events():
        marker = event.marker_recorded_event_attributes
        for payload in marker.details["result"].payloads:
            found = plain(payload).data
            if b"content_digest" in found:
                return RunContext.model_validate_json(found)
    raise AssertionError("nothing was pinned")


async def test_a_forged_state_writes_nothing(world: World, tmp_path: Path) -> None:
    """A state that claims to be carried, with an approval in it, meets a write that wants proof."""
    async with opened_signing(world, tmp_path) as signed:
        honest, pending = await signed.waiting()
        context = (await _context(honest)).model_copy(update={"local_trust": True})
        operation = _operation(honest)
        review = Review(operation_id="op-6", version=6, approver="ann", verdict=Verdict.APPROVE)
        wait = Wait(
            intent=Intent(
                tool="apply_labels",
                operation_id="op-6",
                issue="ISSUE-1",
                labels=("bug",),
                proposed_by="model",
                completes="forged",
            ),
            operation=operation,
            view=pending.model_copy(update={"operation_id": "op-6", "version": 6}),
            began=pending.proposed_at,
            deadlines=(Deadline(name="expired", at=FAR),),
            decided=Decided(review=review, source="signal", at=pending.proposed_at),
        )
        carried = Carried(
            state=RunState(status=Status.TOOL_PENDING, version=6, steps=1),
            context=context,
            began=pending.proposed_at,
            waited_seconds=0,
            wait=wait,
        )
        options: JsonValue = {"mode": "approve", "context": {"repository": honest.id}}
        forged = await _by_a_stranger(
            signed, "continue", a_request(), options, carried.model_dump(mode="json")
        )
        assert ("review_required", "policy_block") == outcome(await forged.response())
        assert [] == await signed.world.written(honest)
        await honest.handle.terminate()


async def test_a_forged_request_for_a_write_is_refused(world: World, tmp_path: Path) -> None:
    """The write activity itself wants a signed decision on record, whoever asks it."""
    async with opened_signing(world, tmp_path) as signed:
        honest, pending = await signed.waiting()
        context = await _context(honest)
        request = WriteRequest(
            scope="f" * 32,
            tenant="default",
            operation=_operation(honest),
            approval=Approval(
                approver="ann", source="signal", decided_at=pending.proposed_at, expires_at=FAR
            ),
            content_digest=context.content_digest,
            policy_digest=context.provenance.policy,
            timeout_ms=500,
        )
        forged = await _by_a_stranger(signed, "write", request.model_dump(mode="json"))
        result: WriteResult = await world.client.get_workflow_handle(
            forged.id, result_type=WriteResult
        ).result()
        assert WriteOutcome.REFUSED is result.outcome
        assert "no signed approval" in result.detail
        assert [] == await signed.world.written(honest)
        await honest.handle.terminate()
