"""Checks that the story comes to what the run itself came to."""

import itertools
import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from pydantic import JsonValue
from temporalio import workflow
from temporalio.worker import (
    ExecuteWorkflowInput,
    Interceptor,
    UnsandboxedWorkflowRunner,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
)

from tests.replay.histories import payloads, read_events
from tests.unit.story.histories import INDEX, TRIAGES, of_kind, stem, told_whole
from triage.contracts.approval import parse_review
from triage.contracts.state import PendingView, VerdictNote
from triage.policy.approval_gate import Trust
from triage.replay import read_history, replay_failure
from triage.story.desk import Desk, Wait
from triage.story.parts import Kind
from triage.story.telling import tell
from workflows.issue_triage import IssueTriage
from workflows.review_desk import ReviewDesk
from workflows.state import RunState

SPOKEN_TO: Final = [
    path
    for path in TRIAGES
    if any(
        "SIGNALED" in event["eventType"] or "UPDATE" in event["eventType"]
        for event in read_events(path)
    )
]


class _Instances(Interceptor):
    """Keeps the workflow object of a replayed run."""

    def __init__(self) -> None:
        self.found: list[IssueTriage] = []

    def workflow_interceptor_class(
        self,
        input: WorkflowInterceptorClassInput,  # noqa: A002 - the SDK names it
    ) -> type[WorkflowInboundInterceptor]:
        """Return a class that reports back to this object."""
        found = self.found

        class Inbound(WorkflowInboundInterceptor):
            async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:  # noqa: A002, ANN401 - the SDK's own
                instance = workflow.instance()
                assert isinstance(instance, IssueTriage)
                found.append(instance)
                return await super().execute_workflow(input)

        return Inbound


async def _replayed(path: Path) -> IssueTriage:
    watch = _Instances()
    runner = UnsandboxedWorkflowRunner()
    history = read_history(path)
    assert None is await replay_failure(history, [IssueTriage], runner=runner, interceptors=[watch])
    return watch.found[0]


@pytest.mark.parametrize("path", SPOKEN_TO, ids=stem)
async def test_the_story_refuses_what_the_run_refused(path: Path) -> None:
    """Each refusal that the run itself has on record is in the story, and no other one is."""
    state = (await _replayed(path)).state()
    recorded = Counter(
        (item.code, item.operation_id, item.version, item.approver) for item in state.refusals
    )
    told = Counter(
        tuple(beat.facts.get(name) for name in ("code", "operation_id", "version", "approver"))
        for beat in told_whole(path).beats
        if beat.facts.get("accepted") is False
        and beat.facts.get("code")
        and beat.facts.get("channel") != "update"
    )
    assert recorded == told


@pytest.mark.parametrize("path", TRIAGES, ids=stem)
def test_the_review_that_counted_is_the_one_on_record(path: Path) -> None:
    """A write names the approval that it rests on; the story comes to the same one by itself."""
    events = read_events(path)
    writes = [
        json.loads(data)["approval"]
        for event in events
        if "activityTaskScheduledEventAttributes" in event
        for data in payloads(event)
        if "approval" in json.loads(data)
    ]
    counted = [
        beat.facts
        for beat in told_whole(path).beats
        if beat.kind in {Kind.REVIEW, Kind.VERIFIED}
        and beat.facts.get("decides")
        and beat.facts.get("name") != "reject"
    ]
    told = [(facts["approver"], facts.get("channel", "signal")) for facts in counted]
    assert [(w["approver"], w["source"]) for w in writes] == told[: len(writes)]
    if len(told) > len(writes):
        stopped = {"policy_block", "state_conflict", "tool_error"}
        assert (INDEX[path.stem]["response"] or {}).get("failure") in stopped


