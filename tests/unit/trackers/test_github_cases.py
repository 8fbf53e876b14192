"""Kinds of fault that others have reported of bots on GitHub, each with an input that shows it.

The sentence of each test is what is right. What they have in common is in the contract's tests;
here is what only GitHub does.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial

import pytest

from tests.fakes.commit_log import Action, Change
from tests.fakes.faults import Fault, fails_after, refused
from tests.unit.trackers.far_ends import LABELS, NUMBER, GitHubEnd, issue_of
from triage.trackers.base import (
    IssueNotFound,
    LabelPresence,
    LabelRefusal,
    LabelsAdded,
    LabelStatus,
    TrackerRefused,
    TrackerUnavailable,
    content_digest,
)


async def _add(end: GitHubEnd, *labels: str) -> LabelsAdded:
    return await end.over_github.add_labels(
        end.repository, NUMBER, labels or ("bug",), by="bounded-triage", operation_key="op_1"
    )


def _act(end: GitHubEnd, action: Action, **more: object) -> None:
    """Let a person do something at this very moment, between two of our requests."""
    values = {"actor": "bob", "repository": end.repository, **more}
    end.github.api.act(Change(action=action, **values))  # type: ignore[arg-type] # any field


def _many(end: GitHubEnd, names: list[str], *, on: int) -> None:
    """Give the repository many labels at once, and the issue the first of them."""
    change = partial(Change, actor="bob", repository=end.repository)
    defined = [change(action=Action.LABEL_DEFINED, label=name) for name in names]
    put = [change(action=Action.LABELED, issue=NUMBER, label=name) for name in names[:on]]
    end.github.api.commit([*defined, *put])


async def _while_it_reads(end: GitHubEnd, *labels: str) -> asyncio.Task[LabelsAdded]:
    """Begin a write and return when all of its reads were answered, but for the last."""
    await end.control.plan(Fault(method="GET", path="/events$", after_ms=300))
    adding = asyncio.create_task(_add(end, *labels))
    await end.control.requested("GET", count=3)
    return adding


# Names of labels.


async def test_a_name_of_over_fifty_characters_is_no_label(end: GitHubEnd) -> None:
    """It is refused before anything is sent, and so is every other label of the call."""
    outcome = await _add(end, "x" * 51, "bug")
    assert [LabelRefusal.UNKNOWN_LABEL, LabelRefusal.NOT_ATTEMPTED] == [
        result.refusal for result in outcome.results
    ]
    assert [] == await end.control.requests("POST")


async def test_a_name_of_fifty_characters_is_one(end: GitHubEnd) -> None:
    """The bound is GitHub's own."""
    await end.defines("x" * 50)
    assert ("x" * 50,) == (await _add(end, "x" * 50)).added


async def test_an_invalid_label_is_refused_for_good(end: GitHubEnd) -> None:
    """A 422 at the write is no fault that passes: it is asked once, and then read back."""
    await end.control.plan(refused(422, "Validation Failed", times=0))
    with pytest.raises(TrackerRefused) as error:
        await _add(end)
    assert "validation_failed" == error.value.code
    assert 1 == len(await end.control.requests("POST"))


async def test_a_list_that_is_invalid_in_part_is_refused_as_a_whole(end: GitHubEnd) -> None:
    """Which of the labels are unknown is said, and none of the others is added."""
    outcome = await _add(end, "bug", "priority:high", "component:api", "needs-info")
    unknown = [r.label for r in outcome.results if r.refusal is LabelRefusal.UNKNOWN_LABEL]
    assert ["priority:high", "needs-info"] == unknown
    assert () == outcome.added
    assert [] == await end.control.requests("POST")


async def test_the_name_is_sent_as_the_repository_spells_it(end: GitHubEnd) -> None:
    """A proposal in another letter case means that label, and does not make one of its own."""
    outcome = await _add(end, "BUG", "Component:API")
    assert ("bug", "component:api") == outcome.added
    assert ("bug", "component:api") == (await issue_of(end)).labels
    assert 3 == len(await end.over_github.labels_by_id(end.repository))


@pytest.mark.parametrize("name", ["b\u057dg", "bu\u0261", "bug\u200b", "\u202ebug", "\u042cUG"])
async def test_a_name_that_only_looks_alike_is_unknown(end: GitHubEnd, name: str) -> None:
    """Letters of other alphabets and signs that nobody sees make another name, not the nearest."""
    outcome = await _add(end, name)
    assert [LabelRefusal.UNKNOWN_LABEL] == [result.refusal for result in outcome.results]


async def test_two_labels_that_differ_by_case_alone_are_not_guessed_between(
    end: GitHubEnd,
) -> None:
    """Where Unicode takes for one what GitHub holds apart, only the exact name counts."""
    await end.defines("straße")
    end.github.api.world.labels[end.repository]["second"] = "STRASSE"
    assert LabelStatus.REFUSED is (await _add(end, "Strasse")).results[0].status
    assert ("straße",) == (await _add(end, "straße")).added


