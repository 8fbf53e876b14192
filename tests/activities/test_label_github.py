"""The write activity over GitHub: what its answers come to in the ledger, end to end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.label_write import CREATED
from activities.labels import LabelActivities, PreviewActivities
from activities.services import Services
from tests.fakes.commit_log import Action, Change
from tests.fakes.faults import Fault, fails_after, rate_limited, refused, without_effect
from tests.fakes.invariants import check_invariants
from tests.unit.fakes.writes import write_request
from tests.unit.trackers.far_ends import NUMBER, GitHubEnd, github_end, issue_of
from triage.contracts.payloads import (
    Preview,
    PreviewRequest,
    WriteOutcome,
    WriteRequest,
    WriteResult,
)
from triage.storage.ledger import Ledger
from triage.storage.operations import OperationRecord, operation_key
from triage.storage.transitions import OperationState as S

ATTEMPTS = 30


@dataclass
class Far:
    """GitHub, and write attempts as the platform makes them, without its pauses."""

    end: GitHubEnd
    services: Services
    attempts: int = 0

    async def request(self, *labels: str) -> WriteRequest:
        """An approved write on the issue as it is now."""
        digest = (await issue_of(self.end)).content_digest
        return write_request(*labels).model_copy(update={"content_digest": digest})

    async def pinned(self, *labels: str) -> WriteRequest:
        """An approved write of labels that were shown with their ids."""
        request, ids = await self.request(*labels), (await self.preview(*labels)).label_ids
        operation = request.operation.model_copy(update={"label_ids": ids})
        return request.model_copy(update={"operation": operation})

    async def write(self, request: WriteRequest) -> WriteResult:
        """Make attempts until one has an answer."""
        while self.attempts < ATTEMPTS:
            self.attempts += 1
            env = ActivityEnvironment()
            env.info = replace(env.info, attempt=self.attempts)
            try:
                result: WriteResult = await env.run(LabelActivities(self.services).apply, request)
            except ApplicationError as error:
                if error.type != "try_later":
                    raise
            else:
                return result
        raise AssertionError("the write is never settled")

    async def preview(self, *labels: str) -> Preview:
        """Show what a write would change."""
        target = write_request("bug").operation.target
        shown: Preview = await ActivityEnvironment().run(
            PreviewActivities(self.services).preview, PreviewRequest(target=target, labels=labels)
        )
        return shown

    async def record(self, request: WriteRequest) -> OperationRecord:
        """The ledger's row of a write."""
        key = operation_key(request.scope, request.operation.operation_id)
        found = await self.services.ledger.get(key)
        assert found is not None
        return found

    async def check(self) -> list[str]:
        """Hold the ledger against what GitHub committed."""
        return await check_invariants(self.services.store, self.end.github.log)


@pytest.fixture
async def far(tmp_path: Path, ticking: Services) -> AsyncIterator[Far]:
    """GitHub with one issue and three labels, and a ledger that waits for no quiet period."""
    async with github_end(tmp_path) as end:
        ledger = Ledger(ticking.store, lease_seconds=60, quiet_period_seconds=0)
        trackers = {"local": end.tracker}
        yield Far(end, replace(ticking, ledger=ledger, trackers=trackers))


async def test_a_label_in_another_letter_case_is_written_once(far: Far) -> None:
    """What was proposed, what the repository has and what the issue shows are one label."""
    shown = await far.preview("BUG")
    assert ((), ("bug",), ()) == (shown.missing, shown.labels_after, shown.labels_before)
    request = await far.request("BUG")
    assert WriteOutcome.APPLIED is (await far.write(request)).outcome
    assert ("bug",) == (await issue_of(far.end)).labels
    assert [] == await far.check()


