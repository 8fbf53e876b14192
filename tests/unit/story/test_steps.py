"""Checks what a story says of each step, wait, message and write."""

from datetime import timedelta

import pytest

from tests.unit.story.histories import events_of, of_kind, parsed, text_of, told
from triage.story.parts import Kind
from triage.story.telling import tell


def test_each_step_says_what_was_proposed_and_why_it_was_followed() -> None:
    """A step tells the kind, tool, argument names and labels of the proposal, and the verdict."""
    steps = of_kind(told("completed-approved-by-signal"), Kind.MODEL)
    assert "proposed to call lookup_component_owner(path)" in steps[0].text
    assert "accepted: the tool is registered and its arguments fit" in steps[0].text
    assert 'labels "bug", "component:api"' in steps[1].text
    assert [(1, True, "call_tool"), (2, True, "final")] == [
        (beat.facts["step"], beat.facts["accepted"], beat.facts["decision"]) for beat in steps
    ]


def test_a_step_is_told_alike_whether_its_question_came_along_or_was_asked_by_itself() -> None:
    """What a model that asks nobody proposed, and what came of it, hides in no other activity."""
    names = ("completed-by-local-model", "completed-by-local-model-with-budget")
    along, alone = (of_kind(told(name), Kind.MODEL) for name in names)
    keys = ("step", "decision", "accepted", "failure", "tool")
    assert 2 == len(along)
    assert [[beat.facts.get(key) for key in keys] for beat in alone] == [
        [beat.facts.get(key) for key in keys] for beat in along
    ]
    assert "accepted: it rests on returned evidence" in along[1].text
    kinds = [beat.kind for beat in told(names[0]).beats]
    assert [beat.kind for beat in told(names[1]).beats] == kinds


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("failed-unknown-tool", "refused: no such tool is registered (unknown_tool)"),
        ("failed-invalid-tool-arguments", "lookup_component_owner.path has the wrong type"),
        ("failed-not-a-decision", "refused: decision.kind must be one of"),
        ("failed-final-without-ground", "refused: it does not rest on returned evidence"),
        ("failed-review-without-ground", "refused: it cites evidence that no tool returned"),
        ("review-not-entailed", "refused: the cited evidence names another owner"),
        ("review-policy-block", "refused: this run may not have side effects (policy_block)"),
        ("review-other-issue", "refused: a write may only touch the request's own issue"),
        ("review-label-not-permitted", "names a label that the rules do not permit"),
        ("review-approval-required", "waits for none (approval_required)"),
        ("review-write-without-operation-id", "waits for none (approval_required)"),
        ("review-operation-id-reused", "was used before, for other labels (state_conflict)"),
        ("completed-after-model-retry", "refused: asked again, retry 1 of 1"),
        ("review-model-timeout", "refused: all of 1 retry used (model_timeout)"),
        ("completed-edited-while-deciding", "refused: the request was edited meanwhile"),
        ("review-content-unavailable", "content that it needs is unavailable"),
    ],
)
def test_a_refused_step_says_why(name: str, why: str) -> None:
    """What the run did not follow is told with the reason and the failure that it led to."""
    assert any(why in beat.text for beat in of_kind(told(name), Kind.MODEL))


def test_a_write_is_told_with_its_approval_and_receipt() -> None:
    """A write names operation, place, labels, approver, attempts and where its receipt is."""
    [write] = of_kind(told("completed-write-read-back"), Kind.WRITE)
    for part in ("op-6 at version 6", "#ISSUE-1", "by maintainer (signal)", "receipt mutation"):
        assert part in write.text
    assert str(write.facts["receipt"]).startswith("ledger@")
    assert isinstance(write.facts["attempts"], int)


def test_a_wait_is_told_from_its_question_to_its_answer() -> None:
    """The proposal, the deadline, how long a person was waited for, and who ended it."""
    story = told("review-rejected-by-update")
    [proposed], [waiting] = of_kind(story, Kind.PROPOSED), of_kind(story, Kind.WAITING)
    [review], [waited] = of_kind(story, Kind.REVIEW), of_kind(story, Kind.WAITED)
    assert 'from none to "bug", "component:api"' in proposed.text
    assert "to decide on op-6 at version 6, digest sha256:" in waiting.text
    assert "update reject of op-6 at version 6 by maintainer" in review.text
    assert "rejected by maintainer" in waited.text
    assert "a person was waited for" in of_kind(story, Kind.ENDED)[0].text


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("review-approval-expired", "nobody decided in time"),
        ("completed-edited-while-waiting", "the request was edited"),
        ("canceled-while-waiting", "the execution was canceled"),
    ],
)
def test_a_wait_says_why_it_ended(name: str, why: str) -> None:
    """Waits that end without an answer say so."""
    assert why in of_kind(told(name), Kind.WAITED)[0].text


