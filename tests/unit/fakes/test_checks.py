"""Each invariant's check is silent on what really happened and speaks when one thing is changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.fakes.commit_log import Action, Entry, Via
from tests.fakes.control import TrackerControl
from tests.fakes.facts import Facts, RunFacts, read_facts
from tests.fakes.faults import dropped_after
from tests.fakes.invariants import RunLimits, agreed, audited, ended, one_use, within_limits
from tests.fakes.remote_invariants import approved, nothing_else, one_commit, receipts
from tests.fakes.tracker import serving
from tests.unit.fakes.scene import LABELS, NUMBER, REPOSITORY
from tests.unit.fakes.writes import WORKFLOW, Writes, key_of, write_request
from triage.contracts.canonical import canonical_json, digest_of_bytes
from triage.contracts.payloads import Provenance
from triage.contracts.response import Status
from triage.contracts.state import OperationView, SpentView, StateView
from triage.storage.engine import Store
from triage.storage.ledger import Ledger
from triage.storage.migrate import upgrade
from triage.storage.operations import OperationRecord
from triage.storage.transitions import OperationState

Check = Callable[[Facts], Iterator[str]]

KEY = key_of(write_request("bug"))
OTHER = key_of(write_request("component:api", operation_id="op-2"))
DIGEST = write_request("bug").operation.digest
LATER = datetime.now(UTC) + timedelta(days=1)
EVERY: Mapping[str, Check] = {
    "I1": one_commit,
    "I2": approved,
    "I3": one_use,
    "I4": lambda facts: ended(facts, settled=True),
    "I5": receipts,
    "I6": agreed,
    "I7": audited,
    "I10": nothing_else,
}


@pytest.fixture(scope="module")
async def facts(tmp_path_factory: pytest.TempPathFactory) -> Facts:
    """What is left after two writes, of which the second was settled by reading back."""
    folder = tmp_path_factory.mktemp("facts")
    url = f"sqlite:///{folder / 'triage.db'}"
    await upgrade(url)
    store = await Store.open(url)
    try:
        async with serving(folder / "commits.jsonl") as running:
            control = TrackerControl(running.api.address, running.control.address)
            await control.define_labels(REPOSITORY, LABELS)
            for number in (NUMBER, "102"):
                await control.open_issue(REPOSITORY, number, title="Crash")
            writes = Writes(Ledger(store, quiet_period_seconds=0), control.client())
            await writes.applied(write_request("bug"))
            await control.plan(dropped_after())
            await writes.read_back(write_request("component:api", operation_id="op-2"))
            log = await control.log()
        return await read_facts(store, lambda: log)
    finally:
        await store.close()


def commit(facts: Facts, **changes: Any) -> Facts:  # noqa: ANN401 - any field of an entry
    """Add a line to the log: the first commit again, with changes."""
    first = next(entry for entry in facts.log if entry.action is Action.LABELED)
    added = replace(first, **{"seq": len(facts.log) + 1, **changes})
    return replace(facts, log=[*facts.log, added], early=len(facts.log) + 1)


def record(facts: Facts, **changes: Any) -> Facts:  # noqa: ANN401 - any field of a record
    """Change the first operation's row."""
    changed = replace(facts.operations[KEY], **changes)
    return replace(facts, operations={**facts.operations, KEY: changed})


def consent(facts: Facts, **changes: Any) -> Facts:  # noqa: ANN401 - any field of a consent
    """Change the first operation's approval."""
    consents = [replace(c, **changes) if c.operation_key == KEY else c for c in facts.consents]
    return replace(facts, consents=consents)


def receipt(facts: Facts, **changes: Any) -> Facts:  # noqa: ANN401 - any field of a receipt
    """Change what the first operation's receipt says, as if it had been written so."""
    found = facts.operations[KEY].receipt
    assert found is not None
    told = {"how": "applied_by_us", "after": ["bug"], "operation_key": KEY, "digest": DIGEST}
    data = canonical_json({**told, "version": 3, **changes})
    return record(facts, receipt=data, receipt_digest=digest_of_bytes(data))


