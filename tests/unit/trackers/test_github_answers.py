"""What GitHub answers, or does not, and what that proves about a write."""

from __future__ import annotations

import asyncio
from email.utils import formatdate
from time import time
from typing import Any

import pytest

from tests.fakes.commit_log import Action, Change
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
from tests.unit.trackers.far_ends import NUMBER, GitHubEnd, github_tracker
from triage.trackers.base import (
    IssueNotFound,
    LabelsAdded,
    TrackedIssue,
    TrackerRefused,
    TrackerUnavailable,
)
from triage.trackers.github import GitHubTracker
from triage.trackers.github_answers import problem_of

READS: dict[str, Any] = {"method": "GET", "path": ""}
ISSUE: dict[str, Any] = {"method": "GET", "path": rf"/issues/{NUMBER}$"}


async def _add(end: GitHubEnd, *labels: str, tracker: GitHubTracker | None = None) -> LabelsAdded:
    return await (tracker or end.over_github).add_labels(
        end.repository, NUMBER, labels or ("bug",), by="bounded-triage", operation_key="op_1"
    )


async def _labelled(end: GitHubEnd) -> list[str | None]:
    """The labels that were put on, in the order of their commits."""
    return [e.label for e in await end.control.log() if e.action is Action.LABELED]


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (refused(401, "Bad credentials"), "unauthorized"),
        (refused(403, "Resource not accessible by integration"), "forbidden"),
        (refused(403, "Unable to create comment because issue is locked."), "issue_locked"),
        (refused(404, "Not Found"), "issue_not_found"),
        (refused(405), "method_not_allowed"),
        (refused(410, "This issue was deleted"), "issue_gone"),
        (refused(422, "Validation Failed"), "validation_failed"),
        (refused(451), "legally_unavailable"),
        (Fault(status=301, takes_effect=False), "issue_transferred"),
        (Fault(status=307, takes_effect=False), "issue_transferred"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_refusal_is_final_and_has_a_code(end: GitHubEnd, fault: Fault, code: str) -> None:
    """A lock is no lack of rights, and an issue that moved, was deleted or is hidden differ."""
    await end.control.plan(fault)
    with pytest.raises(TrackerRefused) as error:
        await _add(end)
    assert code == error.value.code
    assert [] == await _labelled(end)
    assert 1 == len(await end.control.requests("POST"))


@pytest.mark.parametrize(
    ("fault", "pause"),
    [
        (rate_limited("7"), 7),
        (rate_limited(None), 60),
        (rate_limited("soon"), 60),
        (rate_limited("1000000000"), 3_600),
        (rate_limited("9" * 400), 60),
        (rate_limited(formatdate(time() - 60, usegmt=True)), 0),
        # Far beyond the longest pause: these are made long before they are used.
        (rate_limited(formatdate(time() + 100_000, usegmt=True)), 3_600),
        (secondary_limit(), 60),
        (refused(403, "You have triggered an abuse detection mechanism."), 60),
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
    ids=[
        "seconds",
        "none",
        "words",
        "huge",
        "absurd",
        "past",
        "date",
        "secondary",
        "abuse",
        "header",
        "primary",
    ],
)
async def test_a_rate_limit_is_a_definite_no_with_a_pause(
    end: GitHubEnd, fault: Fault, pause: float
) -> None:
    """Nothing was done; the pause is what GitHub asks for, within bounds, or a minute."""
    await end.control.plan(fault)
    with pytest.raises(TrackerUnavailable) as error:
        await _add(end)
    assert (False, pause) == (error.value.effect_possible, error.value.retry_after_seconds)
    assert [] == await _labelled(end)


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
        (Fault(body='[{"id": "7", "name": "bug"}]'), ["bug"]),
        (Fault(body="[" * 5_000), ["bug"]),
        (Fault(status=409, takes_effect=True), ["bug"]),
        (Fault(status=202, takes_effect=True), ["bug"]),
        (Fault(status=304, takes_effect=True), ["bug"]),
        (without_effect(), []),
        (partial(), ["component:api"]),
        (Fault(body=" " * 50_000), ["bug"]),
    ],
)
async def test_an_unclear_answer_means_that_it_may_have_happened(
    end: GitHubEnd, fault: Fault, done: list[str]
) -> None:
    """After the first byte nothing but a known refusal proves that nothing was done.

    And whatever the answer is, the request was made once: nobody repeats it behind our back.
    """
    labels = ("component:api", "bug") if fault.labels else ("bug",)
    await end.control.plan(fault)
    with pytest.raises(TrackerUnavailable) as error:
        await _add(end, *labels, tracker=github_tracker(end.github, max_bytes=40_000))
    assert error.value.effect_possible
    assert done == await _labelled(end)
    assert 1 == len(await end.control.requests("POST"))


