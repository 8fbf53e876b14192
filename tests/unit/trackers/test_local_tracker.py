"""The local tracker adds labels, keeps what people did, and loses no character of an issue."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from triage.contracts.canonical import canonical_json
from triage.storage.engine import Store
from triage.storage.errors import StorageUnavailable
from triage.trackers.base import (
    IssueNotFound,
    LabelPresence,
    LabelRefusal,
    LabelResult,
    LabelsAdded,
    LabelStatus,
    TrackedIssue,
    Tracker,
    TrackerRefused,
    TrackerUnavailable,
    content_digest,
)
from triage.trackers.local import LocalTracker
from triage.trackers.local_people import IssueRecord

REPOSITORY = "local"
NUMBER = "ISSUE-101"
LABELS = ("bug", "component:api", "good first issue")
ADDED = LabelStatus.ADDED
PRESENT = LabelStatus.ALREADY_PRESENT
REFUSED = LabelStatus.REFUSED


@pytest.fixture
def tracker(store: Store) -> LocalTracker:
    """A tracker without issues and labels."""
    return LocalTracker(store)


async def _admit(tracker: LocalTracker, number: str = NUMBER) -> TrackedIssue:
    return await tracker.admit_issue(
        REPOSITORY, number, title="Crash", body="It crashes.", author="ann", labels=LABELS
    )


async def _add(tracker: LocalTracker, *labels: str, key: str = "op_1") -> LabelsAdded:
    return await tracker.add_labels(REPOSITORY, NUMBER, labels, by="triage", operation_key=key)


async def _show(tracker: LocalTracker) -> IssueRecord:
    record = await tracker.show_issue(REPOSITORY, NUMBER)
    assert isinstance(record, IssueRecord)
    return record


async def _log(tracker: LocalTracker) -> list[tuple[str, str | None, str]]:
    return [(e.action, e.label, e.by) for e in (await _show(tracker)).events]


def test_it_is_a_tracker(tracker: LocalTracker) -> None:
    """The local tracker can stand wherever a tracker is asked for."""
    asked: Tracker = tracker
    assert asked is tracker


async def test_an_unknown_issue_is_registered_once(tracker: LocalTracker) -> None:
    """The first run registers its issue; a later run with another text finds it as it is."""
    issue = await _admit(tracker)
    again = await tracker.admit_issue(
        REPOSITORY, NUMBER, title="Other", body="other", author=None, labels=()
    )
    assert issue == again
    assert issue == await tracker.get_issue(REPOSITORY, NUMBER)
    assert ("Crash", "It crashes.", "open", False, (), "ann") == (
        issue.title,
        issue.body,
        issue.state,
        issue.locked,
        issue.labels,
        issue.author,
    )
    assert [("created", None, "ann")] == await _log(tracker)


async def test_an_issue_is_known_by_repository_and_number(tracker: LocalTracker) -> None:
    """The same number elsewhere is another issue, and a missing one is a typed answer."""
    await _admit(tracker)
    missing = IssueNotFound(repository="elsewhere", number=NUMBER)
    assert missing == await tracker.get_issue("elsewhere", NUMBER)
    assert missing == await tracker.show_issue("elsewhere", NUMBER)
    assert missing == await tracker.label_presence("elsewhere", NUMBER, ["bug"])
    assert not missing


@pytest.mark.parametrize(
    "odd",
    ["a\x00b", "\ud800", "back\\slash \\u0000", "emoji 😀 \u202e", "", "x" * 200_000],
    ids=["NUL", "surrogate", "backslash", "unicode", "empty", "long"],
)
async def test_texts_and_ids_come_back_exactly(tracker: LocalTracker, odd: str) -> None:
    """Whatever stands in a title, a body, a name or even a number, both databases give it back."""
    admitted = await tracker.admit_issue(odd, odd, title=odd, body=odd, author=odd, labels=())
    found = await tracker.get_issue(odd, odd)
    assert admitted == found
    assert isinstance(found, TrackedIssue)
    assert {odd} == {found.repository, found.number, found.title, found.body, found.author}
    assert content_digest(odd, odd, "open", locked=False) == found.content_digest


async def test_labels_are_added_in_the_order_asked(tracker: LocalTracker) -> None:
    """What was added is told label by label, is on the issue, and is in its log."""
    await _admit(tracker)
    outcome = await _add(tracker, "component:api", "bug")
    assert (("component:api", "bug"), (), ()) == (
        outcome.added,
        outcome.already_present,
        outcome.refused,
    )
    issue = await tracker.get_issue(REPOSITORY, NUMBER)
    assert isinstance(issue, TrackedIssue)
    assert ("component:api", "bug") == issue.labels
    assert ("added", "bug", "triage") == (await _log(tracker))[-1]
    assert "op_1" == (await _show(tracker)).events[-1].operation_key


async def test_adding_again_adds_nothing(tracker: LocalTracker) -> None:
    """A write that comes twice leaves one label and one event, whatever its letter case."""
    await _admit(tracker)
    await _add(tracker, "bug")
    before = await _show(tracker)
    outcome = await _add(tracker, "BUG", "bug", key="op_2")
    assert ("bug", "bug") == outcome.already_present
    assert before == await _show(tracker)


async def test_a_label_named_twice_is_added_once(tracker: LocalTracker) -> None:
    """Each name asked for gets its own result, the tracker's spelling in it."""
    await _admit(tracker)
    outcome = await _add(tracker, "Bug", "bug")
    expected = (LabelResult(label="bug", status=ADDED), LabelResult(label="bug", status=PRESENT))
    assert expected == outcome.results


