"""The invariants that hold the tracker's commit log against the ledger. Pure.

Each check returns one sentence for each breach, which begins with the invariant's number.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from typing import Any, Final

from tests.fakes.commit_log import Action, Entry
from tests.fakes.facts import TOLERANCE_SECONDS, Audited, Consent, Facts, not_after
from tests.fakes.issues import label_key, label_sets
from triage.contracts.canonical import canonical_json, digest_of_bytes
from triage.storage.operations import OperationRecord
from triage.storage.transitions import OperationState

_S = OperationState
_DONE: Final = frozenset({_S.APPLIED, _S.RECONCILED_APPLIED})
_NOTHING_DONE: Final = frozenset({_S.FAILED, _S.CANCELLED})


def one_commit(facts: Facts, *, allow_repeats: bool = False) -> Iterator[str]:
    """I1: each label of an operation is committed at most once, and never after it was settled.

    Args:
        facts: what is known.
        allow_repeats: accept requests that were carried out on a label that was there already: all
            that is left to a process which was stopped between two bytes of its request.
    """
    counts: dict[tuple[str, str], Counter[Action]] = defaultdict(Counter)
    for entry in facts.commits:
        if entry.operation is not None:  # I2 tells of the others.
            counts[(entry.operation, label_key(entry.label or ""))][entry.action] += 1
    for (key, label), seen in counts.items():
        times = seen[Action.LABELED] if allow_repeats else seen.total()
        if times > 1:
            yield f"I1: {key} committed the label {label!r} {times} times"
    for entry in facts.commits:
        if allow_repeats and entry.action is Action.REPEATED:
            continue
        yield from _after_the_end(facts, entry)


def _after_the_end(facts: Facts, entry: Entry) -> Iterator[str]:
    key = entry.operation or ""
    record = facts.operations.get(key)
    state = facts.buried.get(key) if record is None else record.state
    if state in _NOTHING_DONE:
        yield f"I1: {key} is {state}, and {_place(entry)} was committed"
    settled = facts.moved_to(key, *_DONE)
    if settled and entry.time > settled[0].at.timestamp() + TOLERANCE_SECONDS:
        yield f"I1: {_place(entry)} was committed after {key} was settled"


def approved(facts: Facts) -> Iterator[str]:
    """I2: before each commit exactly one approval was used, of this operation at this version."""
    for entry in facts.commits:
        key = entry.operation
        if key is None or (key not in facts.operations and key not in facts.buried):
            yield f"I2: {_place(entry)} was committed for no operation that the ledger knows"
            continue
        dispatched = [m for m in facts.moved_to(key, _S.DISPATCHED) if not_after(m.at, entry)]
        if not dispatched:
            yield f"I2: {_place(entry)} was committed before {key} was dispatched"
            continue
        used = [c for c in facts.consents if _allows(c, key, dispatched[-1], entry)]
        if len(used) != 1:
            yield f"I2: {_place(entry)} of {key} rests on {len(used)} approvals"


def _allows(consent: Consent, key: str, dispatched: Audited, entry: Entry) -> bool:
    told = dispatched.details
    return (
        consent.verdict == "approve"
        and (consent.operation_key, consent.consumed_by) == (key, key)
        and (consent.version, consent.operation_digest) == (told["version"], told["digest"])
        and consent.consumed_at is not None
        and not_after(consent.consumed_at, entry)
        and (consent.expires_at is None or consent.expires_at > dispatched.at)
        and (consent.revoked_at is None or consent.revoked_at > dispatched.at)
    )


def receipts(facts: Facts) -> Iterator[str]:
    """I5: a receipt says what the tracker shows: the labels were seen there at some moment."""
    for key, record in facts.operations.items():
        if record.state not in _DONE:
            continue
        found = _receipt(record)
        if found is None:
            yield f"I5: {key} is {record.state} without a receipt that its digest covers"
            continue
        told = (found.get("operation_key"), found.get("digest"), found.get("version"))
        if told != (key, record.digest, record.version):
            yield f"I5: the receipt of {key} is about another operation, digest or version"
        yield from _remote(facts, record, found)


def _receipt(record: OperationRecord) -> dict[str, Any] | None:
    if record.receipt is None or record.receipt_digest != digest_of_bytes(record.receipt):
        return None
    try:
        found = json.loads(record.receipt)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _remote(facts: Facts, record: OperationRecord, receipt: dict[str, Any]) -> Iterator[str]:
    """Hold a receipt against what the issue had between the first dispatch and the end."""
    key, how = record.operation_key, receipt.get("how")
    seen = _sets_between(facts, record)
    if not any(_names(receipt.get("after"), labels) for labels in seen):
        yield f"I5: the issue never had the labels that the receipt of {key} says it had"
    wanted = set(map(label_key, record.labels))
    if how != "removed_by_person" and not any(wanted <= _keys(labels) for labels in seen):
        yield f"I5: {key} is {record.state}, and the issue never had its labels"
    added = facts.added_by[key]
    if (how == "applied_by_us" and not added) or (how == "already_present" and added):
        yield f"I5: the receipt of {key} says {how}, and {added} labels were committed"


def _sets_between(facts: Facts, record: OperationRecord) -> list[frozenset[str]]:
    target = json.loads(record.target)
    history = label_sets(facts.log, target.get("repository", ""), target.get("issue", ""))
    dispatched = facts.moved_to(record.operation_key, _S.DISPATCHED)
    settled = facts.moved_to(record.operation_key, *_DONE)
    if not dispatched or not settled:
        return []
    begin = dispatched[0].at.timestamp() - TOLERANCE_SECONDS
    end = settled[0].at.timestamp() + TOLERANCE_SECONDS
    until = [time for time, _ in history[1:]] + [float("inf")]
    pairs = zip(history, until, strict=False)
    return [labels for (since, labels), over in pairs if since <= end and over >= begin]


def _names(told: Any, labels: frozenset[str]) -> bool:  # noqa: ANN401 - what a receipt holds
    """Whether a receipt's list, or the digest of one that was too long, is these labels."""
    names = sorted(labels)
    return told in (names, digest_of_bytes(canonical_json(names)))


