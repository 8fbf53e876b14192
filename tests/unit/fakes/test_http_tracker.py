"""A tracker over HTTP says exactly what its answer, or the lack of one, proves."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from email.utils import formatdate
from time import monotonic, time
from typing import Any

import pytest

from tests.clock import ahead
from tests.fakes.control import TrackerControl
from tests.fakes.faults import (
    Fault,
    Reply,
    dropped_after,
    dropped_before,
    fails_after,
    fails_before,
    late,
    partial,
    rate_limited,
    refused,
    secondary_limit,
    without_effect,
    wrong_type,
)
from tests.fakes.http_client import Step
from tests.unit.fakes.scene import KEY, LABELS, NUMBER, REPOSITORY, add, labelled
from triage.trackers.base import (
    IssueNotFound,
    LabelPresence,
    LabelRefusal,
    LabelResult,
    LabelStatus,
    TrackedIssue,
    Tracker,
    TrackerRefused,
    TrackerTimeout,
    TrackerUnavailable,
    content_digest,
)

READS: dict[str, Any] = {"method": "GET", "path": ""}


async def test_an_issue_is_read_as_it_is(control: TrackerControl) -> None:
    """Title, body, state, lock, labels and author come over the wire, and the digest with them."""
    tracker: Tracker = control.client()
    await control.add_label(REPOSITORY, NUMBER, "bug")
    await control.edit(REPOSITORY, NUMBER, title="Crash \u202e\x00 ü", state="closed")
    expected = TrackedIssue(
        repository=REPOSITORY,
        number=NUMBER,
        title="Crash \u202e\x00 ü",
        body="It crashes.",
        state="closed",
        locked=False,
        labels=("bug",),
        author="ann",
        content_digest=content_digest("Crash \u202e\x00 ü", "It crashes.", "closed", locked=False),
    )
    assert expected == await tracker.get_issue(REPOSITORY, NUMBER)
    admitted = await tracker.admit_issue(
        REPOSITORY, NUMBER, title="other", body="", author=None, labels=()
    )
    assert expected == admitted


@pytest.mark.parametrize("repository", ["acme/shop", "local", "acme/a b%2F?#"])
async def test_any_repository_and_number_can_be_named(
    control: TrackerControl, repository: str
) -> None:
    """A name without an owner, or with signs that a URL has a use for, still names one issue."""
    number = "ISSUE-1/2?x=%41"
    await control.define_labels(repository, ["bug"])
    await control.open_issue(repository, number, title="here")
    await control.client().add_labels(repository, number, ["bug"], by="us", operation_key=KEY)
    issue = await control.client().get_issue(repository, number)
    assert isinstance(issue, TrackedIssue)
    assert ("here", ("bug",)) == (issue.title, issue.labels)


async def test_what_is_gone_is_not_found(control: TrackerControl) -> None:
    """An issue that never was, was deleted or was moved is a typed answer, and is not followed."""
    missing = IssueNotFound(repository=REPOSITORY, number="7")
    assert missing == await control.client().get_issue(REPOSITORY, "7")
    await control.transfer(REPOSITORY, NUMBER, "/repos/acme/other/issues/1")
    assert not await control.client().get_issue(REPOSITORY, NUMBER)
    assert not await control.client().label_presence(REPOSITORY, NUMBER, ["bug"])
    with pytest.raises(TrackerRefused) as error:
        await control.client().admit_issue(
            REPOSITORY, "7", title="", body="", author=None, labels=()
        )
    assert "issue_not_found" == error.value.code
    assert {REPOSITORY.replace("/", "-")} == {
        "-".join(request["path"].split("/")[2:4]) for request in await control.requests()
    }


async def test_labels_are_added_once_and_nothing_else_is(control: TrackerControl) -> None:
    """Each label asked for has its own result, and only those that were missing are sent."""
    await control.add_label(REPOSITORY, NUMBER, "bug")
    outcome = await add(control.client(), "BUG", "component:api")
    assert (("component:api",), ("bug",)) == (outcome.added, outcome.already_present)
    again = await add(control.client(), "bug", "component:api")
    assert ("bug", "component:api") == again.already_present
    assert ["bug", "component:api"] == await labelled(control)
    assert [KEY] == [request["operation"] for request in await control.requests("POST")]


async def test_an_unknown_label_stops_the_whole_write(control: TrackerControl) -> None:
    """A label that the repository does not have is not created, and no other label is added."""
    outcome = await add(control.client(), "bug", "new")
    expected = (
        LabelResult(label="bug", status=LabelStatus.REFUSED, refusal=LabelRefusal.NOT_ATTEMPTED),
        LabelResult(label="new", status=LabelStatus.REFUSED, refusal=LabelRefusal.UNKNOWN_LABEL),
    )
    assert expected == outcome.results
    assert [] == await control.requests("POST")


async def test_a_label_that_a_person_removed_stays_off(control: TrackerControl) -> None:
    """The issue's events tell that it was there, so it is not put back."""
    await add(control.client(), "bug")
    await control.remove_label(REPOSITORY, NUMBER, "bug")
    outcome = await add(control.client(), "bug", "component:api", key="op_2")
    assert (("component:api",), ("bug",)) == (outcome.added, outcome.refused)
    presence = await control.client().label_presence(REPOSITORY, NUMBER, ["Bug", *LABELS[1:]])
    expected = (
        LabelPresence.REMOVED_BY_PERSON,
        LabelPresence.PRESENT,
        LabelPresence.ABSENT,
    )
    assert expected == presence


