"""One write as the platform carries it: attempt after attempt, on a clock that tests move."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.labels import LabelActivities
from activities.services import Services
from tests.activities.scripted_tracker import ScriptedTracker
from tests.still_store import StillStore
from triage.contracts.canonical import digest_of
from triage.contracts.payloads import Approval, Operation, Target, WriteRequest, WriteResult
from triage.storage.approvals import Approvals
from triage.storage.operations import OperationRecord, operation_key
from triage.storage.transitions import SETTLED, OperationState

MAX_ATTEMPTS = 100
TARGET = Target(tracker="scripted", repository="r", issue="1")
APPLIED = {OperationState.APPLIED, OperationState.RECONCILED_APPLIED}


@dataclass
class Writing:
    """The far end, the ledger and the clock of some writes."""

    tracker: ScriptedTracker
    services: Services
    store: StillStore
    waited: timedelta = timedelta()
    attempts: int = 0

    def request(
        self,
        *labels: str,
        operation_id: str = "op-105",
        version: int = 3,
        scope: str = "",
        expires_in: timedelta | None = None,
    ) -> WriteRequest:
        """An approved write of labels, on the issue as it is now."""
        names = labels or ("bug",)
        digest = digest_of(["apply_labels", TARGET.model_dump(mode="json"), list(names)])
        now = self.store.moment
        return WriteRequest(
            scope=scope or uuid.uuid4().hex,
            tenant="default",
            operation=Operation(
                operation_id=operation_id,
                version=version,
                tool="apply_labels",
                target=TARGET,
                labels=names,
                digest=digest,
                approval_digest=digest_of([digest, version]),
            ),
            approval=Approval(
                approver="maintainer",
                source="update",
                decided_at=now.isoformat(),
                expires_at=(now + expires_in).isoformat() if expires_in else None,
            ),
            content_digest=self.tracker.digest,
            policy_digest="sha256:" + "0" * 64,
            timeout_ms=100,
        )

    async def attempt(self, request: WriteRequest) -> WriteResult:
        """Run one attempt of the activity.

        Raises:
            ApplicationError: of type ``try_later``.
        """
        self.attempts += 1
        env = ActivityEnvironment()
        env.info = replace(env.info, attempt=self.attempts, workflow_id="triage-1")
        result: WriteResult = await env.run(LabelActivities(self.services).apply, request)
        return result

    async def carry(
        self, request: WriteRequest, meanwhile: Callable[[timedelta], None] | None = None
    ) -> WriteResult:
        """Run attempts as the platform does, each after the pause that the last one asked for.

        Args:
            request: the write.
            meanwhile: is told of each pause, and may change the far end in it.
        """
        for _ in range(MAX_ATTEMPTS):
            pause = await self._attempted(request)
            if isinstance(pause, WriteResult):
                return pause
            self.pass_time(pause)
            if meanwhile is not None:
                meanwhile(pause)
        raise AssertionError("the write is never settled")

    async def _attempted(self, request: WriteRequest) -> WriteResult | timedelta:
        try:
            return await self.attempt(request)
        except ApplicationError as error:
            if error.type != "try_later" or error.next_retry_delay is None:
                raise
            return error.next_retry_delay

    def expect_silence(self) -> None:
        """Give up soon on a call: to wait for an answer that never comes takes real time."""
        self.services = replace(self.services, write_timeout=timedelta(milliseconds=100))

    def pass_time(self, span: timedelta) -> None:
        """Move the clock of the database on."""
        self.waited += span
        self.store.pass_time(span)

    async def record(self, request: WriteRequest) -> OperationRecord:
        """The ledger's row of a write."""
        key = operation_key(request.scope, request.operation.operation_id)
        record = await self.services.ledger.get(key)
        assert record is not None
        return record

    async def check(self, request: WriteRequest) -> OperationRecord:
        """See that the ledger, the far end and the approval agree, whatever went wrong."""
        record = await self.record(request)
        commits = [c for c in self.tracker.commits if c.operation_key == record.operation_key]
        labels = [label for commit in commits for label in commit.labels]
        assert len(labels) == len(set(labels)), commits
        visible = record.state in SETTLED or record.attention_at is not None
        assert visible, f"nobody sees a write that is {record.state}"
        if commits:
            approval = await Approvals(self.store).get(record.operation_key, record.version)
            assert approval is not None
            assert record.operation_key == approval.consumed_by
            assert record.state in APPLIED | {OperationState.ATTENTION}, record.state
        if record.state in APPLIED:
            assert record.receipt is not None
            assert set(record.labels) <= self.tracker.labels | self.tracker.removed
        return record