def without_move(facts: Facts, state: OperationState) -> Facts:
    """Take a move of the first operation out of the trail."""
    kept = [e for e in facts.audit if (e.subject, e.state) != (KEY, state)]
    return replace(facts, audit=kept)


def twice(facts: Facts, kind: str) -> Facts:
    """Repeat an entry of the first operation at the end of the trail."""
    found = next(e for e in facts.audit if (e.subject, e.kind) == (KEY, kind))
    return replace(facts, audit=[*facts.audit, found])


def run(
    facts: Facts,
    *states: str,
    status: Status = Status.COMPLETED,
    running: bool = False,
    **more: int,
) -> Facts:
    """Let the operations' run be known, with what it says of the first."""
    said = [("op-1", DIGEST, state) for state in states or ("applied",)]
    said.append(("op-2", facts.operations[OTHER].digest, "applied"))
    view = StateView(
        status=status,
        version=4,
        steps=more.get("steps", 3),
        retries=0,
        tool_sequence=("search",),
        decisions=(),
        evidence=(),
        pending=None,
        refusals=(),
        refusals_total=0,
        operations=tuple(
            OperationView(operation_id=name, version=3, digest=digest, state=state)
            for name, digest, state in said
        ),
        spent=SpentView(
            tokens=more.get("tokens", 10), cost_micros=0, seconds=1, evidence_bytes=100
        ),
        provenance=Provenance(**dict.fromkeys(Provenance.model_fields, "")),
        response=None,
    )
    known = RunFacts(view=view, running=running, history_bytes=1_000, history_events=20)
    return replace(facts, runs={WORKFLOW: known})


def test_what_really_happened_breaks_nothing(facts: Facts) -> None:
    """Every check is silent on honest work, with and without what the run says."""
    assert 2 == len(facts.commits)
    for known in (facts, run(facts), run(facts, "withdrawn", "replayed"), receipt(facts)):
        assert [] == [breach for check in EVERY.values() for breach in check(known)]
    assert [] == list(nothing_else(facts, {(REPOSITORY, NUMBER)}))


@pytest.mark.parametrize(
    ("state", "version", "breaches"),
    [("refused", 2, 0), ("failed", 2, 0), ("conflict", 2, 0), ("refused", 3, 1), ("unknown", 2, 1)],
)
def test_what_came_to_nothing_may_be_overtaken_by_an_edit(
    facts: Facts, state: str, version: int, breaches: int
) -> None:
    """A run completes although a write was refused, if a later one of it was done."""
    [(name, known)] = run(facts, state).runs.items()
    first, second = known.view.operations
    said = (first.model_copy(update={"version": version}), second)
    view = known.view.model_copy(update={"operations": said})
    found = agreed(replace(facts, runs={name: replace(known, view=view)}))
    assert breaches == sum("is completed with a write that is not" in told for told in found)