async def test_a_missing_label_is_never_created(tracker: LocalTracker) -> None:
    """One unknown label stops the whole call, says which, and leaves the inventory alone."""
    await _admit(tracker)
    outcome = await _add(tracker, "bug", "invented")
    assert (
        LabelResult(label="bug", status=REFUSED, refusal=LabelRefusal.NOT_ATTEMPTED),
        LabelResult(label="invented", status=REFUSED, refusal=LabelRefusal.UNKNOWN_LABEL),
    ) == outcome.results
    assert [("created", None, "ann")] == await _log(tracker)
    assert tuple(sorted(LABELS)) == await tracker.label_inventory(REPOSITORY)


async def test_a_removed_label_is_never_put_back(tracker: LocalTracker) -> None:
    """What a person took off stays off, and the other labels of the call are still added."""
    await _admit(tracker)
    await _add(tracker, "bug")
    await tracker.remove_label(REPOSITORY, NUMBER, "Bug", by="ann")
    outcome = await _add(tracker, "bug", "component:api", key="op_2")
    assert (
        LabelResult(label="bug", status=REFUSED, refusal=LabelRefusal.REMOVED_BY_PERSON),
        LabelResult(label="component:api", status=ADDED),
    ) == outcome.results
    assert ["created", "added", "removed", "added"] == [e[0] for e in await _log(tracker)]


async def test_a_label_that_a_person_put_back_is_present(tracker: LocalTracker) -> None:
    """A person's last word counts."""
    await _admit(tracker)
    await _add(tracker, "bug")
    await tracker.remove_label(REPOSITORY, NUMBER, "bug", by="ann")
    await tracker.add_label(REPOSITORY, NUMBER, "bug", by="ann")
    await tracker.add_label(REPOSITORY, NUMBER, "bug", by="ann")
    assert ("bug",) == (await _add(tracker, "bug", key="op_2")).already_present
    assert ("added", "bug", "ann") == (await _log(tracker))[-1]


async def test_a_reading_says_where_each_label_stands(tracker: LocalTracker) -> None:
    """Reconciling can tell absent from taken off, for known and unknown labels."""
    await _admit(tracker)
    await _add(tracker, "bug", "component:api")
    await tracker.remove_label(REPOSITORY, NUMBER, "bug", by="ann")
    read = await tracker.label_presence(
        REPOSITORY, NUMBER, ["COMPONENT:API", "bug", "good first issue", "invented"]
    )
    assert (
        LabelPresence.PRESENT,
        LabelPresence.REMOVED_BY_PERSON,
        LabelPresence.ABSENT,
        LabelPresence.ABSENT,
    ) == read