def test_an_edit_names_the_fields_that_changed() -> None:
    """What an edit changes is told by its names."""
    [edit] = of_kind(told("completed-edited-while-waiting"), Kind.EDIT)
    assert ["title", "body"] == edit.facts["changed"]


def test_malformed_messages_are_told_as_such() -> None:
    """Junk is told with what is wrong with it, and does not hide the review that counted."""
    story = told("completed-despite-junk")
    junk = of_kind(story, Kind.MESSAGE)
    assert {"malformed"} == {beat.facts["code"] for beat in junk}
    assert "signal applaud: it does not count: malformed, no run knows such a message" in {
        beat.text for beat in junk
    }
    accepted = [b for b in of_kind(story, Kind.REVIEW) if b.facts["accepted"]]
    assert ["maintainer"] == [beat.facts["approver"] for beat in accepted]


def test_an_open_wait_says_since_when_and_how_to_end_it() -> None:
    """A run that waits says since when, until when, and what a person can type."""
    events = parsed(events_of("waiting-for-approval"))
    began = tell(events).began
    standing = tell(events, now=began + timedelta(hours=3)).beats[-1]
    assert "waits for a person since" in standing.text
    assert "ago)" in standing.text
    assert "triage approve waiting-for-approval op-6 --version 6" in standing.text


def test_an_open_activity_is_what_a_run_waits_for() -> None:
    """A run whose model has not answered says that it waits for it."""
    assert told("deciding").beats[-1].text.startswith("waits for decide, asked at ")


def test_of_several_approvals_each_is_told_and_which_decides() -> None:
    """How many people are needed, who has approved so far, who came twice and who decided."""
    story = told("completed-approved-by-two")
    assert "2 people have to approve a write" in of_kind(story, Kind.PINNED)[0].text
    assert "waits for 2 people" in of_kind(story, Kind.WAITING)[0].text
    said = [beat.text.partition(": ")[2] for beat in of_kind(story, Kind.REVIEW)]
    assert [
        "it counts, as approval 1 of 2",
        "it does not count: duplicate, this person has approved it already",
        "it counts, as approval 2 of 2, which decides",
    ] == said
    assert "approved by ann, bob" in of_kind(story, Kind.WAITED)[0].text
    assert "approved by ann, bob (update): applied" in of_kind(story, Kind.WRITE)[0].text


def test_a_review_that_came_second_is_told_who_was_first() -> None:
    """Whoever decides on what was decided is told by whom, and what an edit changed meanwhile."""
    duplicate = of_kind(told("completed-after-duplicate-review"), Kind.REVIEW)[1]
    assert duplicate.text.endswith("has been decided already: approved by maintainer")
    stale = of_kind(told("completed-after-stale-approval"), Kind.REVIEW)[0]
    assert stale.text.endswith("the request was edited since (title, body)")


def test_an_approval_that_was_signed_beforehand_is_told_until_it_is_used() -> None:
    """Whose approval the run was started with, that its signature is good, and what it allowed."""
    story = told("completed-signed-at-start")
    [came], [verified], [write] = [
        of_kind(story, kind) for kind in (Kind.REVIEW, Kind.VERIFIED, Kind.WRITE)
    ]
    assert "approvals=op-105@3 by maintainer, signed" in story.beats[0].text
    assert "from the start by maintainer, signed: its signature has to be verified" in came.text
    assert "by maintainer was verified: it counts" in verified.text
    assert "approved by maintainer (start): applied" in write.text
    assert "eyJ" not in text_of(story)


def test_a_continuation_names_what_it_continues_and_takes_over() -> None:
    """The run before, the version to count on from and the evidence that came out of the store."""
    story = told("completed-as-continuation")
    link = story.beats[0].facts["continued_from"]
    assert isinstance(link, dict)
    assert ("completed-as-continuation-before", 7) == (link["workflow_id"], link["version"])
    assert "continuing the run completed-as-continuation-before" in story.beats[0].text
    [pinned] = of_kind(story, Kind.PINNED)
    assert "; takes over owners-api at " in pinned.text
    assert ["owners-api"] == pinned.facts["inherited"]


def test_a_signed_update_counts_once() -> None:
    """Its answer says that it counts; of its signature only that it was good."""
    story = told("completed-signed-by-update")
    [review], [verified] = of_kind(story, Kind.REVIEW), of_kind(story, Kind.VERIFIED)
    assert review.text.endswith("by maintainer, signed: it counts")
    assert "by maintainer was verified: it is good" in verified.text
    assert "accepted" not in verified.facts