BREACHES: list[tuple[str, str, Callable[[Facts], Facts]]] = [
    ("I1", "2 times", commit),
    ("I1", "2 times", lambda f: commit(f, label="BUG", action=Action.REPEATED)),
    ("I1", "after", lambda f: commit(f, time=LATER.timestamp())),
    ("I1", "is failed", lambda f: record(f, state=OperationState.FAILED)),
    ("I1", "is cancelled", lambda f: record(f, state=OperationState.CANCELLED)),
    (
        "I1",
        "is failed",
        lambda f: replace(f, operations={}, buried={KEY: OperationState.FAILED}),
    ),
    ("I2", "no operation", lambda f: commit(f, operation=None)),
    ("I2", "no operation", lambda f: commit(f, operation="op_forged")),
    ("I2", "before", lambda f: commit(f, time=1.0)),
    ("I2", "before", lambda f: without_move(f, OperationState.DISPATCHED)),
    ("I2", "0 approvals", lambda f: consent(f, consumed_by=None, consumed_at=None)),
    ("I2", "0 approvals", lambda f: consent(f, consumed_by=OTHER)),
    ("I2", "0 approvals", lambda f: consent(f, consumed_at=LATER)),
    ("I2", "0 approvals", lambda f: consent(f, operation_digest="sha256:other")),
    ("I2", "0 approvals", lambda f: consent(f, version=2)),
    ("I2", "0 approvals", lambda f: consent(f, verdict="reject")),
    ("I2", "0 approvals", lambda f: consent(f, expires_at=LATER - timedelta(days=9))),
    ("I2", "0 approvals", lambda f: consent(f, revoked_at=LATER - timedelta(days=9))),
    ("I2", "2 approvals", lambda f: replace(f, consents=[*f.consents, *f.consents])),
    ("I3", "used the approval", lambda f: consent(f, consumed_by=OTHER)),
    ("I3", "scope", lambda f: consent(f, scope="other")),
    ("I3", "without a dispatch", lambda f: consent(f, version=2)),
    (
        "I3",
        "one token",
        lambda f: replace(f, consents=[replace(c, token_id="t") for c in f.consents]),
    ),
    ("I4", "still unknown", lambda f: record(f, state=OperationState.UNKNOWN)),
    ("I4", "still reserved", lambda f: record(f, state=OperationState.RESERVED)),
    ("I4", "without a reason", lambda f: record(f, state=OperationState.ATTENTION)),
    ("I4", "without a reason", lambda f: record(f, attention_at=LATER, reason="why")),
    (
        "I4",
        "still unknown",
        lambda f: record(f, state=OperationState.UNKNOWN, attention_owner="ann", reason="why"),
    ),
    (
        "I4",
        "still reconciled_absent",
        lambda f: record(f, state=OperationState.RECONCILED_ABSENT, attention_owner="ann"),
    ),
    ("I5", "without a receipt", lambda f: record(f, receipt=None)),
    ("I5", "without a receipt", lambda f: record(f, receipt=b"{}")),
    ("I5", "never had the labels", lambda f: receipt(f, after=["bug", "component:api"])),
    ("I5", "never had its labels", lambda f: record(f, labels=("bug", "component:api"))),
    ("I5", "says already_present", lambda f: receipt(f, how="already_present")),
    ("I5", "another operation", lambda f: receipt(f, operation_key=OTHER)),
    ("I5", "another operation", lambda f: receipt(f, version=2)),
    ("I5", "another operation", lambda f: receipt(f, digest="sha256:other")),
    ("I5", "0 labels", lambda f: replace(f, log=f.log[:-2], early=len(f.log) - 2)),
    ("I6", "says applied", lambda f: record(run(f), state=OperationState.UNKNOWN)),
    ("I6", "not in the ledger", lambda f: replace(run(f), operations={})),
    ("I6", "says failed", lambda f: run(f, "failed", status=Status.FAILED)),
    ("I6", "does not say so", lambda f: run(f, "expired", status=Status.REVIEW_REQUIRED)),
    ("I6", "with a write that is not", lambda f: run(f, "applied", "expired")),
    ("I6", "runs", lambda f: run(f, running=True)),
    ("I6", "is over", lambda f: run(f, status=Status.DECIDING)),
    ("I7", "ends otherwise", lambda f: record(f, state=OperationState.UNKNOWN)),
    ("I7", "ends otherwise", lambda f: without_move(f, OperationState.APPLIED)),
    ("I7", "another number", lambda f: without_move(f, OperationState.DISPATCHED)),
    ("I7", "more than once", lambda f: twice(f, "operation.applied")),
    ("I7", "approvals", lambda f: twice(f, "approval.recorded")),
    ("I7", "approvals", lambda f: replace(f, consents=f.consents[1:])),
    ("I7", "which is gone", lambda f: replace(f, operations={})),
    ("I10", "another issue", lambda f: commit(f, issue="102")),
    ("I10", "another issue", lambda f: commit(f, repository="acme/other")),
    ("I10", "did not propose", lambda f: commit(f, label="component:api")),
    ("I10", "caused edited", lambda f: commit(f, action=Action.EDITED)),
    ("I10", "caused unlabeled", lambda f: commit(f, action=Action.UNLABELED)),
    ("I10", "caused label_created", lambda f: commit(f, action=Action.LABEL_CREATED)),
    (
        "I10",
        "put back",
        lambda f: commit(commit(f, action=Action.UNLABELED, actor="ann", operation=None, time=1.0)),
    ),
]