async def test_every_page_is_read_and_endless_lists_are_not(control: TrackerControl) -> None:
    """The inventory is whole however long it is; a list that never ends is given up."""
    names = [f"label-{number:03}" for number in range(150)]
    await control.define_labels("acme/many", names)
    assert tuple(names) == await control.client().label_inventory("acme/many")
    await control.plan(
        Fault(method="GET", path="/labels$", times=0, headers={"Link": '<x>; rel="next"'})
    )
    with pytest.raises(TrackerUnavailable) as error:
        await control.client().label_inventory(REPOSITORY)
    assert not error.value.effect_possible


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (refused(401), "unauthorized"),
        (refused(403, "Resource not accessible by integration"), "forbidden"),
        (refused(403, "This issue is locked"), "issue_locked"),
        (refused(404), "issue_not_found"),
        (refused(405), "method_not_allowed"),
        (refused(410), "issue_gone"),
        (refused(422), "validation_failed"),
        (refused(451), "legally_unavailable"),
        (Fault(status=301, takes_effect=False), "issue_transferred"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_refusal_is_final(control: TrackerControl, fault: Fault, code: str) -> None:
    """Statuses after which nothing was done, nor will be, are refusals with a code."""
    await control.plan(fault)
    with pytest.raises(TrackerRefused) as error:
        await add(control.client())
    assert code == error.value.code
    assert [] == await labelled(control)


async def test_a_locked_issue_is_refused_before_anything_is_sent(control: TrackerControl) -> None:
    """The lock is seen by reading; no request to add is made."""
    await control.lock(REPOSITORY, NUMBER)
    with pytest.raises(TrackerRefused) as error:
        await add(control.client())
    assert "issue_locked" == error.value.code
    assert [] == await control.requests("POST")


@pytest.mark.parametrize(
    ("fault", "pause"),
    [
        (rate_limited("7"), 7),
        (rate_limited(None), 60),
        (rate_limited("soon"), 60),
        (rate_limited("1000000000"), 3_600),
        (rate_limited(formatdate(time() - 60, usegmt=True)), 0),
        # Far beyond the longest pause: these are made long before they are used.
        (rate_limited(formatdate(time() + 100_000, usegmt=True)), 3_600),
        (secondary_limit(), 60),
        (refused(403, "no", headers={"Retry-After": "3"}), 3),
        (
            refused(
                403,
                "no",
                headers={
                    "X-RateLimit-Remaining": "0",
                    "X-RateLimit-Reset": str(int(time()) + 100_000),
                },
            ),
            3_600,
        ),
    ],
    ids=["seconds", "none", "words", "huge", "past", "date", "secondary", "header", "primary"],
)
async def test_a_rate_limit_is_a_definite_no_with_a_pause(
    control: TrackerControl, fault: Fault, pause: float
) -> None:
    """Nothing was done, and the pause is what the tracker asks for, within bounds."""
    await control.plan(fault)
    with pytest.raises(TrackerUnavailable) as error:
        await add(control.client())
    assert not error.value.effect_possible
    assert pause == error.value.retry_after_seconds
    assert [] == await labelled(control)


@pytest.mark.parametrize(
    ("fault", "done"),
    [
        (fails_before(), []),
        (fails_after(), ["bug"]),
        (fails_after(503, headers={"Retry-After": "9"}), ["bug"]),
        (dropped_before(), []),
        (dropped_after(), ["bug"]),
        (dropped_before(Reply.RESET), []),
        (dropped_after(Reply.RESET), ["bug"]),
        (dropped_after(Reply.HALF), ["bug"]),
        (wrong_type(), ["bug"]),
        (Fault(body="[{]"), ["bug"]),
        (Fault(body='{"message": "fine"}'), ["bug"]),
        (Fault(status=409, takes_effect=True), ["bug"]),
        (without_effect(), []),
        (partial(), ["component:api"]),
        (Fault(body=" " * 5_000), ["bug"]),
    ],
)
async def test_an_unclear_answer_means_that_it_may_have_happened(
    control: TrackerControl, fault: Fault, done: list[str]
) -> None:
    """After the first byte, nothing but a known refusal proves that nothing was done."""
    labels = ("component:api", "bug") if fault.labels else ("bug",)
    await control.plan(fault)
    with pytest.raises(TrackerUnavailable) as error:
        await add(control.client(max_bytes=4_000), *labels)
    assert error.value.effect_possible
    assert done == await labelled(control)
    assert 1 == len(await control.requests("POST"))


@pytest.mark.parametrize(
    "fault",
    [
        dropped_before(Reply.SILENCE),
        dropped_after(Reply.SILENCE),
        Fault(reply=Reply.DRIP),
        Fault(before_ms=60_000),
        Fault(after_ms=60_000),
    ],
    ids=["silent", "silent after", "drip", "slow", "slow after"],
)
async def test_one_deadline_covers_everything(control: TrackerControl, fault: Fault) -> None:
    """A write that is not answered in time is neither done nor not done, also when bytes drip."""
    await control.plan(fault)
    adding = asyncio.create_task(add(control.client(deadline_seconds=30)))
    await control.requested("POST")
    with ahead(31), pytest.raises(TrackerTimeout):
        await adding


async def test_a_late_commit_happens_after_the_failure(control: TrackerControl) -> None:
    """The tracker drops the connection now and adds the label a moment later."""
    await control.plan(late(1_500))
    before = await control.log()
    began = monotonic()
    with pytest.raises(TrackerUnavailable) as error:
        await add(control.client())
    assert error.value.effect_possible
    there = await labelled(control)
    # A machine that stood still meanwhile may have come to the commit.
    assert [] == there or monotonic() - began >= 1.5
    assert ["bug"] == [entry.label for entry in await control.log(len(before), wait=True)]


async def test_a_refused_connection_is_a_definite_no(control: TrackerControl) -> None:
    """Where no byte could be sent, nothing happened; the tracker comes back where it was."""
    await control.listen(on=False)
    with pytest.raises(TrackerUnavailable) as error:
        await add(control.client())
    assert not error.value.effect_possible
    await control.listen(on=True)
    assert ("bug",) == (await add(control.client())).added


@pytest.mark.parametrize(
    "fault",
    [
        fails_before(**READS),
        dropped_before(**READS),
        dropped_before(Reply.HALF, **READS),
        dropped_before(Reply.SILENCE, **READS),
        wrong_type(**READS),
        Fault(body="{}", **READS),
        Fault(body="[1]", **READS, skip=1),
        Fault(body='[{"event": "labeled"}]', **READS, skip=2),
    ],
)
async def test_what_fails_before_the_write_is_sent_did_nothing(
    control: TrackerControl, fault: Fault
) -> None:
    """Adding begins by reading: a failure there, even a timeout, proves that nothing was added."""
    await control.plan(fault)
    with pytest.raises(TrackerUnavailable) as error:
        await add(control.client(deadline_seconds=1.5))
    assert not error.value.effect_possible
    assert [] == await control.requests("POST")


async def test_a_read_that_is_not_answered_says_so(control: TrackerControl) -> None:
    """Reading an issue has a deadline too."""
    await control.plan(dropped_before(Reply.SILENCE, **READS))
    with pytest.raises(TrackerTimeout):
        await control.client(deadline_seconds=0.5).get_issue(REPOSITORY, NUMBER)


async def test_a_process_that_was_stopped_too_long_sends_nothing(control: TrackerControl) -> None:
    """The deadline is looked at right before the first byte, not only by a timer."""
    steps: list[Step] = []

    with ExitStack() as passing:

        def stop(step: Step) -> None:
            steps.append(step)
            if step is Step.CONNECTED:
                passing.enter_context(ahead(31))

        with pytest.raises(TrackerUnavailable) as error:
            await add(control.client(deadline_seconds=30, on_step=stop))
    assert not error.value.effect_possible
    assert [Step.CONNECTED] == steps
    assert [] == await control.requests("POST")


async def test_only_the_write_is_told_of_its_steps(control: TrackerControl) -> None:
    """A test can stop a process before the first byte, after the last, and after the answer."""
    steps: list[Step] = []
    await add(control.client(on_step=steps.append))
    assert list(Step) == steps
