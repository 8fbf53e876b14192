"""What every tracker promises, on every tracker that there is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from tests.unit.trackers.far_ends import (
    AUTHOR,
    BODY,
    LABELS,
    NUMBER,
    TITLE,
    FarEnd,
    an_app,
    github_end,
    http_end,
    issue_of,
    local_end,
)
from triage.storage.engine import Store
from triage.storage.migrate import upgrade
from triage.trackers.base import (
    IssueNotFound,
    LabelPresence,
    LabelRefusal,
    LabelResult,
    LabelsAdded,
    LabelStatus,
    TrackedIssue,
    TrackerRefused,
    content_digest,
)

TRACKERS = ("local", "http", "github", "github app")
ODD_NAMES = ("✔︎", "good first issue", "C#", "a/b", "50%", "?q", "A-macros-2.0", '"help wanted"')


@pytest.fixture(scope="session")
async def one_store(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Store]:
    """One store for the local tracker of all these tests."""
    url = f"sqlite:///{tmp_path_factory.mktemp('contract') / 'triage.db'}"
    await upgrade(url)
    store = await Store.open(url)
    yield store
    await store.close()


@pytest.fixture(params=TRACKERS)
async def end(
    request: pytest.FixtureRequest, tmp_path: Path, one_store: Store
) -> AsyncIterator[FarEnd]:
    """Each tracker in turn, with one issue and three labels."""
    async with _opened(request.param, tmp_path, one_store) as opened:
        yield opened


def _opened(name: str, folder: Path, store: Store) -> AbstractAsyncContextManager[FarEnd]:
    match name:
        case "local":
            return local_end(store)
        case "http":
            return http_end(folder)
        case _:
            return github_end(folder, app=an_app() if name == "github app" else None)


async def _add(end: FarEnd, *labels: str, key: str = "op_1") -> LabelsAdded:
    return await end.tracker.add_labels(
        end.repository, NUMBER, labels, by="bounded-triage", operation_key=key
    )


async def test_an_issue_is_read_as_it_is(end: FarEnd) -> None:
    """Title, body, state, lock, labels and author are there, and the digest over what counts."""
    await end.adds("bug")
    odd = "Crash \u202e\x00 ü"
    await end.edits(title=odd, state="closed")
    expected = TrackedIssue(
        repository=end.repository,
        number=NUMBER,
        title=odd,
        body=BODY,
        state="closed",
        locked=False,
        labels=("bug",),
        author=AUTHOR,
        content_digest=content_digest(odd, BODY, "closed", locked=False),
    )
    assert expected == await issue_of(end)


async def test_admitting_finds_the_issue_as_it_is(end: FarEnd) -> None:
    """What a request says about an issue that is there changes nothing of it."""
    admitted = await end.tracker.admit_issue(
        end.repository, NUMBER, title="other", body="other", author="eve", labels=("new",)
    )
    assert (TITLE, BODY, AUTHOR) == (admitted.title, admitted.body, admitted.author)
    assert admitted == await issue_of(end)
    assert tuple(sorted(LABELS)) == await end.tracker.label_inventory(end.repository)


async def test_an_issue_that_is_not_there_is_an_answer(end: FarEnd) -> None:
    """A read says so by its result, and a write by a refusal."""
    missing = IssueNotFound(repository=end.repository, number="7")
    assert missing == await end.tracker.get_issue(end.repository, "7")
    assert missing == await end.tracker.label_presence(end.repository, "7", ["bug"])
    with pytest.raises(TrackerRefused) as error:
        await end.tracker.add_labels(end.repository, "7", ["bug"], by="us", operation_key="op_1")
    assert "issue_not_found" == error.value.code


@pytest.mark.parametrize("texts", [{"title": "New"}, {"body": "new"}, {"state": "closed"}])
async def test_an_edit_changes_the_digest(end: FarEnd, texts: dict[str, str]) -> None:
    """Whatever a reviewer judged by voids the approval when it changes; labels do not."""
    before = (await issue_of(end)).content_digest
    await end.adds("bug")
    assert before == (await issue_of(end)).content_digest
    await end.edits(**texts)
    assert before != (await issue_of(end)).content_digest


async def test_labels_are_added_and_nothing_else_is(end: FarEnd) -> None:
    """Each label has its result, those of people stay, and the rest of the issue is as it was."""
    await end.adds("good first issue")
    before = await issue_of(end)
    outcome = await _add(end, "component:api", "bug")
    assert ("component:api", "bug") == outcome.added
    after = await issue_of(end)
    assert set(LABELS) == set(after.labels)
    assert before.content_digest == after.content_digest
    assert () == outcome.created


async def test_adding_again_adds_nothing(end: FarEnd) -> None:
    """A write that comes twice says that the labels are there, in the tracker's own spelling."""
    await _add(end, "bug")
    outcome = await _add(end, "BUG", "Component:API", key="op_2")
    assert (("component:api",), ("bug",)) == (outcome.added, outcome.already_present)
    assert ("bug", "component:api") == (await issue_of(end)).labels