@pytest.mark.parametrize(("invariant", "words", "breach"), BREACHES)
def test_each_breach_is_found(
    facts: Facts, invariant: str, words: str, breach: Callable[[Facts], Facts]
) -> None:
    """One thing that is not as it was makes the invariant's own check speak, in its own name."""
    found = list(EVERY[invariant](breach(facts)))
    assert [] != found
    assert {invariant} == {sentence.split(":")[0] for sentence in found}
    assert any(words in sentence for sentence in found), found


def test_people_may_do_what_triage_may_not(facts: Facts) -> None:
    """What comes in under another name, without an operation, is nobody's breach."""
    edited = commit(facts, action=Action.EDITED, actor="ann", operation=None)
    by_hand = commit(edited, actor="ann", operation=None, via=Via.CONTROL, issue="102")
    for check in (one_commit, approved, nothing_else):
        assert [] == list(check(by_hand))


def test_another_issue_is_found_though_the_operation_names_it(facts: Facts) -> None:
    """Where the test knows which issues runs are about, an operation cannot choose another."""
    found = list(nothing_else(facts, {(REPOSITORY, "102")}))
    assert 2 == len(found)
    assert {"I10"} == {sentence.split(":")[0] for sentence in found}


def test_a_repeat_may_be_allowed_and_a_second_label_never(facts: Facts) -> None:
    """A process that was stopped inside its request may repeat it, as long as nothing changes."""
    late = LATER.timestamp()
    repeated = commit(facts, action=Action.REPEATED, time=late)
    assert [] == list(one_commit(repeated, allow_repeats=True))
    assert 2 == len(list(one_commit(repeated)))
    assert 2 == len(list(one_commit(commit(facts, time=late), allow_repeats=True)))


def test_a_commit_that_the_store_was_read_too_early_for_waits(facts: Facts) -> None:
    """What was committed while the store was being read is judged the next time."""
    assert [] == list(one_commit(replace(commit(facts), early=facts.early)))


def test_attention_and_time_excuse_an_open_write(facts: Facts) -> None:
    """A write that a person was asked about, has looked at, or that has time left is no breach."""
    unknown: OperationRecord = replace(facts.operations[KEY], state=OperationState.UNKNOWN)
    told = replace(unknown, attention_owner="ann", reason="unread")
    asked = replace(told, state=OperationState.ATTENTION, attention_at=LATER)
    looked_at = replace(told, state=OperationState.RECONCILED_ABSENT)
    for over in (asked, looked_at):
        assert [] == list(ended(replace(facts, operations={KEY: over}), settled=True))
    assert [] == list(ended(replace(facts, operations={KEY: unknown}), settled=False))


@pytest.mark.parametrize(
    ("limits", "breaches"),
    [
        (RunLimits(), 0),
        (RunLimits(steps=3, tool_calls=1, tokens=10, history_bytes=1_000), 0),
        (RunLimits(steps=2), 1),
        (RunLimits(tokens=9, tool_calls=0), 2),
        (RunLimits(history_bytes=999, history_events=19, evidence_bytes=99, seconds=0), 4),
    ],
)
def test_limits_are_held(facts: Facts, limits: RunLimits, breaches: int) -> None:
    """I9: each thing that a run uses is counted against its own limit, and may reach it."""
    found = list(within_limits(run(facts), limits))
    assert breaches == len(found)
    assert all(sentence.startswith("I9: ") for sentence in found)


def test_label_digests_stand_for_long_lists(facts: Facts) -> None:
    """A receipt that gives its labels by their digest is held to it all the same."""
    right = digest_of_bytes(canonical_json(["bug"]))
    assert [] == list(receipts(receipt(facts, after=right)))
    assert [] != list(receipts(receipt(facts, after=digest_of_bytes(canonical_json(["x"])))))


def test_entries_say_where_they_stand(facts: Facts) -> None:
    """A breach names the line of the log, so that it can be looked up."""
    entry: Entry = facts.commits[0]
    [found] = [b for b in one_commit(commit(facts, time=LATER.timestamp())) if "line" in b]
    assert f"(line {entry.seq + 2})" in found