REVIEW: Final[dict[str, JsonValue]] = {
    "operation_id": "op-6",
    "version": 6,
    "approver": "ann",
    "verdict": "approve",
}
SHOWN: Final = "sha256:" + "1" * 64
CHANGES: Final[dict[str, list[JsonValue]]] = {
    "operation_id": ["op-6", "op-7"],
    "version": [6, 5],
    "digest": [None, SHOWN, "sha256:" + "2" * 64],
    "approver": ["ann", "@Author ", "helper[BOT]"],
    "token": [None, "signed"],
    "verdict": ["approve", "reject"],
}
DEADLINE: Final = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize("local", [True, False])
@pytest.mark.parametrize("state", ["closed", "open", "approved by one", "decided", "decided, open"])
@pytest.mark.parametrize("approvers", [(), ("helper[bot]", "@Author", "Ann")])
def test_the_story_judges_reviews_as_the_run_does(
    local: bool, state: str, approvers: tuple[str, ...]
) -> None:
    """Whatever review arrives whenever, the story's desk and the run's give the same answer."""
    told, run = _desks(local=local, approvers=approvers)
    if state not in {"closed", "decided"}:
        _open(told, run, ("ANN",) if state == "approved by one" else ())
    if "decided" in state:
        told.verdicts["op-6", 6] = parse_review({**REVIEW}, None)
        run._state.verdicts.append(_verdict())
    for values in itertools.product(*CHANGES.values()):
        given = dict(zip(CHANGES, values, strict=True))
        review = parse_review({**REVIEW, **given}, None)
        for now in (DEADLINE - timedelta(microseconds=1), DEADLINE):
            assert run.check(review, now) == told.judge(review, now), (review, now)


ARRIVALS: Final = (
    ("ann", "approve", "1001"),
    ("@Ann", "approve", None),
    ("ann-too", "approve", "1001"),
    ("bob", "approve", "1002"),
    ("cy", "approve", None),
    ("dee", "reject", "1004"),
    ("bob-too", "reject", "1002"),
)


@pytest.mark.parametrize("required", [1, 2, 3])
def test_the_story_counts_approvals_as_the_run_does(required: int) -> None:
    """In whatever order people answer, the same ones have approved and the same one decides."""
    now = DEADLINE - timedelta(hours=1)
    for order in itertools.permutations(ARRIVALS, 4):
        told, run = _desks(local=True)
        _open(told, run, required=required)
        for approver, verdict, subject in order:
            review = parse_review({**REVIEW, "approver": approver, "verdict": verdict}, None)
            code = run.receive(review, "signal", now, subject)
            assert code == told.receive(review, now, subject), order
        assert run.shown is not None
        expected = run.decided.review if run.decided else None
        assert (expected, run.shown.approved_by) == (told.decided, tuple(told.approved_by))


def _desks(*, local: bool, approvers: tuple[str, ...] = ()) -> tuple[Desk, ReviewDesk]:
    run = ReviewDesk(RunState())
    run.trust = Trust(local=local, author="author", approvers=approvers)
    return Desk(local=local, author="author", approvers=approvers), run


def _open(
    told: Desk, run: ReviewDesk, approved_by: tuple[str, ...] = (), required: int = 2
) -> None:
    told.open(DEADLINE, Wait("op-6", 6, SHOWN, DEADLINE, required), approved_by)
    pending = _pending().model_copy(
        update={"approvals_required": required, "approved_by": approved_by}
    )
    run.open(pending)


def _verdict() -> VerdictNote:
    note = {"operation_id": "op-6", "version": 6, "verdict": "approve", "approver": "ann"}
    return VerdictNote.model_validate_json(json.dumps({**note, "at": ""}))


def _pending() -> PendingView:
    return PendingView(
        operation_id="op-6",
        version=6,
        tool="apply_labels",
        target={},
        arguments={},
        digest=SHOWN,
        labels_before=(),
        labels_after=(),
        proposed_by="model",
        proposed_at=DEADLINE.isoformat(),
        expires_at=DEADLINE.isoformat(),
    )


@pytest.mark.parametrize("path", TRIAGES, ids=stem)
def test_a_refused_step_leads_to_the_failure_on_record(path: Path) -> None:
    """A failure that the story foresees at a step is the one that the run ended with."""
    story = tell(read_history(path).events)
    foreseen = {beat.facts.get("failure") for beat in of_kind(story, Kind.MODEL)} - {None}
    assert foreseen <= {(INDEX[path.stem]["response"] or {}).get("failure")}
