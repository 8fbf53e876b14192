"""The one call that writes: which labels, as whom, held to the ids that were approved; or not."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from activities.label_answers import no_label
from activities.services import Services
from triage.contracts.failures import LABEL_REMOVED
from triage.contracts.payloads import Operation, WriteOutcome, WriteRequest
from triage.trackers.abilities import HasLabelIds, KeepsTurns
from triage.trackers.base import LabelsAdded, Tracker
from triage.trackers.inventory import Inventory
from triage.trackers.reading import Overview

ACTOR = "bounded-triage"
CALLS_A_LEASE = 3
"""So many calls, each as long as it may be, fit into a lease: the last look, the write, and reading
it back."""


async def send_labels(
    tracker: Tracker, operation: Operation, labels: Sequence[str], operation_key: str
) -> LabelsAdded:
    """Add labels to the operation's issue, once; raises what `Tracker.add_labels` raises.

    Where the labels were shown with their ids, and the tracker has some, it adds no others.
    """
    at, pinned = operation.target, operation.label_ids
    if pinned and isinstance(tracker, HasLabelIds):
        wanted = {name: id_ for name, id_ in pinned.items() if name in operation.labels}
        return await tracker.add_labels(
            at.repository,
            at.issue,
            labels,
            by=ACTOR,
            operation_key=operation_key,
            pinned=wanted,
        )
    return await tracker.add_labels(
        at.repository, at.issue, labels, by=ACTOR, operation_key=operation_key
    )


def objection(
    request: WriteRequest, operation: Operation, seen: Overview
) -> tuple[str, WriteOutcome] | None:
    """Say what of the issue, or of the repository's labels, speaks against the write."""
    if seen.issue.content_digest != request.content_digest:
        return "the issue changed after it was shown", WriteOutcome.CONFLICT
    if changed := seen.inventory.change(operation.label_ids or {}):
        return changed.value, WriteOutcome.CONFLICT
    if missing := seen.inventory.lacks(operation.labels):
        return no_label(missing), WriteOutcome.REFUSED
    if seen.removed:
        return LABEL_REMOVED, WriteOutcome.REFUSED
    return None


def has_its_turn(tracker: Tracker, operation_key: str) -> bool:
    """Whether a write may be sent soon; while others are before it, it is not even begun."""
    if not isinstance(tracker, KeepsTurns):
        return True
    return tracker.seconds_to_turn(operation_key) is not None


def pinned_at(operation: Operation, inventory: Inventory) -> Operation:
    """Hold an operation to the labels that the repository has now, beside those it is held to.

    What was approved before a run began may name a label that was not there then, and what an
    older run asks for names no ids. From the last look on it means the labels that were seen there:
    one that is made again after that is another label, and nothing is sent.
    """
    if not inventory.has_ids:
        return operation
    ids = {**inventory.ids(operation.labels), **(operation.label_ids or {})}
    return operation.model_copy(update={"label_ids": ids})


def call_seconds(services: Services, request: WriteRequest) -> float:
    """How long one call may take: enough on a busy machine, and no longer than the lease bears."""
    seconds = max(request.timeout_ms / 1_000, services.write_timeout.total_seconds())
    return min(seconds, services.ledger.timings.lease_seconds / CALLS_A_LEASE)


def send_by(services: Services) -> float:
    """Return until when a write that was looked at now may be sent, by `clock`."""
    return clock() + services.ledger.timings.lease_seconds / CALLS_A_LEASE


def clock() -> float:
    """Return the time in seconds, by a clock that nobody sets."""
    return asyncio.get_running_loop().time()