async def test_a_label_that_the_write_made_anew_needs_a_person(far: Far) -> None:
    """It is on the issue and in the repository, and nobody is told that all went well."""
    request = await far.request("bug")
    # The second look at the events is the write's own: the last thing before it is sent.
    await far.end.control.plan(Fault(method="GET", path="/events$", skip=1, after_ms=300))
    writing = asyncio.create_task(far.write(request))
    await far.end.control.requested("GET", count=8)
    drop = Change(action=Action.LABEL_DROPPED, actor="bob", repository="acme/shop", label="bug")
    far.end.github.api.act(drop)
    assert WriteOutcome.UNKNOWN is (await writing).outcome
    record = await far.record(request)
    assert (S.ATTENTION, "operations", CREATED) == (
        record.state,
        record.attention_owner,
        record.reason,
    )


async def test_an_error_after_the_commit_is_read_back(far: Far) -> None:
    """The label was written once, and its receipt says how that was found."""
    request = await far.request("bug", "component:api")
    await far.end.control.plan(fails_after(times=0))
    assert WriteOutcome.APPLIED is (await far.write(request)).outcome
    assert (S.RECONCILED_APPLIED, 1) == (
        (await far.record(request)).state,
        len(await far.end.control.requests("POST")),
    )
    assert [] == await far.check()


async def test_a_rate_limit_gives_the_write_back(far: Far) -> None:
    """It is sent again after the pause, under a new turn, and once."""
    request = await far.request("bug")
    await far.end.control.plan(rate_limited("0"))
    env = ActivityEnvironment()
    with pytest.raises(ApplicationError) as error:
        await env.run(LabelActivities(far.services).apply, request)
    assert "try_later" == error.value.type
    assert S.RESERVED is (await far.record(request)).state
    far.services.store._offset += timedelta(seconds=2)
    assert WriteOutcome.APPLIED is (await far.write(request)).outcome
    assert ["bug"] == [e.label for e in await far.end.control.log() if e.operation]
    assert 2 == len(await far.end.control.requests("POST"))


ENDINGS = {
    "unauthorised": (refused(401), "unauthorized", "operations"),
    "forbidden": (refused(403, "Resource not accessible"), "forbidden", "operations"),
    "locked": (refused(403, "Issue is locked"), "issue_locked", None),
    "gone": (refused(410), "target_gone: issue_gone", None),
    "invalid": (refused(422), "validation_failed", None),
    "hidden": (refused(451), "legally_unavailable", None),
}


@pytest.mark.parametrize("answer", ENDINGS)
async def test_a_definite_no_ends_the_write(far: Far, answer: str) -> None:
    """Each has its name, is asked for once, and a lack of rights is shown to somebody."""
    fault, detail, owner = ENDINGS[answer]
    request = await far.request("bug")
    await far.end.control.plan(replace(fault, times=0))
    result = await far.write(request)
    record = await far.record(request)
    assert (WriteOutcome.FAILED, detail, S.FAILED, owner) == (
        result.outcome,
        result.detail,
        record.state,
        record.attention_owner,
    )
    assert 1 == len(await far.end.control.requests("POST"))
    assert [] == await far.check()


async def test_a_success_without_an_effect_is_never_taken_for_one(far: Far) -> None:
    """An answer of 200 whose label is not on the issue ends with a person, unapplied."""
    request = await far.request("bug")
    await far.end.control.plan(without_effect(times=0))
    assert WriteOutcome.UNKNOWN is (await far.write(request)).outcome
    assert S.ATTENTION is (await far.record(request)).state
    assert () == (await issue_of(far.end)).labels


async def test_a_pull_request_is_not_written_to(far: Far) -> None:
    """A number that became a pull request's is refused before anything is sent."""
    request = await far.request("bug")
    data = {"title": "Change", "body": "", "pull_request": True}
    opened = Change(
        action=Action.OPENED, actor="bob", repository="acme/shop", issue=NUMBER, data=data
    )
    far.end.github.api.act(opened)
    result = await far.write(request)
    assert (WriteOutcome.FAILED, "not_an_issue") == (result.outcome, result.detail)
    assert [] == await far.end.control.requests("POST")


