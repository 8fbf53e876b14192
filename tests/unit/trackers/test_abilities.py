"""What trackers can do beyond reading and adding: labels by id, and an undo; on each that can."""

from __future__ import annotations

import unicodedata
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.unit.trackers.far_ends import (
    LABELS,
    NUMBER,
    FarEnd,
    GitHubEnd,
    an_app,
    github_end,
    issue_of,
    local_end,
)
from triage.storage.engine import Store
from triage.storage.migrate import upgrade
from triage.trackers.abilities import CanUndo, HasLabelIds, OwnWrite, Removal, inventory_of
from triage.trackers.base import (
    IssueNotFound,
    LabelPresence,
    LabelsAdded,
    TrackerRefused,
    label_key,
)
from triage.trackers.inventory import Change, Inventory, RepositoryLabel
from triage.trackers.reading import found, overview_of


@pytest.fixture(scope="session")
async def one_store(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Store]:
    """One store for the local tracker of all these tests."""
    url = f"sqlite:///{tmp_path_factory.mktemp('abilities') / 'triage.db'}"
    await upgrade(url)
    store = await Store.open(url)
    yield store
    await store.close()


@pytest.fixture(params=["local", "github", "github app"])
async def able(
    request: pytest.FixtureRequest, tmp_path: Path, one_store: Store
) -> AsyncIterator[FarEnd]:
    """Each tracker in turn that has ids of labels and can undo."""
    opened: AbstractAsyncContextManager[FarEnd]
    if request.param == "local":
        opened = local_end(one_store)
    else:
        opened = github_end(tmp_path, app=an_app() if request.param == "github app" else None)
    async with opened as end:
        yield end


async def _add(
    end: FarEnd, *labels: str, key: str = "op_1", pinned: Mapping[str, str] | None = None
) -> LabelsAdded:
    assert isinstance(end.tracker, HasLabelIds)
    return await end.tracker.add_labels(
        end.repository, NUMBER, labels, by="bounded-triage", operation_key=key, pinned=pinned
    )


async def _remove(end: FarEnd, label: str = "bug", key: str = "op_1") -> Removal:
    assert isinstance(end.tracker, CanUndo)
    # GitHub's events know whole seconds only.
    moment = datetime.now(UTC)
    around = timedelta(seconds=5)
    write = OwnWrite(operation_key=key, since=moment - around, until=moment + around)
    return await end.tracker.remove_own_label(
        end.repository, NUMBER, label, write, operation_key="undo_1"
    )


async def _ids(end: FarEnd, *labels: str) -> dict[str, str]:
    return (await inventory_of(end.tracker, end.repository)).ids(labels)


async def test_labels_are_added_while_they_are_those_that_were_shown(able: FarEnd) -> None:
    """Ids that still fit change nothing, whatever letter case the labels were proposed in."""
    pinned = await _ids(able, "BUG", "component:api")
    assert ("bug", "component:api") == (await _add(able, *pinned, pinned=pinned)).added
    issue = await issue_of(able)
    assert list(pinned.values()) == list(issue.label_ids)
    assert issue.labels_known


async def test_a_label_that_was_made_anew_is_not_added(able: FarEnd) -> None:
    """Another one under the name that was approved: it is refused, and so is the whole call."""
    pinned = await _ids(able, "bug", "component:api")
    await able.remakes("bug")
    with pytest.raises(TrackerRefused) as error:
        await _add(able, *pinned, pinned=pinned)
    assert "label_changed" == error.value.code
    assert () == (await issue_of(able)).labels
    assert (await _ids(able, "bug"))["bug"] != pinned["bug"]


async def test_an_overview_is_what_its_parts_say(able: FarEnd) -> None:
    """By one look or by three: the issue, where each label stands, and what the repository has."""
    labels = ("bug", "component:api", "documentation")
    await _add(able, "bug", "component:api")
    await able.removes("component:api")
    seen = found(await overview_of(able.tracker, able.repository, NUMBER, labels))
    places = found(await able.tracker.label_presence(able.repository, NUMBER, labels))
    assert (await issue_of(able), labels, places) == (seen.issue, seen.labels, seen.places)
    assert 2 == len(set(places) - {LabelPresence.ABSENT})
    there = await inventory_of(able.tracker, able.repository)
    assert sorted(there.labels, key=str) == sorted(seen.inventory.labels, key=str)
    unknown = await overview_of(able.tracker, able.repository, "999", labels)
    assert await able.tracker.get_issue(able.repository, "999") == unknown


