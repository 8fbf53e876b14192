"""The write activity over HTTP: what each answer of a tracker's API comes to, end to end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.labels import LabelActivities, PreviewActivities
from activities.services import Services
from tests.fakes.commit_log import Action
from tests.fakes.control import TrackerControl
from tests.fakes.faults import (
    Fault,
    Reply,
    dropped_before,
    fails_before,
    partial,
    refused,
    without_effect,
)
from tests.fakes.invariants import check_invariants
from tests.fakes.tracker import serving
from tests.unit.fakes.scene import ISSUE_PATH, LABELS, NUMBER, REPOSITORY
from tests.unit.fakes.writes import write_request
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
from triage.trackers.base import TrackedIssue

READS = rf"{ISSUE_PATH}$"
ATTEMPTS = 30
TARGET = write_request("bug").operation.target


@dataclass
class Far:
    """A tracker's API, and write attempts as the platform makes them, without its pauses."""

    control: TrackerControl
    services: Services
    log: Path
    attempts: int = 0

    async def request(self, *labels: str) -> WriteRequest:
        """An approved write on the issue as it is now."""
        issue = await self.control.client().get_issue(REPOSITORY, NUMBER)
        assert isinstance(issue, TrackedIssue)
        return write_request(*labels).model_copy(update={"content_digest": issue.content_digest})

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

    async def record(self, request: WriteRequest) -> OperationRecord:
        """The ledger's row, after all invariants were seen to hold."""
        key = operation_key(request.scope, request.operation.operation_id)
        found = await self.services.ledger.get(key)
        assert found is not None
        assert [] == await check_invariants(self.services.store, self.log)
        return found

    async def sent(self) -> list[str | None]:
        """The labels that were put on, in the order of their commits."""
        return [e.label for e in await self.control.log() if e.action is Action.LABELED]


@pytest.fixture
async def far(tmp_path: Path, ticking: Services) -> AsyncIterator[Far]:
    """An API with one issue and three labels, and a ledger that waits for no quiet period."""
    log = tmp_path / "commits.jsonl"
    async with serving(log) as running:
        control = TrackerControl(running.api.address, running.control.address)
        await control.define_labels(REPOSITORY, LABELS)
        await control.open_issue(REPOSITORY, NUMBER, title="Crash", body="It crashes.")
        ledger = Ledger(ticking.store, lease_seconds=60, quiet_period_seconds=0)
        trackers = {"local": control.client()}
        yield Far(control, replace(ticking, ledger=ledger, trackers=trackers), log)


ENDINGS = {
    "unauthorised": (refused(401), "unauthorized", "operations"),
    "forbidden": (refused(403), "forbidden", "operations"),
    "locked": (refused(403, "the issue is locked"), "issue_locked", None),
    "not found": (refused(404), "target_gone: issue_not_found", None),
    "gone": (refused(410), "target_gone: issue_gone", None),
    "transferred": (refused(301, takes_effect=False), "target_gone: issue_transferred", None),
    "invalid": (refused(422), "validation_failed", None),
}


@pytest.mark.parametrize("answer", ENDINGS)
async def test_a_definite_no_ends_the_write_at_once(far: Far, answer: str) -> None:
    """Each refusal of the request that writes has its name, and some are shown to somebody."""
    fault, detail, owner = ENDINGS[answer]
    request = await far.request("bug")
    await far.control.plan(replace(fault, times=0))
    result = await far.write(request)
    assert (WriteOutcome.FAILED, detail, 1) == (result.outcome, result.detail, far.attempts)
    record = await far.record(request)
    assert (S.FAILED, owner, owner is not None) == (
        record.state,
        record.attention_owner,
        record.attention_at is not None,
    )
    assert [] == await far.sent()


async def test_a_refusal_in_spite_of_a_part_goes_to_a_person(far: Far) -> None:
    """What a refused request did all the same is found by reading, and not repeated."""
    request = await far.request("bug", "component:api")
    await far.control.plan(partial(1, status=422, times=0))
    assert WriteOutcome.UNKNOWN is (await far.write(request)).outcome
    assert S.ATTENTION is (await far.record(request)).state
    assert 1 == len(await far.sent())


async def test_a_half_done_write_is_completed_by_the_rest(far: Far) -> None:
    """After an error that came half way only the label that is missing is asked for."""
    request = await far.request("bug", "component:api")
    await far.control.plan(partial(1))
    assert WriteOutcome.APPLIED is (await far.write(request)).outcome
    assert {"bug", "component:api"} == set(await far.sent())
    assert 2 == len(await far.sent())
    assert (S.APPLIED, 2) == ((await far.record(request)).state, (await far.record(request)).epoch)


async def test_a_success_without_an_effect_is_never_taken_for_one(far: Far) -> None:
    """An answer of 200 whose labels are not on the issue ends with a person, unapplied."""
    request = await far.request("bug")
    await far.control.plan(without_effect(times=0))
    assert WriteOutcome.UNKNOWN is (await far.write(request)).outcome
    assert S.ATTENTION is (await far.record(request)).state
    assert [] == await far.sent()


PREVIEWS = {
    "forbidden": (refused(403, method="GET", path=READS), "tool_error"),
    "broken": (fails_before(method="GET", path=READS), "tool_error"),
    "limited": (refused(429, method="GET", path=READS), "tool_error"),
    "dropped": (dropped_before(method="GET", path=READS), "tool_error"),
    "silent": (Fault(method="GET", path=READS, reply=Reply.SILENCE), "tool_timeout"),
}


async def _preview(far: Far, attempt: int) -> Preview:
    env = ActivityEnvironment()
    env.info = replace(env.info, attempt=attempt)
    shown: Preview = await env.run(
        PreviewActivities(far.services).preview, PreviewRequest(target=TARGET, labels=("bug",))
    )
    return shown


@pytest.mark.parametrize("answer", PREVIEWS)
async def test_a_preview_has_a_named_end(far: Far, answer: str) -> None:
    """Whatever a reading of the API comes to, the preview's last attempt has a class of failure."""
    fault, name = PREVIEWS[answer]
    await far.control.plan(replace(fault, times=0))
    waits = {"deadline_seconds": 0.3} if answer == "silent" else {}
    client = far.control.client(**waits)
    far.services = replace(far.services, trackers={"local": client})
    with pytest.raises(ApplicationError) as caught:
        await _preview(far, 5)
    assert (name, True) == (caught.value.type, caught.value.non_retryable)


@pytest.mark.parametrize("status", [404, 410, 301])
async def test_a_preview_of_what_is_gone_is_an_answer(far: Far, status: int) -> None:
    """An issue that is not where it was is shown as gone, and no failure."""
    await far.control.plan(refused(status, method="GET", path=READS, times=0))
    assert (await _preview(far, 1)).gone