@pytest.mark.parametrize("gone", [Action.DELETED, Action.TRANSFERRED])
async def test_a_preview_of_what_is_gone_is_an_answer(far: Far, gone: Action) -> None:
    """A run that waits for a person learns that there is nothing to decide on."""
    await far.end.control.act(gone, "acme/shop", NUMBER, data={"to": "/repos/acme/x/issues/1"})
    assert (await far.preview("bug")).gone


async def test_a_receipt_names_the_labels_as_the_issue_shows_them(far: Far) -> None:
    """Before and after are what was seen, whoever put it there."""
    await far.end.adds("good first issue")
    request = await far.request("bug")
    assert WriteOutcome.APPLIED is (await far.write(request)).outcome
    receipt = (await far.record(request)).receipt
    assert receipt is not None
    assert b'"before":["good first issue"]' in receipt
    assert b'"after":["bug","good first issue"]' in receipt


async def test_a_preview_names_labels_by_id(far: Far) -> None:
    """What a reviewer is shown is pinned: the ids belong to the names that were proposed."""
    shown = await far.preview("BUG", "component:api")
    issue = await far.pinned("BUG", "component:api")
    assert issue.operation.label_ids == shown.label_ids
    assert ({"BUG", "component:api"}, None, None) == (
        set(shown.label_ids or {}),
        shown.removed,
        shown.too_many,
    )


async def test_a_preview_tells_what_a_person_took_off(far: Far) -> None:
    """So the run asks nobody for a label that somebody did not want."""
    await far.end.adds("bug")
    await far.end.removes("bug")
    assert ("bug",) == (await far.preview("bug", "component:api")).removed


@pytest.mark.parametrize("how", ["made again", "renamed"])
async def test_a_label_that_changed_after_it_was_shown_is_a_conflict(far: Far, how: str) -> None:
    """Another label under the approved name, or the approved one under another: nothing is sent."""
    request = await far.pinned("bug", "component:api")
    if how == "renamed":
        await far.end.control.act(
            Action.LABEL_RENAMED, "acme/shop", label="bug", data={"to": "defect"}
        )
        await far.end.defines("bug")
    else:
        await far.end.remakes("bug")
    for _ in range(2):
        result = await far.write(request)
        assert WriteOutcome.CONFLICT is result.outcome
        assert how in result.detail
    record = await far.record(request)
    assert (S.CANCELLED, 0) == (record.state, record.dispatches)
    assert [] == await far.end.control.requests("POST")


@pytest.mark.parametrize("shown", [True, False])
async def test_a_label_that_changes_in_the_last_moment_is_a_conflict(
    far: Far,
    shown: bool,
) -> None:
    """Also after our last look, and where an approval from before the run names no ids."""
    request = await (far.pinned("bug") if shown else far.request("bug"))
    before = len(await far.end.control.requests("GET"))
    # The third look at the issue is the tracker's own, before it looks at the labels again.
    await far.end.control.plan(Fault(method="GET", path="/issues/101$", skip=2, after_ms=300))
    writing = asyncio.create_task(far.write(request))
    await far.end.control.requested("GET", count=before + 5)
    await far.end.remakes("bug")
    result = await writing
    record = await far.record(request)
    assert (WriteOutcome.CONFLICT, S.CANCELLED, 1) == (
        result.outcome,
        record.state,
        record.dispatches,
    )
    assert () == (await issue_of(far.end)).labels


async def test_a_receipt_names_github_s_own_request(far: Far) -> None:
    """Whoever asks GitHub about a write can say which request it was."""
    request = await far.pinned("bug")
    assert WriteOutcome.APPLIED is (await far.write(request)).outcome
    [sent] = await far.end.control.requests("POST")
    receipt = json.loads((await far.record(request)).receipt or b"{}")
    assert sent["id"] == receipt["request_id"]
