"""What a soak came to: every breach of an invariant, and what happened, in figures."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from temporalio.client import Client, WorkflowExecutionStatus

from tests.fakes.commit_log import read_log
from tests.fakes.facts import TOLERANCE_SECONDS, Facts, RunFacts, not_after, read_facts
from tests.fakes.invariants import Expectations, RunLimits, check_invariants
from tests.soak.disasters import Stop
from tests.soak.histories import fetched, obstacle, replayed
from tests.soak.people import Approved
from tests.soak.plans import REPOSITORY, RunPlan
from triage.contracts.names import QUERY_STATE
from triage.contracts.state import StateView
from triage.storage.audit import AuditHead
from triage.storage.engine import Store
from triage.storage.operations import OperationRecord
from triage.storage.transitions import OperationState

LIMITS: Final = RunLimits(
    steps=8, tool_calls=12, evidence_bytes=65_536, history_events=400, history_bytes=400_000
)
SEND_SECONDS: Final = 7.0
"""The longest that a commit may follow its last look at the switch, with time to spare."""

_ABREAST: Final = 8
_ASK_SECONDS: Final = 60.0
_CUT_SHORT: Final = frozenset(
    {WorkflowExecutionStatus.TERMINATED, WorkflowExecutionStatus.CANCELED}
)


@dataclass(frozen=True, kw_only=True)
class Witness:
    """What was seen.

    Attributes:
        queue: of all runs.
        plans: what was meant to happen to each run, by workflow id.
        closed: how each ended.
        faults: how many there were, by kind.
        deeds: what people did, by kind.
        stops: when writes were stopped.
        approved: what people approved.
        heads: of the audit chains, as they were now and then.
        log: the tracker's commits.
        folder: where everything was kept.
        calm_at: when the faults ended, in seconds since 1970.
        late: whether something was not settled within the bound.
    """

    queue: str
    plans: Mapping[str, RunPlan]
    closed: Mapping[str, WorkflowExecutionStatus]
    faults: Counter[str]
    deeds: Counter[str]
    stops: Sequence[Stop]
    approved: Collection[Approved]
    heads: Sequence[AuditHead]
    log: Path
    folder: Path
    calm_at: float
    late: bool


@dataclass
class Verdict:
    """The result of a soak; it is good if `breaches` is empty."""

    breaches: list[str]
    faults: Counter[str]
    deeds: Counter[str]
    runs: Counter[str]
    operations: Counter[str]
    slowest: tuple[float, str] = (0.0, "")
    last: float = 0.0
    histories: int = 0

    def exits(self, statuses: Sequence[int | None]) -> None:
        """Take down how the workers ended when they were asked to."""
        self.breaches += [
            f"a worker ended with status {status} when it was stopped"
            for status in statuses
            if status
        ]

    def lines(self) -> Iterator[str]:
        """Tell of it in a table."""
        for title, counts in (
            ("faults", self.faults),
            ("what people did", self.deeds),
            ("runs", self.runs),
            ("operations", self.operations),
        ):
            yield f"{title}: {sum(counts.values())}"
            yield from (f"  {count:6d}  {kind}" for kind, count in sorted(counts.items()))
        seconds, key = self.slowest
        yield f"slowest operation: {seconds:.1f} s from its reservation to its end ({key})"
        yield f"last operation: settled {self.last:.1f} s after the last fault"
        yield f"histories replayed: {self.histories}"
        yield f"breaches: {len(self.breaches)}"
        yield from (f"  {breach}" for breach in self.breaches)


async def judge(witness: Witness, store: Store, client: Client) -> Verdict:
    """Hold everything that was left behind against the invariants."""
    facts = await read_facts(store, lambda: read_log(witness.log))
    runs = await _runs(witness, client)
    stuck = [name for name in witness.plans if name not in witness.closed]
    expected = Expectations(
        heads=witness.heads,
        runs=runs,
        limits=LIMITS,
        issues={(REPOSITORY, plan.issue) for plan in witness.plans.values()},
        allow_repeats=True,
    )
    breaches = await check_invariants(store, witness.log, expected)
    breaches += [
        *_unfinished(witness),
        *[f"run {name} does not end: {await obstacle(client, name)}" for name in stuck],
        *sent_while_stopped(facts, witness.stops),
        *sent_unapproved(facts, witness.approved),
    ]
    files = await fetched(client, witness.queue, witness.folder / "histories")
    breaches += await replayed(files)
    return Verdict(
        breaches=breaches,
        faults=witness.faults,
        deeds=witness.deeds,
        runs=Counter(_ending(witness, runs, name) for name in witness.plans),
        operations=Counter(map(_state, facts.operations.values())),
        slowest=max(_durations(facts), default=(0.0, "")),
        last=max([0.0, *(r.updated_at.timestamp() for r in facts.operations.values())])
        - witness.calm_at,
        histories=len(files),
    )


async def _runs(witness: Witness, client: Client) -> dict[str, RunFacts]:
    """Ask every run that came to its own end what it says of itself."""
    turns = asyncio.Semaphore(_ABREAST)

    async def ask(name: str) -> tuple[str, RunFacts]:
        handle = client.get_workflow_handle(name)
        async with turns, asyncio.timeout(_ASK_SECONDS):
            view = await handle.query(QUERY_STATE, result_type=StateView)
            info = (await handle.describe()).raw_description.workflow_execution_info
        return name, RunFacts(
            view=view,
            history_bytes=info.history_size_bytes,
            history_events=info.history_length,
        )

    names = [name for name, status in witness.closed.items() if status not in _CUT_SHORT]
    return dict(await asyncio.gather(*map(ask, names)))


def _unfinished(witness: Witness) -> Iterator[str]:
    """What took too long, or ended in a way that only a fault of the platform explains."""
    if witness.late:
        yield "the runs and operations were not settled within the bound"
    for name, status in witness.closed.items():
        if status not in _CUT_SHORT | {WorkflowExecutionStatus.COMPLETED}:
            yield f"run {name} ended as {status.name}"


def sent_while_stopped(facts: Facts, stops: Sequence[Stop]) -> Iterator[str]:
    """The switch: nothing is committed for a dispatch that came after writes were stopped.

    Nor long after that for one that came before.
    """
    for entry in facts.commits:
        record = facts.operations.get(entry.operation or "")
        if record is None:
            continue
        dispatched = facts.moved_to(record.operation_key, OperationState.DISPATCHED)
        times = [move.at.timestamp() for move in dispatched if not_after(move.at, entry)]
        for stop in stops:
            concerns = stop.tenant in {None, record.tenant}
            if not concerns or not times or not stop.since < entry.time < stop.until:
                continue
            seconds, since_dispatch = entry.time - stop.since, entry.time - times[-1]
            if times[-1] > stop.since + TOLERANCE_SECONDS or seconds > SEND_SECONDS:
                yield (
                    f"switch: {record.operation_key} put {entry.label!r} on {seconds:.1f} s after"
                    f" writes were stopped, {since_dispatch:.1f} s after its dispatch"
                )


def sent_unapproved(facts: Facts, approved: Collection[Approved]) -> Iterator[str]:
    """The people: what was dispatched is what they approved, whatever the ledger says of it."""
    for key, record in facts.operations.items():
        for move in facts.moved_to(key, OperationState.DISPATCHED):
            version = move.details["version"]
            if Approved(record.workflow_id, record.operation_id, version) not in approved:
                yield f"people: {key} was dispatched at version {version}, which nobody approved"


def _ending(witness: Witness, runs: Mapping[str, RunFacts], name: str) -> str:
    """Say in a few words how a run ended."""
    status = witness.closed.get(name)
    found = runs.get(name)
    if found is None or found.view.response is None:
        return "running" if status is None else status.name.lower()
    response = found.view.response
    return response.status.value + (f": {response.failure.value}" if response.failure else "")


def _state(record: OperationRecord) -> str:
    """Say in a few words how an operation ended."""
    words = record.state.value
    if record.state is OperationState.APPLIED and record.dispatches > 1:
        words += " after another try"
    return f"{words}, a person is asked: {record.reason}" if record.attention_at else words


def _durations(facts: Facts) -> Iterator[tuple[float, str]]:
    """Return how long each operation took, from its first reservation on."""
    for key, record in facts.operations.items():
        yield (record.updated_at - record.created_at).total_seconds(), key
