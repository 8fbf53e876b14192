"""What a person does with a key while a run is recorded."""

from __future__ import annotations

from datetime import UTC, datetime

from pydantic import JsonValue

from tests.replay.stage import Stage
from tests.workflow.decisions import label
from tests.workflow.runs import Run, envelope
from triage.contracts.approval import Verdict
from triage.contracts.state import PendingView
from triage.signing.tokens import Statement, audience, new_claims, sign


async def approve_by_signal(stage: Stage, run: Run) -> None:
    """Approve what is pending with a signature."""
    await run.signal("approve", await _signed(stage, run))


async def approve_by_update(stage: Stage, run: Run) -> None:
    """Approve what is pending with a signature, and read the answer."""
    answer = await run.update({**await _signed(stage, run), "verdict": "approve"})
    assert answer.accepted, answer


async def _signed(stage: Stage, run: Run) -> dict[str, JsonValue]:
    pending = await run.waiting()
    token = _token(stage, run.id, pending)
    return envelope(pending, approver=stage.key.approver, token=token)


def _token(stage: Stage, workflow_id: str, pending: PendingView) -> str:
    statement = Statement(
        audience=audience(stage.client.namespace),
        workflow_id=workflow_id,
        operation_id=pending.operation_id,
        version=pending.version,
        digest=pending.digest,
        verdict=Verdict.APPROVE,
        approver=stage.key.approver,
    )
    return sign(new_claims(statement, stage.key, datetime.now(UTC)), stage.key)


async def approve_beforehand(stage: Stage, name: str) -> dict[str, JsonValue]:
    """Sign what another run about the same issue waits for, for the run that is about to start."""
    rehearsal = await stage.start(
        label(), mode="approve", context={"repository": name}, run_id=f"{name}-rehearsal"
    )
    pending = await rehearsal.waiting()
    await rehearsal.handle.terminate()
    token = _token(stage, name, pending)
    signed: dict[str, JsonValue] = {
        "version": pending.version,
        "approver": stage.key.approver,
        "token": token,
    }
    return {"approvals": {pending.operation_id: signed}}
