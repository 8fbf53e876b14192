"""Whether the invariants hold, after whatever a test did: an empty list says that they do.

Why it exists: a fault test that looks only at the fault it made proves little. This looks at all
that the store and the tracker's own log can show, whatever the fault was. I8 (no secret in any
sink) and I11 (every history replays) need other material and are checked elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from tests.fakes.commit_log import Entry, read_log
from tests.fakes.facts import Facts, RunFacts, read_facts
from tests.fakes.http_tracker import BOT
from tests.fakes.remote_invariants import approved, nothing_else, one_commit, receipts
from triage.contracts.response import Status
from triage.storage.audit import AuditHead
from triage.storage.audit_verify import verify
from triage.storage.engine import Store
from triage.storage.operations import OperationRecord
from triage.storage.transitions import SETTLED, OperationState

_S = OperationState
_DONE: Final = frozenset({_S.APPLIED, _S.RECONCILED_APPLIED})
_SAID_DONE: Final = frozenset({"applied", "replayed"})
_SAID_NOTHING: Final = frozenset({"failed", "refused"})
_OVERTAKEN: Final = frozenset({*_SAID_NOTHING, "conflict"})


@dataclass(frozen=True, kw_only=True)
class RunLimits:
    """What no run may exceed; None is not checked."""

    steps: int | None = None
    tool_calls: int | None = None
    tokens: int | None = None
    cost_micros: int | None = None
    seconds: int | None = None
    evidence_bytes: int | None = None
    history_bytes: int | None = None
    history_events: int | None = None


@dataclass(frozen=True, kw_only=True)
class Expectations:
    """What a test knows beside the store and the log.

    Attributes:
        settled: everything has had its time, so that nothing may be in progress any more.
        allow_repeats: a process was stopped between the last look and the first byte, or later.
        heads: the audit chains' heads as they were kept elsewhere.
        ours: the names under which triage acts on the tracker.
        runs: the workflows, by id.
        limits: what each of `runs` is held to.
        issues: repository and number of every issue that a run is about.
    """

    settled: bool = True
    allow_repeats: bool = False
    heads: Sequence[AuditHead] = ()
    ours: Collection[str] = (BOT,)
    runs: Mapping[str, RunFacts] | None = None
    limits: RunLimits = RunLimits()
    issues: Collection[tuple[str, str]] | None = None


async def check_invariants(
    store: Store, commit_log: Path | Sequence[Entry], expected: Expectations | None = None
) -> list[str]:
    """Return every breach of I1 to I7, I9 and I10 that the store and the log show.

    Args:
        store: the ledger's; nothing is changed in it.
        commit_log: the tracker's, as a file or as its entries. With the file this may be called
            while everything is under way.
        expected: what else is known.
    """
    expected = expected or Expectations()
    read = partial(read_log, commit_log) if isinstance(commit_log, Path) else lambda: commit_log
    found = await read_facts(store, read)
    facts = replace(found, ours=frozenset(expected.ours), runs=expected.runs or {})
    findings = await verify(store, expected.heads)
    return [
        *one_commit(facts, allow_repeats=expected.allow_repeats),
        *approved(facts),
        *one_use(facts),
        *ended(facts, settled=expected.settled),
        *receipts(facts),
        *agreed(facts),
        *(f"I7: entry {f.seq} of an audit chain is {f.code}" for f in findings),
        *audited(facts),
        *within_limits(facts, expected.limits),
        *nothing_else(facts, expected.issues),
    ]


def one_use(facts: Facts) -> Iterator[str]:
    """I3: an approval is used by one operation, its own, and that use was a dispatch."""
    tokens = Counter(c.token_id for c in facts.consents if c.token_id is not None)
    yield from (f"I3: one token approved {n} operations" for n in tokens.values() if n > 1)
    for consent in facts.consents:
        if consent.consumed_by is None:
            continue
        if consent.consumed_by != consent.operation_key:
            yield f"I3: {consent.consumed_by} used the approval of {consent.operation_key}"
        record = facts.operations.get(consent.operation_key)
        if record is not None and record.scope != consent.scope:
            yield f"I3: {consent.operation_key} used an approval of another scope"
        dispatched = facts.moved_to(consent.operation_key, _S.DISPATCHED)
        if consent.version not in {move.details["version"] for move in dispatched}:
            yield f"I3: an approval of {consent.operation_key} was used without a dispatch"


def ended(facts: Facts, *, settled: bool) -> Iterator[str]:
    """I4: every operation is over or a person is asked; before that time, it may be under way."""
    for key, record in facts.operations.items():
        asked = record.attention_at is not None
        told = bool(record.attention_owner and record.reason)
        if (asked or record.state is _S.ATTENTION) and not (asked and told):
            yield f"I4: {key} needs attention without a reason, an owner or a time"
        # Absent, with a name and a reason: a person has looked, and that was that.
        looked_at = record.state is _S.RECONCILED_ABSENT and told
        if settled and record.state not in SETTLED and not (asked or looked_at):
            yield f"I4: {key} is still {record.state}"


def agreed(facts: Facts) -> Iterator[str]:
    """I6: a run says of its writes what the ledger says."""
    for workflow_id, run in facts.runs.items():
        owned = {
            record.operation_id: record
            for record in facts.operations.values()
            if record.workflow_id == workflow_id
        }
        said = {operation.operation_id: "" for operation in run.view.operations}
        for operation in run.view.operations:
            record = owned.get(operation.operation_id or "")
            said[operation.operation_id] += f" {operation.state}"
            yield from _disagreement(record, operation.state, operation.digest)
        for operation_id, record in owned.items():
            heard = {*_SAID_DONE, "unknown"} & set(said.get(operation_id, "").split())
            if record.state in _DONE and not run.running and not heard:
                yield f"I6: {record.operation_key} is {record.state}, and its run does not say so"
        yield from _ending(workflow_id, run)


def _disagreement(record: OperationRecord | None, said: str, digest: str) -> Iterator[str]:
    if said in _SAID_DONE and (record is None or record.state not in _DONE):
        state = "not in the ledger" if record is None else record.state
        yield f"I6: a run says {said} of an operation that is {state}"
    done = record is not None and record.state in _DONE and record.digest == digest
    if said in _SAID_NOTHING and record is not None and done:
        yield f"I6: a run says {said} of {record.operation_key}, which is {record.state}"


def _ending(workflow_id: str, run: RunFacts) -> Iterator[str]:
    over = run.view.status in {Status.COMPLETED, Status.FAILED, Status.REVIEW_REQUIRED}
    if over is run.running:
        now = "runs" if run.running else "is over"
        yield f"I6: {workflow_id} says {run.view.status} and {now}"
    last = {operation.operation_id: operation for operation in run.view.operations}
    done = max((one.version for one in last.values() if one.state in _SAID_DONE), default=0)
    open_ = {
        one.state
        for one in last.values()
        if one.state not in {*_SAID_DONE, "withdrawn"}
        # What came to nothing ends a run, unless an edit overtakes it: then another one is done.
        and not (one.state in _OVERTAKEN and one.version < done)
    }
    if run.view.status is Status.COMPLETED and open_:
        yield f"I6: {workflow_id} is completed with a write that is not: {sorted(open_)}"


def audited(facts: Facts) -> Iterator[str]:
    """I7: the trail tells the ledger's story, each move once, and the ledger the trail's."""
    for key, record in facts.operations.items():
        states = [move.state for move in facts.moves(key)]
        if record.state is _S.FAILED:  # A person may be asked about it where it stands.
            states = [state for state in states if state is not _S.ATTENTION]
        if not states or states[-1] is not record.state:
            yield f"I7: {key} is {record.state}, and its trail ends otherwise"
        if states.count(_S.DISPATCHED) != record.dispatches:
            yield f"I7: {key} has {record.dispatches} dispatches, and its trail another number"
        if sum(state in _DONE for state in states) > 1:
            yield f"I7: the trail says more than once that {key} is done"
    known = {*facts.operations, *facts.buried}
    strangers = {e.subject for e in facts.audit if e.state is not None} - known
    yield from (f"I7: the trail tells of {key}, which is gone" for key in sorted(strangers))
    yield from _recorded(facts)


def _recorded(facts: Facts) -> Iterator[str]:
    told = Counter(
        entry.details["approval_id"] for entry in facts.audit if entry.kind == "approval.recorded"
    )
    kept = Counter(consent.approval_id for consent in facts.consents)
    if told != kept:
        differ = sorted({*(told - kept), *(kept - told)})
        yield f"I7: {len(differ)} approvals are not once in the trail and once in the store"


def within_limits(facts: Facts, limits: RunLimits) -> Iterator[str]:
    """I9: no run has used more than it may."""
    for workflow_id, run in facts.runs.items():
        used = {
            "steps": run.view.steps,
            "tool_calls": len(run.view.tool_sequence),
            "tokens": run.view.spent.tokens,
            "cost_micros": run.view.spent.cost_micros,
            "seconds": run.view.spent.seconds,
            "evidence_bytes": run.view.spent.evidence_bytes,
            "history_bytes": run.history_bytes,
            "history_events": run.history_events,
        }
        for name, amount in used.items():
            limit: int | None = getattr(limits, name)
            if limit is not None and amount > limit:
                yield f"I9: {workflow_id} used {amount} {name} of {limit}"