async def test_writes_at_the_same_time_lose_no_label(tracker: LocalTracker) -> None:
    """Adding is not replacing: labels that others add meanwhile stay, each once."""
    await _admit(tracker)
    outcomes = await asyncio.gather(*(_add(tracker, *LABELS, key=f"op_{n}") for n in range(8)))
    assert set(LABELS) == set((await _show(tracker)).issue.labels)
    assert sorted(LABELS) == sorted(label for outcome in outcomes for label in outcome.added)
    assert 1 + len(LABELS) == len(await _log(tracker))


async def test_a_locked_or_missing_issue_is_refused(tracker: LocalTracker) -> None:
    """A definite no has a code, and nothing happened."""
    await _admit(tracker)
    await tracker.edit_issue(REPOSITORY, NUMBER, by="ann", locked=True)
    with pytest.raises(TrackerRefused) as locked:
        await _add(tracker, "bug")
    with pytest.raises(TrackerRefused) as missing:
        await tracker.add_labels("elsewhere", NUMBER, ["bug"], by="triage", operation_key="op_1")
    assert ("issue_locked", "issue_not_found") == (locked.value.code, missing.value.code)


async def test_people_are_refused_with_a_code_too(tracker: LocalTracker) -> None:
    """A person's mistake is told, and changes nothing."""
    await _admit(tracker)
    calls = {
        "label_not_on_issue": tracker.remove_label(REPOSITORY, NUMBER, "bug", by="ann"),
        "unknown_label": tracker.add_label(REPOSITORY, NUMBER, "invented", by="ann"),
        "issue_not_found": tracker.edit_issue(REPOSITORY, "none", by="ann", title="x"),
        "bad_label": tracker.seed_labels(REPOSITORY, ["x" * 51]),
        "issue_exists": tracker.create_issue(
            REPOSITORY, title="x", body="y", author="ann", number=NUMBER
        ),
    }
    for code, call in calls.items():
        with pytest.raises(TrackerRefused) as refused:
            await call
        assert code == refused.value.code
    assert [("created", None, "ann")] == await _log(tracker)


async def test_an_edit_changes_the_content_digest(tracker: LocalTracker) -> None:
    """Title, body, state and lock each void what was approved; labels do not."""
    digests = {(await _admit(tracker)).content_digest}
    edits: list[dict[str, object]] = [
        {"title": "New"},
        {"body": "new"},
        {"state": "closed"},
        {"locked": True},
    ]
    for edit in edits:
        issue = await tracker.edit_issue(REPOSITORY, NUMBER, by="ann", **edit)  # type: ignore[arg-type] # one at a time
        digests.add(issue.content_digest)
    assert 5 == len(digests)
    await tracker.edit_issue(REPOSITORY, NUMBER, by="ann", locked=False)
    before = (await _show(tracker)).issue
    await _add(tracker, "bug")
    assert replace(before, labels=("bug",)) == (await _show(tracker)).issue
    assert 5 == sum(action == "edited" for action, _, _ in await _log(tracker))


async def test_an_inventory_is_seeded_once(tracker: LocalTracker) -> None:
    """Runs make an inventory only where there is none; people may extend it."""
    await _admit(tracker)
    await tracker.admit_issue(
        REPOSITORY, "2", title="t", body="b", author="ann", labels=["never created"]
    )
    assert tuple(sorted(LABELS)) == await tracker.label_inventory(REPOSITORY)
    assert ("security",) == await tracker.seed_labels(REPOSITORY, ["security", "BUG"])
    assert tuple(sorted([*LABELS, "security"])) == await tracker.label_inventory(REPOSITORY)
    assert () == await tracker.label_inventory("elsewhere")


@pytest.mark.parametrize("name", ["✔︎", "C#", "a/b", "50%", "?q", '"help wanted"', "bad\x00"])
async def test_label_names_are_any_text(tracker: LocalTracker, name: str) -> None:
    """Names with signs that break URLs, shells or databases are just names."""
    await tracker.seed_labels(REPOSITORY, [name])
    await _admit(tracker)
    assert (name,) == (await _add(tracker, name)).added
    assert (name,) == (await _show(tracker)).issue.labels