async def test_a_label_named_twice_is_added_once(end: FarEnd) -> None:
    """Each name asked for gets its own result."""
    outcome = await _add(end, "Bug", "bug")
    assert (LabelStatus.ADDED, LabelStatus.ALREADY_PRESENT) == tuple(
        result.status for result in outcome.results
    )
    assert ("bug",) == (await issue_of(end)).labels


async def test_a_missing_label_is_never_created(end: FarEnd) -> None:
    """One unknown label stops the whole call and is named, and the inventory stays as it is."""
    outcome = await _add(end, "bug", "invented")
    refused = LabelStatus.REFUSED
    assert (
        LabelResult(label="bug", status=refused, refusal=LabelRefusal.NOT_ATTEMPTED),
        LabelResult(label="invented", status=refused, refusal=LabelRefusal.UNKNOWN_LABEL),
    ) == outcome.results
    assert () == (await issue_of(end)).labels
    assert tuple(sorted(LABELS)) == await end.tracker.label_inventory(end.repository)


async def test_what_a_person_took_off_stays_off(end: FarEnd) -> None:
    """The other labels of the call are still added."""
    await _add(end, "bug")
    await end.removes("bug")
    outcome = await _add(end, "bug", "component:api", key="op_2")
    assert (("component:api",), ("bug",)) == (outcome.added, outcome.refused)
    assert ("component:api",) == (await issue_of(end)).labels


async def test_a_person_s_last_word_counts(end: FarEnd) -> None:
    """A label that a person took off and put back is present."""
    await _add(end, "bug")
    await end.removes("bug")
    await end.adds("bug")
    assert ("bug",) == (await _add(end, "bug", key="op_2")).already_present


async def test_a_reading_says_where_each_label_stands(end: FarEnd) -> None:
    """Reconciling can tell absent from taken off, whatever the letter case, known or not."""
    await _add(end, "bug", "component:api")
    await end.removes("bug")
    read = await end.tracker.label_presence(
        end.repository, NUMBER, ["COMPONENT:API", "Bug", "good first issue", "invented"]
    )
    assert (
        LabelPresence.PRESENT,
        LabelPresence.REMOVED_BY_PERSON,
        LabelPresence.ABSENT,
        LabelPresence.ABSENT,
    ) == read


async def test_writes_at_the_same_time_lose_no_label(end: FarEnd) -> None:
    """Adding is not replacing: labels that others add meanwhile stay, each once."""
    await asyncio.gather(*(_add(end, label, key=f"op_{label}") for label in LABELS))
    assert sorted(LABELS) == sorted((await issue_of(end)).labels)


async def test_a_locked_issue_is_refused(end: FarEnd) -> None:
    """The lock is a refusal of its own, is seen by reading, and changes the digest."""
    before = await issue_of(end)
    await end.locks()
    with pytest.raises(TrackerRefused) as error:
        await _add(end, "bug")
    after = await issue_of(end)
    assert ("issue_locked", True, ()) == (error.value.code, after.locked, after.labels)
    assert before.content_digest != after.content_digest


async def test_a_label_has_at_most_fifty_characters(end: FarEnd) -> None:
    """A longer name is none, even if the tracker had it, and stops the whole call."""
    longest, too_long = "x" * 50, "y" * 51
    await end.defines(longest, too_long)
    assert (longest,) == (await _add(end, longest)).added
    outcome = await _add(end, too_long, "bug", key="op_2")
    assert [LabelRefusal.UNKNOWN_LABEL, LabelRefusal.NOT_ATTEMPTED] == [
        result.refusal for result in outcome.results
    ]
    assert (longest,) == (await issue_of(end)).labels


@pytest.mark.parametrize("name", ODD_NAMES)
async def test_label_names_are_any_text(end: FarEnd, name: str) -> None:
    """Names with signs that break addresses, shells or lists are just names."""
    if name not in LABELS:
        await end.defines(name)
    assert (name,) == (await _add(end, name)).added
    assert (name,) == (await issue_of(end)).labels
    assert name in await end.tracker.label_inventory(end.repository)