async def test_an_undo_takes_off_what_its_write_put_on(able: FarEnd) -> None:
    """That label and no other; afterwards it counts as taken off by a person."""
    await able.adds("good first issue")
    await _add(able, "bug", "component:api")
    assert Removal.REMOVED is await _remove(able, "BUG")
    assert {"good first issue", "component:api"} == set((await issue_of(able)).labels)
    read = await able.tracker.label_presence(able.repository, NUMBER, ["bug"])
    assert (LabelPresence.REMOVED_BY_PERSON,) == read
    assert ("bug",) == (await _add(able, "bug", key="op_2")).refused
    assert Removal.NOT_THERE is await _remove(able, "BUG")


async def test_an_undo_leaves_what_people_put_on(able: FarEnd) -> None:
    """Whether it was there before, or somebody took it off and put it on again."""
    await able.adds("component:api")
    await _add(able, "bug", "component:api")
    assert Removal.NOT_OURS is await _remove(able, "component:api")
    await able.removes("bug")
    await able.adds("bug")
    assert Removal.NOT_OURS is await _remove(able)
    assert {"bug", "component:api"} == set((await issue_of(able)).labels)


async def test_events_say_who_changed_labels(able: FarEnd) -> None:
    """What happened to labels is told in its order, and what we did is told apart."""
    assert isinstance(able.tracker, CanUndo)
    await _add(able, "bug")
    await able.removes("bug")
    await able.adds("component:api")
    events = await able.tracker.label_events(able.repository, NUMBER)
    assert not isinstance(events, IssueNotFound)
    assert [
        ("bug", True, True),
        ("bug", False, False),
        ("component:api", True, False),
    ] == [(event.label, event.added, event.ours) for event in events]
    missing = IssueNotFound(repository=able.repository, number="7")
    assert missing == await able.tracker.label_events(able.repository, "7")


async def test_an_issue_has_a_hundred_labels_at_most(able: FarEnd) -> None:
    """One more is refused before anything is written, and repeating what is there is not."""
    names = [f"label {number}" for number in range(101)]
    await able.defines(*names)
    for part in (names[:60], names[60:100]):
        await _add(able, *part)
    with pytest.raises(TrackerRefused) as error:
        await _add(able, names[100])
    assert "too_many_labels" == error.value.code
    assert names[:2] == list((await _add(able, *names[:2])).already_present)


async def test_a_write_names_the_request_that_did_it(end: GitHubEnd) -> None:
    """GitHub's own name for it is kept, and whatever cannot be one is not."""
    added = await _add(end, "bug")
    [request] = await end.control.requests("POST")
    assert request["id"] == added.request_id
    for number, name in enumerate(("x" * 129, "a b", "ü")):
        end.github.api.request_id = name
        assert (await _add(end, LABELS[1 + number % 2])).request_id is None


CHANGES: dict[str, tuple[list[tuple[str, str]], Change | None]] = {
    "the same": ([("1", "bug"), ("2", "api")], None),
    "another letter case": ([("1", "BUG"), ("2", "api")], None),
    "made anew": ([("9", "bug"), ("2", "api")], Change.REMADE),
    "renamed": ([("1", "defect"), ("2", "api")], Change.RENAMED),
    "renamed, and another has its name": ([("1", "defect"), ("9", "bug")], Change.RENAMED),
    "names exchanged": ([("2", "bug"), ("1", "api")], Change.RENAMED),
    "gone": ([("2", "api")], None),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_change_of_a_label_has_a_name(case: str) -> None:
    """Renamed and made anew are told apart; one that is gone is seen by whoever adds it."""
    labels, expected = CHANGES[case]
    found = Inventory(RepositoryLabel(*pair) for pair in labels)
    assert expected is found.change({"bug": "1", "api": "2"})
    assert found.change({}) is None


@pytest.mark.parametrize(
    ("name", "is_there"),
    [("bug", True), ("BUG", True), ("caf\u00e9", True), ("CAFE\u0301", True), ("defect", False)],
)
def test_a_label_is_there_in_any_spelling(name: str, is_there: bool) -> None:
    """Neither letter case nor composition makes another label of one, in any alphabet."""
    found = Inventory(RepositoryLabel(*pair) for pair in [("1", "Bug"), ("2", "Caf\u00e9")])
    assert ([] if is_there else [name]) == found.lacks([name])


def test_a_name_in_ascii_is_compared_as_any_other() -> None:
    """The short way for plain letters gives what composing and folding them would."""
    plain = "".join(map(chr, range(128)))
    assert unicodedata.normalize("NFC", plain).casefold() == label_key(plain)