async def test_new_issues_get_the_next_number(tracker: LocalTracker) -> None:
    """People may leave the number out; issues are listed oldest first."""
    await _admit(tracker)
    created = [
        await tracker.create_issue(REPOSITORY, title=title, body="b", author="ann", number=number)
        for title, number in (("a", None), ("b", "4"), ("c", None), ("d", None))
    ]
    assert ["2", "4", "5", "6"] == [issue.number for issue in created]
    listed = await tracker.list_issues(REPOSITORY)
    assert [NUMBER, "2", "4", "5", "6"] == [issue.number for issue in listed]
    assert () == await tracker.list_issues("elsewhere")


async def test_an_issue_is_shown_in_the_promised_shape(tracker: LocalTracker) -> None:
    """`triage issues show --format json` prints exactly these fields."""
    await _admit(tracker)
    await _add(tracker, "bug")
    shown = (await _show(tracker)).to_dict()
    assert {"number", "title", "body", "labels", "events"} == shown.keys()
    assert (NUMBER, "Crash", "It crashes.", ["bug"]) == tuple(
        shown[name] for name in ("number", "title", "body", "labels")
    )
    assert isinstance(shown["events"], list)
    last = shown["events"][-1]
    assert isinstance(last, dict)
    assert {"label": "bug", "action": "added", "by": "triage", "at": last["at"]} == last
    canonical_json(shown)


async def test_a_database_that_fails_is_a_definite_no(tracker: LocalTracker, store: Store) -> None:
    """A write that ended before its commit had no effect, and says so."""
    await _admit(tracker)
    async with store.write() as connection:
        await connection.execute(text("ALTER TABLE tracker_events RENAME TO hidden"))
    try:
        with pytest.raises(TrackerUnavailable) as failed:
            await _add(tracker, "bug")
    finally:
        async with store.write() as connection:
            await connection.execute(text("ALTER TABLE hidden RENAME TO tracker_events"))
    assert failed.value.effect_possible is False
    assert () == (await _show(tracker)).issue.labels


async def test_a_write_that_takes_too_long_is_a_definite_no(
    tracker: LocalTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call that its caller ends before the commit was rolled back, and says so."""
    await _admit(tracker)

    async def hang(*_: object) -> None:
        await asyncio.Event().wait()

    with monkeypatch.context() as patch:
        patch.setattr("triage.trackers.local.add_events", hang)
        with pytest.raises(TrackerUnavailable) as failed:
            async with asyncio.timeout(0.2):
                await _add(tracker, "bug")
    assert failed.value.effect_possible is False
    assert () == (await _show(tracker)).issue.labels
    assert ("bug",) == (await _add(tracker, "bug")).added


async def test_a_write_that_is_cancelled_anywhere_says_what_became_of_it(
    tracker: LocalTracker,
) -> None:
    """Whenever the call is cancelled, a definite answer is true."""
    await _admit(tracker)
    for turns in range(0, 400, 7):
        await tracker.seed_labels(REPOSITORY, [f"label {turns}"])
        adding = asyncio.create_task(_add(tracker, f"label {turns}"))
        for _ in range(turns):
            await asyncio.sleep(0)
        adding.cancel()
        [outcome] = await asyncio.gather(adding, return_exceptions=True)
        there = f"label {turns}" in (await _show(tracker)).issue.labels
        if isinstance(outcome, TrackerUnavailable):
            assert (False, False) == (outcome.effect_possible, there)
        elif not isinstance(outcome, BaseException):
            assert there


async def test_a_commit_that_is_cut_leaves_it_open(
    tracker: LocalTracker, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If only the commit's answer is missing, the effect is possible: it has to be read back."""
    write = store.write

    @asynccontextmanager
    async def cut() -> AsyncIterator[AsyncConnection]:
        async with write() as connection:
            yield connection
        raise StorageUnavailable("the connection was cut after the commit was sent")

    await _admit(tracker)
    with monkeypatch.context() as patched:
        patched.setattr(store, "write", cut)
        with pytest.raises(TrackerUnavailable) as failed:
            await _add(tracker, "bug")
    assert failed.value.effect_possible is True
    read = await tracker.label_presence(REPOSITORY, NUMBER, ["bug"])
    assert (LabelPresence.PRESENT,) == read