async def test_a_name_of_several_words_is_one_label(end: GitHubEnd) -> None:
    """It is not split at its spaces."""
    assert ("good first issue",) == (await _add(end, "good first issue")).added
    assert ("good first issue",) == (await issue_of(end)).labels


async def test_labels_of_later_pages_are_known_and_stay(end: GitHubEnd) -> None:
    """A label beyond the first page can be added, and none that is on the issue is lost."""
    names = [f"label-{number:03}" for number in range(120)]
    _many(end, names, on=60)
    assert ("label-119",) == (await _add(end, "label-119")).added
    assert set(names[:60]) | {"label-119"} == set((await issue_of(end)).labels)


async def test_an_issue_with_a_hundred_labels_takes_no_more(end: GitHubEnd) -> None:
    """That is seen before it is tried; what is there already is no reason to refuse."""
    _many(end, [f"label-{number}" for number in range(100)], on=100)
    with pytest.raises(TrackerRefused) as error:
        await _add(end)
    assert "too_many_labels" == error.value.code
    assert ("label-7",) == (await _add(end, "label-7")).already_present
    assert [] == await end.control.requests("POST")


# Labels that change under our hands.


async def test_a_label_that_was_deleted_is_not_made_again(end: GitHubEnd) -> None:
    """Deleted between the approval and the write, it is unknown, and GitHub is not asked."""
    _act(end, Action.LABEL_DROPPED, label="bug")
    outcome = await _add(end, "bug", "component:api")
    assert LabelRefusal.UNKNOWN_LABEL is outcome.results[0].refusal
    assert "bug" not in await end.over_github.label_inventory(end.repository)


async def test_a_label_that_is_deleted_in_the_last_moment_is_told(end: GitHubEnd) -> None:
    """GitHub makes it anew while adding it; the new id shows that, so a person learns of it."""
    before = {label.name: label.id for label in await end.over_github.labels_by_id(end.repository)}
    adding = await _while_it_reads(end, "bug", "component:api")
    _act(end, Action.LABEL_DROPPED, label="bug")
    outcome = await adding
    assert (("bug", "component:api"), ("bug",)) == (outcome.added, outcome.created)
    after = {label.name: label.id for label in await end.over_github.labels_by_id(end.repository)}
    assert after["bug"] != before["bug"]
    assert after["component:api"] == before["component:api"]


async def test_a_label_that_was_renamed_is_unknown_under_its_old_name(end: GitHubEnd) -> None:
    """It is the same label, and not the one that was approved: its id is, its name is not."""
    before = {label.name: label.id for label in await end.over_github.labels_by_id(end.repository)}
    _act(end, Action.LABEL_RENAMED, label="bug", data={"to": "defect"})
    outcome = await _add(end, "bug")
    assert LabelRefusal.UNKNOWN_LABEL is outcome.results[0].refusal
    after = {label.name: label.id for label in await end.over_github.labels_by_id(end.repository)}
    assert before["bug"] == after["defect"]
    assert "bug" not in after


async def test_a_label_that_a_person_adds_meanwhile_stays(end: GitHubEnd) -> None:
    """Between the last look and the write somebody adds one: both are there afterwards."""
    adding = await _while_it_reads(end, "bug")
    _act(end, Action.LABELED, issue=NUMBER, label="good first issue")
    assert ("bug",) == (await adding).added
    assert {"bug", "good first issue"} == set((await issue_of(end)).labels)


@pytest.mark.parametrize(
    "fault",
    [Fault(), fails_after(), refused(403), refused(422), Fault(status=500, takes_effect=False)],
    ids=["success", "500 after", "403", "422", "500 before"],
)
async def test_labels_of_people_stay_whatever_comes(end: GitHubEnd, fault: Fault) -> None:
    """No outcome of a write takes a label off that was there before."""
    for label in LABELS[1:]:
        await end.adds(label)
    await end.control.plan(fault)
    with suppress(TrackerRefused, TrackerUnavailable):
        await _add(end)
    assert set(LABELS[1:]) <= set((await issue_of(end)).labels)
    assert [] == await end.control.requests("DELETE")


async def test_a_removal_in_the_last_moment_shows_in_the_events(end: GitHubEnd) -> None:
    """A person who takes a label off after our write is seen, and it is not put back."""
    await _add(end)
    await end.removes("bug")
    read = await end.over_github.label_presence(end.repository, NUMBER, ["bug"])
    assert (LabelPresence.REMOVED_BY_PERSON,) == read
    assert ("bug",) == (await _add(end)).refused