def _keys(labels: frozenset[str]) -> set[str]:
    return set(map(label_key, labels))


def nothing_else(facts: Facts, issues: Collection[tuple[str, str]] | None = None) -> Iterator[str]:
    """I10: all that triage changes is the labels that were proposed, on the operation's issue.

    Args:
        facts: what is known.
        issues: repository and number of those that runs are about, if the test knows.
    """
    for entry in facts.our_entries:
        if issues is not None and (entry.repository, entry.issue) not in issues:
            yield f"I10: {_place(entry)} was changed, and no run is about that issue"
        if entry.action not in {Action.LABELED, Action.REPEATED}:
            yield f"I10: triage caused {entry.action} on {entry.repository}"
            continue
        record = facts.operations.get(entry.operation or "")
        if record is None:
            continue
        target = json.loads(record.target)
        if (entry.repository, entry.issue) != (target.get("repository"), target.get("issue")):
            yield f"I10: {record.operation_key} changed {_place(entry)}, which is another issue"
        if label_key(entry.label or "") not in set(map(label_key, record.labels)):
            yield f"I10: {record.operation_key} added {_place(entry)}, which it did not propose"
        yield from _put_back(facts, entry)


def _put_back(facts: Facts, entry: Entry) -> Iterator[str]:
    """A label that a person took off before a write was dispatched stays off."""
    if entry.action is not Action.LABELED:
        return
    place = (entry.repository, entry.issue, label_key(entry.label or ""))
    earlier = [
        e
        for e in facts.log[: facts.log.index(entry)]
        if (e.repository, e.issue, label_key(e.label or "")) == place
    ]
    dispatched = facts.moved_to(entry.operation or "", _S.DISPATCHED)
    began = [move.at for move in dispatched if not_after(move.at, entry)]
    if not earlier or not began or earlier[-1].action is not Action.UNLABELED:
        return
    if earlier[-1].time < began[-1].timestamp() - TOLERANCE_SECONDS:
        yield f"I10: {entry.operation} put back {_place(entry)}, which a person had removed"


def _place(entry: Entry) -> str:
    return f"{entry.label!r} on {entry.repository}#{entry.issue} (line {entry.seq})"
