"""Writes that runs leave behind: real runs on a real server, real rows, a real local tracker."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from temporalio.client import Client, WorkflowHandle

from activities.label_sending import ACTOR
from activities.services import Services
from activities.sweeper import Outcome, Sweeper, Swept
from triage.contracts.canonical import canonical_json, digest_of, short_hash
from triage.contracts.names import ISSUE_TRIAGE
from triage.storage.approvals import ApprovalRow, ApprovalSource, Verdict
from triage.storage.operations import OperationRecord, OperationRow, Reserved, operation_key
from triage.storage.transitions import OperationState
from triage.trackers.local import LocalTracker
from triage.trackers.local_people import IssueRecord

TENANT = "default"
REPOSITORY, ISSUE = "r", "1"
LEASE, QUIET = timedelta(seconds=60), timedelta(seconds=120)
A_MOMENT = timedelta(seconds=1)

S = OperationState
Handle = WorkflowHandle[Any, Any]


@dataclass
class Leftovers:
    """A client, the production stores, and the far end of the writes."""

    client: Client
    services: Services
    tracker: LocalTracker

    async def run(self, workflow_id: str | None = None, **options: Any) -> Handle:  # noqa: ANN401 - the SDK's options
        """Start a run that no worker carries."""
        return await self.client.start_workflow(
            ISSUE_TRIAGE,
            id=workflow_id or f"run-{uuid.uuid4().hex}",
            task_queue="nobody",
            **options,
        )

    async def terminated(self) -> Handle:
        """Start a run and terminate it."""
        handle = await self.run()
        await handle.terminate()
        return handle

    async def row(self, run: Handle, state: OperationState, label: str = "bug") -> str:
        """Bring a write of a run to `state`, as its attempts would, and return its key."""
        ledger = self.services.ledger
        row = operation_row(run, label)
        answer = await ledger.reserve(row, approval_row(row))
        assert isinstance(answer, Reserved), answer
        key, epoch = row.operation_key, answer.epoch
        if state is not S.RESERVED:
            assert await ledger.dispatch(key, epoch)
        if state in {S.UNKNOWN, S.RECONCILED_ABSENT}:
            assert await ledger.mark_unknown(key, epoch, "no answer")
        if state is S.RECONCILED_ABSENT:
            self.pass_time(QUIET + A_MOMENT)
            assert await ledger.reconcile(key, epoch, present=False)
        return key

    async def commit(self, key: str, label: str = "bug") -> None:
        """Let the call of a write arrive."""
        done = await self.tracker.add_labels(
            REPOSITORY, ISSUE, [label], by=ACTOR, operation_key=key
        )
        assert (label,) == done.added

    async def sweep(self) -> Swept:
        """Make one pass."""
        return await Sweeper(self.client, self.services).sweep()

    async def swept(self, key: str) -> tuple[Outcome | None, OperationState]:
        """Make one pass, and say what it did about a write and where that stands now."""
        outcome = (await self.sweep()).outcomes.get(key)
        return outcome, (await self.record(key)).state

    async def record(self, key: str) -> OperationRecord:
        """The ledger's row of a write."""
        record = await self.services.ledger.get(key)
        assert record is not None
        return record

    async def written(self) -> list[str]:
        """The labels that were ever put on the issue."""
        shown = await self.tracker.show_issue(REPOSITORY, ISSUE)
        assert isinstance(shown, IssueRecord), "the tracker does not know the issue"
        return [event.label for event in shown.events if event.label and event.action == "added"]

    def pass_time(self, span: timedelta) -> None:
        """Move the clock of the database on."""
        self.services.store._offset += span


async def opened(client: Client, services: Services) -> Leftovers:
    """Set the far end up: one issue, and the labels that its repository has."""
    tracker = LocalTracker(services.store)
    await tracker.seed_labels(REPOSITORY, ["bug", "documentation"])
    await tracker.create_issue(
        REPOSITORY, title="It fails", body="Always.", author="eve", number=ISSUE
    )
    services = replace(services, trackers={"local": tracker})
    return Leftovers(client=client, services=services, tracker=tracker)


def operation_row(run: Handle, label: str = "bug", tracker: str = "local") -> OperationRow:
    """The row of a run's write, named as the write activity names it."""
    scope = short_hash(TENANT, run.id, run.first_execution_run_id or "")
    target = {"tracker": tracker, "repository": REPOSITORY, "issue": ISSUE}
    return OperationRow(
        operation_key=operation_key(scope, f"op-{label}"),
        scope=scope,
        tenant=TENANT,
        workflow_id=run.id,
        operation_id=f"op-{label}",
        version=3,
        operation_type="apply_labels",
        digest=digest_of(["apply_labels", target, [label]]),
        target=canonical_json(target).decode(),
        arguments=canonical_json([label]).decode(),
        labels=(label,),
    )


def approval_row(row: OperationRow) -> ApprovalRow:
    """A reviewer's approval of exactly `row`."""
    return ApprovalRow(
        approval_id=f"approval-{row.operation_key}",
        scope=row.scope,
        operation_key=row.operation_key,
        operation_id=row.operation_id,
        version=row.version,
        digest=digest_of([row.digest, row.version]),
        operation_digest=row.digest,
        verdict=Verdict.APPROVE,
        approver="maintainer",
        source=ApprovalSource.UPDATE,
    )