async def test_what_people_did_long_ago_is_found_behind_many_events(end: GitHubEnd) -> None:
    """The events are read to their end: a removal on the second page counts."""
    for number in range(60):
        _act(end, Action.LABELED, issue=NUMBER, label=f"good first issue {number}")
        _act(end, Action.UNLABELED, issue=NUMBER, label=f"good first issue {number}")
    await end.adds("bug")
    await end.removes("bug")
    assert ("bug",) == (await _add(end)).refused


# Issues that are none, or not any more.


async def test_a_pull_request_is_no_issue(end: GitHubEnd) -> None:
    """Its number is one of this part of the API too, and it is neither read nor written."""
    data = {"title": "Change", "body": "", "pull_request": True}
    _act(end, Action.OPENED, issue="102", data=data)
    found = await end.over_github.get_issue(end.repository, "102")
    missing = IssueNotFound(repository=end.repository, number="102", code="not_an_issue")
    assert missing == found
    with pytest.raises(TrackerRefused) as error:
        await end.over_github.add_labels(
            end.repository, "102", ["bug"], by="us", operation_key="op_1"
        )
    assert "not_an_issue" == error.value.code
    assert [] == await end.control.requests("POST")


@pytest.mark.parametrize(
    ("gone", "code"),
    [(Action.DELETED, "issue_gone"), (Action.TRANSFERRED, "issue_transferred")],
)
async def test_an_issue_that_goes_between_the_reads_and_the_write_is_refused(
    end: GitHubEnd, gone: Action, code: str
) -> None:
    """Deleted or moved while a write waits: nothing is written, there or elsewhere."""
    adding = await _while_it_reads(end, "bug")
    _act(end, gone, issue=NUMBER, data={"to": "/repos/acme/other/issues/9"})
    with pytest.raises(TrackerRefused) as error:
        await adding
    assert code == error.value.code
    assert not [e for e in await end.control.log() if e.operation]
    assert not [r for r in await end.control.requests() if "other" in r["path"]]


async def test_a_lock_is_seen_before_anything_is_sent(end: GitHubEnd) -> None:
    """What the reads show need not be refused by GitHub."""
    await end.locks()
    with pytest.raises(TrackerRefused) as error:
        await _add(end)
    assert "issue_locked" == error.value.code
    assert [] == await end.control.requests("POST")


async def test_a_lock_is_neither_a_rate_limit_nor_a_lack_of_rights(end: GitHubEnd) -> None:
    """Locked between the reads and the write, GitHub says 403, and that is told apart."""
    adding = await _while_it_reads(end, "bug")
    _act(end, Action.LOCKED, issue=NUMBER)
    with pytest.raises(TrackerRefused) as error:
        await adding
    assert "issue_locked" == error.value.code


# Texts.


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (None, ""),
        ("", ""),
        ("   \n\t", "   \n\t"),
        ("<!-- only the template's comment -->", "<!-- only the template's comment -->"),
        ("before\x00after", "before\x00after"),
        ("\u202egnp.exe\u2066 \U000e0041", "\u202egnp.exe\u2066 \U000e0041"),
        ("half an emoji \ud83d", "half an emoji \ufffd"),
    ],
    ids=["null", "empty", "spaces", "comment", "NUL", "bidi", "surrogate"],
)
async def test_any_text_is_read(end: GitHubEnd, body: str | None, shown: str) -> None:
    """No text is a failure: none is an empty one, and the digest is over what was read."""
    _act(end, Action.OPENED, issue="103", data={"title": "t", "body": body})
    issue = await end.over_github.admit_issue(
        end.repository, "103", title="", body="", author=None, labels=()
    )
    assert shown == issue.body
    assert content_digest("t", shown, "open", locked=False) == issue.content_digest


async def test_an_author_whose_account_is_gone_has_no_name(end: GitHubEnd) -> None:
    """GitHub names nobody then, and so do we."""
    _act(end, Action.OPENED, issue="104", actor="", data={"title": "t", "body": ""})
    issue = await end.over_github.admit_issue(
        end.repository, "104", title="", body="", author=None, labels=()
    )
    assert "" == issue.author


# Answers.


@pytest.mark.parametrize("status", [500, 502, 503, 504])
async def test_an_error_of_the_server_is_no_evidence_of_failure(
    end: GitHubEnd, status: int
) -> None:
    """The label is there although the answer was an error, and it was asked for once."""
    await end.control.plan(fails_after(status, times=0))
    with pytest.raises(TrackerUnavailable) as error:
        await _add(end)
    assert error.value.effect_possible
    assert 1 == len(await end.control.requests("POST"))
    assert (LabelPresence.PRESENT,) == await end.over_github.label_presence(
        end.repository, NUMBER, ["bug"]
    )


async def test_a_success_whose_label_is_not_there_is_none(end: GitHubEnd) -> None:
    """200 without the label proves nothing."""
    await end.control.plan(Fault(takes_effect=False))
    with pytest.raises(TrackerUnavailable) as error:
        await _add(end)
    assert error.value.effect_possible