async def test_a_late_commit_happens_after_the_failure(end: GitHubEnd) -> None:
    """GitHub drops the connection now and adds the label a moment later."""
    await end.control.plan(late(800))
    with pytest.raises(TrackerUnavailable) as error:
        await _add(end)
    assert error.value.effect_possible
    before = await end.control.log()
    assert [] == await _labelled(end)
    assert ["bug"] == [entry.label for entry in await end.control.log(len(before), wait=True)]


async def test_a_refused_connection_is_a_definite_no(end: GitHubEnd) -> None:
    """Where no byte could be sent, nothing happened, and the next attempt may succeed."""
    await end.control.listen(on=False)
    with pytest.raises(TrackerUnavailable) as error:
        await _add(end)
    assert not error.value.effect_possible
    await end.control.listen(on=True)
    assert ("bug",) == (await _add(end)).added


async def test_a_connection_that_is_refused_to_the_write_alone_is_a_definite_no(
    end: GitHubEnd,
) -> None:
    """That the reads before it were answered says nothing about a write that was not sent."""
    await end.control.plan(Fault(method="GET", path="/events$", after_ms=500))
    adding = asyncio.create_task(_add(end))
    await end.control.requested("GET", count=3)
    await end.control.listen(on=False)
    with pytest.raises(TrackerUnavailable) as error:
        await adding
    assert not error.value.effect_possible
    assert [] == await end.control.requests("POST")


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
        rate_limited("5", **READS),
    ],
)
async def test_what_fails_before_the_write_is_sent_did_nothing(
    end: GitHubEnd, fault: Fault
) -> None:
    """Adding begins by reading: a failure there, even a timeout, proves that nothing was added."""
    await end.control.plan(fault)
    with pytest.raises(TrackerUnavailable) as error:
        await _add(end, tracker=github_tracker(end.github, request_seconds=0.8))
    assert not error.value.effect_possible
    assert [] == await end.control.requests("POST")


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (refused(404, **ISSUE), "issue_not_found"),
        (refused(410, **ISSUE), "issue_gone"),
        (Fault(status=301, headers={"Location": "http://x/"}, **ISSUE), "issue_transferred"),
    ],
    ids=["404", "410", "301"],
)
async def test_what_is_gone_is_an_answer_with_its_reason(
    end: GitHubEnd, fault: Fault, code: str
) -> None:
    """Before the write, at the write and when it is read back, it is told apart why."""
    gone = IssueNotFound(repository=end.repository, number=NUMBER, code=code)
    await end.control.plan(Fault(**{**vars(fault), "times": 0}))
    assert gone == await end.over_github.get_issue(end.repository, NUMBER)
    assert gone == await end.over_github.label_presence(end.repository, NUMBER, ["bug"])
    for call in (
        _add(end),
        end.over_github.admit_issue(
            end.repository, NUMBER, title="", body="", author=None, labels=()
        ),
    ):
        with pytest.raises(TrackerRefused) as error:
            await call
        assert code == error.value.code
    assert [] == await end.control.requests("POST")


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (refused(401, **ISSUE), "unauthorized"),
        (refused(403, "Resource not accessible", **ISSUE), "forbidden"),
        (refused(451, **ISSUE), "legally_unavailable"),
    ],
)
async def test_a_read_may_be_forbidden(end: GitHubEnd, fault: Fault, code: str) -> None:
    """What we may not see is no answer about the issue."""
    await end.control.plan(fault)
    with pytest.raises(TrackerRefused) as error:
        await end.over_github.get_issue(end.repository, NUMBER)
    assert code == error.value.code


def _edit(end: GitHubEnd, body: str) -> None:
    # Too long for the door that tests use.
    data = {"body": body}
    change = Change(
        action=Action.EDITED, actor="ann", repository=end.repository, issue=NUMBER, data=data
    )
    end.github.api.act(change)


@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "bomb"])
async def test_a_large_answer_is_cut(end: GitHubEnd, compressed: bool) -> None:
    """What counts is what comes out of the compression, not what came over the wire."""
    _edit(end, "x" * 10_000_000)
    end.github.api.is_compressing = compressed
    with pytest.raises(TrackerUnavailable, match="too large"):
        await end.over_github.get_issue(end.repository, NUMBER)


@pytest.mark.parametrize("chars", [140_873, 207_777])
async def test_a_long_text_is_read_whole(end: GitHubEnd, chars: int) -> None:
    """Texts over 65,536 characters, which GitHub has, lose nothing; compressed or not."""
    _edit(end, "ü" * chars)
    for compressed in (False, True):
        end.github.api.is_compressing = compressed
        found = await end.over_github.get_issue(end.repository, NUMBER)
        assert isinstance(found, TrackedIssue)
        assert "ü" * chars == found.body


def test_only_two_statuses_are_a_success() -> None:
    """Every other status has a meaning, and what has none may have happened."""
    for status in range(202, 600):
        problem = problem_of(status, {}, b"", about="issue", writing=True)
        assert problem is not None
        known = isinstance(problem, TrackerRefused) or status == 429
        assert known or (isinstance(problem, TrackerUnavailable) and problem.effect_possible)
