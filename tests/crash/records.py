"""What a run did and left behind, wherever that can be seen: equal unless something went wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Final

from sqlalchemy import select

from tests.crash.scenarios import REPOSITORY
from tests.fakes.commit_log import Entry, read_log
from tests.fakes.control import TrackerControl
from tests.fakes.facts import CARRIED_OUT, RunFacts
from tests.fakes.invariants import Expectations, check_invariants
from tests.fakes.issues import label_sets
from triage.contracts.response import TriageResponse
from triage.contracts.state import DecisionView, StateView
from triage.storage.audit_verify import verify
from triage.storage.engine import Store
from triage.storage.ledger import Ledger
from triage.storage.schema import audit, evidence
from triage.storage.transitions import OperationState
from triage.trackers.local import LocalTracker
from triage.trackers.local_people import IssueRecord

DONE: Final = frozenset({OperationState.APPLIED, OperationState.RECONCILED_APPLIED})
_DONE_ENTRIES: Final = [f"operation.{state}" for state in sorted(DONE)]


@dataclass(frozen=True, kw_only=True)
class Traces:
    """What is left of a run in the store and at the tracker.

    Attributes:
        evidence: version, id and tool of each row in the store, and the digest of what was read.
        operations: id, version, labels and whether it is done, of each row in the ledger.
        receipts: how many of them have a receipt.
        settled: how often the audit trail says that a write is done.
        commits: what the tracker carried out for us, in its own log.
        posts: how many requests that write came in.
        labels: those that the issue has now.
        findings: what is wrong with the store, the audit chain or the log.
    """

    evidence: list[tuple[int, str, str, str]]
    operations: list[tuple[str, int, tuple[str, ...], bool]]
    receipts: int
    settled: int
    commits: list[tuple[str, str]]
    posts: int
    labels: tuple[str, ...]
    findings: list[str]


@dataclass(frozen=True, kw_only=True)
class Record(Traces):
    """What a run did, too.

    Attributes:
        response: what it answered.
        version: how many transitions it made.
        decisions: which decisions it acted on.
    """

    response: TriageResponse
    version: int
    decisions: tuple[DecisionView, ...]


@dataclass(frozen=True, kw_only=True)
class Witness:
    """Where the truth about a run is kept.

    Attributes:
        database_url: the store's.
        commits: the tracker's log.
        tracker: the hand on it; without one, the truth is in the local tracker's tables.
        workflow_id: the run's.
        issue: what it is about.
        allow_repeats: a request that nothing could call back may have gone out again.
    """

    database_url: str
    commits: Path
    tracker: TrackerControl | None
    workflow_id: str
    issue: str
    allow_repeats: bool = False

    async def traces(self, view: StateView | None = None) -> Traces:
        """Collect what the run left; `view` is its own answer, if it can still give one."""
        store = await Store.open(self.database_url)
        try:
            operations = await Ledger(store).list(workflow_id=self.workflow_id)
            commits, labels = await self._remote(store)
            return Traces(
                evidence=await evidence_of(store, {operation.scope for operation in operations}),
                operations=[
                    (o.operation_id, o.version, o.labels, o.state in DONE) for o in operations
                ],
                receipts=sum(o.receipt is not None for o in operations),
                settled=await _settled(store, [o.operation_key for o in operations]),
                commits=commits,
                posts=len(await self.tracker.requests("POST")) if self.tracker else 0,
                labels=labels,
                findings=await self._findings(store, view),
            )
        finally:
            await store.close()

    async def record(self, response: TriageResponse, view: StateView) -> Record:
        """Collect what a run that has ended did and left."""
        traces = await self.traces(view)
        return Record(
            **vars(traces), response=response, version=view.version, decisions=view.decisions
        )

    async def _remote(self, store: Store) -> tuple[list[tuple[str, str]], tuple[str, ...]]:
        if self.tracker is None:
            shown = await LocalTracker(store).show_issue("local", self.issue)
            assert isinstance(shown, IssueRecord), "the issue was never registered"
            commits = [(f"{e.action}", e.label) for e in shown.events if e.label]
            return commits, tuple(sorted({label for _, label in commits}))
        log = read_log(self.commits)
        sets = label_sets(log, REPOSITORY, self.issue)
        return [(e.action.value, e.label or "") for e in _ours(log)], tuple(sorted(sets[-1][1]))

    async def _findings(self, store: Store, view: StateView | None) -> list[str]:
        if self.tracker is None:
            return [str(finding) for finding in await verify(store)]
        expected = Expectations(
            allow_repeats=self.allow_repeats,
            runs=None if view is None else {self.workflow_id: RunFacts(view=view)},
            issues=[(REPOSITORY, self.issue)],
        )
        return await check_invariants(store, self.commits, expected)


def differences(expected: object, seen: object) -> list[str]:
    """Say in which fields two records of a kind differ."""
    assert is_dataclass(expected)
    names = [field.name for field in fields(expected)]
    pairs = [(name, getattr(expected, name), getattr(seen, name)) for name in names]
    return [f"{name}: {found!r} instead of {due!r}" for name, due, found in pairs if due != found]


def _ours(log: Sequence[Entry]) -> list[Entry]:
    return [entry for entry in log if entry.action in CARRIED_OUT and entry.operation]


async def _settled(store: Store, keys: Sequence[str]) -> int:
    query = select(audit.c.seq).where(audit.c.kind.in_(_DONE_ENTRIES), audit.c.subject.in_(keys))
    async with store.read() as connection:
        return len((await connection.execute(query)).all())


async def evidence_of(store: Store, scopes: set[str]) -> list[tuple[int, str, str, str]]:
    """Return the rows that runs left in the evidence store, without the digests of receipts.

    A receipt says how the write was seen, which a disturbance may change.
    """
    e = evidence.c
    query = select(e.version, e.evidence_id, e.tool, e.digest).where(e.scope.in_(scopes))
    async with store.read() as connection:
        rows = (await connection.execute(query.order_by(e.version))).all()
    return [
        (v, name, tool, "" if tool == "apply_labels" else digest) for v, name, tool, digest in rows
    ]
