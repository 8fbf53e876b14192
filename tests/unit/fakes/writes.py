"""Approved writes that go through the real ledger to the fake tracker, for the checker to judge."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from activities.label_rows import approval_row, operation_row
from activities.receipts import How, write_receipt
from tests.fakes.http_tracker import HttpTracker
from tests.unit.fakes.scene import NUMBER, REPOSITORY
from triage.contracts.canonical import digest_of
from triage.contracts.payloads import Approval, Operation, Target, WriteRequest
from triage.storage.ledger import Ledger
from triage.storage.operations import Reserved, operation_key
from triage.storage.transitions import OperationState
from triage.trackers.base import TrackedIssue, TrackerUnavailable

SCOPE: Final = "5c0fe" * 6
WORKFLOW: Final = "triage-101"


def write_request(*labels: str, operation_id: str = "op-1", number: str = NUMBER) -> WriteRequest:
    """Return an approved write of labels."""
    target = Target(tracker="local", repository=REPOSITORY, issue=number)
    digest = digest_of(["apply_labels", target.model_dump(mode="json"), list(labels)])
    operation = Operation(
        operation_id=operation_id,
        version=3,
        tool="apply_labels",
        target=target,
        labels=labels,
        digest=digest,
        approval_digest=digest_of([digest, 3]),
    )
    return WriteRequest(
        scope=SCOPE,
        tenant="default",
        operation=operation,
        approval=Approval(
            approver="maintainer", source="signal", decided_at=datetime.now(UTC).isoformat()
        ),
        content_digest="",
        policy_digest="",
        timeout_ms=5_000,
    )


def key_of(request: WriteRequest) -> str:
    """Return the ledger's key of a write."""
    return operation_key(request.scope, request.operation.operation_id)


@dataclass(frozen=True)
class Writes:
    """A ledger and a tracker, and what a worker does with them."""

    ledger: Ledger
    tracker: HttpTracker

    async def dispatched(self, request: WriteRequest) -> int:
        """Bring a write to where an effect is possible, and return its epoch."""
        row = operation_row(request, WORKFLOW)
        answer = await self.ledger.reserve(row, approval_row(request))
        assert isinstance(answer, Reserved), answer
        assert await self.ledger.dispatch(key_of(request), answer.epoch)
        return answer.epoch

    async def send(self, request: WriteRequest) -> bool:
        """Send a dispatched write; False if the answer left its outcome open."""
        target, labels = request.operation.target, request.operation.labels
        key = key_of(request)
        try:
            await self.tracker.add_labels(
                target.repository, target.issue, labels, by="bounded-triage", operation_key=key
            )
        except TrackerUnavailable as error:
            if not error.effect_possible:
                raise
            return False
        return True

    async def receipt(self, request: WriteRequest, epoch: int, how: How) -> bytes:
        """Look at the issue and write down what is there."""
        issue = await self.tracker.get_issue(REPOSITORY, request.operation.target.issue)
        assert isinstance(issue, TrackedIssue)
        key = key_of(request)
        return write_receipt(request, key, epoch=epoch, how=how, before=(), after=issue.labels)

    async def applied(self, request: WriteRequest) -> str:
        """Carry a write through, as if nothing could go wrong, and return its key."""
        epoch = await self.dispatched(request)
        assert await self.send(request)
        receipt = await self.receipt(request, epoch, "applied_by_us")
        key = key_of(request)
        assert await self.ledger.settle(key, epoch, OperationState.APPLIED, receipt)
        return key

    async def read_back(self, request: WriteRequest) -> str:
        """Send a write whose answer is lost, and settle it by reading; return its key."""
        epoch = await self.dispatched(request)
        assert not await self.send(request)
        key = key_of(request)
        assert await self.ledger.mark_unknown(key, epoch, "no answer")
        receipt = await self.receipt(request, epoch, "readback")
        assert await self.ledger.reconcile(key, epoch, present=True, receipt=receipt)
        return key

    async def refused(self, request: WriteRequest) -> str:
        """Settle a write that the tracker refused; return its key."""
        epoch = await self.dispatched(request)
        key = key_of(request)
        assert await self.ledger.settle(key, epoch, OperationState.FAILED, b"", "issue_locked")
        assert await self.ledger.attention(key, "issue_locked", "operations")
        return key
