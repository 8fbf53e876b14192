"""Every run that is recorded: its input, what a person does to it, and how it has to end.

Each terminal status, each failure class and each way in or out of a wait is here at least once;
`tests.replay.test_catalogue` says what is missing. A name is also the workflow id, the repository
of the run's issue and the file's name.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import JsonValue
from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue

from tests.replay import people
from tests.replay.stage import BROKEN, FORGETFUL, LEAKY, LOST_ANSWER, LOST_ISSUE, SLOW, Stage
from tests.workflow.decisions import (
    OPERATION,
    TIMEOUT,
    Script,
    a_request,
    call,
    final,
    hand_over,
    label,
    lookup,
    policy,
)
from tests.workflow.runs import Run
from triage.contracts.names import EVIDENCE_LOOP, ISSUE_TRIAGE

Drive = Callable[[Stage, Run], Awaitable[None]]
Options = Mapping[str, JsonValue]

OPEN: Final = "open"
CANCELED: Final = "canceled"
APPROVE: Final[Options] = {"mode": "approve"}


@dataclass(frozen=True, kw_only=True)
class Recording:
    """One run to record.

    Attributes:
        name: names everything about it.
        ends: status and failure class of its response, such as ``failed/tool_error``; the status
            of an evidence loop; ``open``, ``canceled``, or ``failure`` and the failure's type.
        script: what the recorded model answers; None for the rules model.
        request: the request, or any JSON value that stands in its place.
        options: the run's options, without model and repository.
        drive: what happens to it while it runs.
        inputs: its raw arguments, instead of all of the above.
        workflow: its type.
        edit: a request that overtakes the start of the run.
        thinks: whether its model waits to be let go on; see `HeldServices`.
    """

    name: str
    ends: str
    script: Script | None = None
    request: JsonValue = field(default_factory=a_request)
    options: Options = field(default_factory=dict)
    drive: Drive | None = None
    inputs: tuple[Any, ...] | None = None
    workflow: str = ISSUE_TRIAGE
    edit: JsonValue = None
    thinks: bool = False


def _plain(name: str, ends: str, *script: JsonValue, **options: JsonValue) -> Recording:
    """A run that nobody touches."""
    return Recording(name=name, ends=ends, script=[*script], options=options)


def _driven(
    name: str, ends: str, drive: Drive, *script: JsonValue, **options: JsonValue
) -> Recording:
    """A run in approve mode, unless the options say otherwise, that people act on."""
    merged = {**APPROVE, **options}
    return Recording(name=name, ends=ends, script=[*script], options=merged, drive=drive)


def _input(name: str, *inputs: object) -> Recording:
    """A run whose arguments are not what they should be."""
    return Recording(name=name, ends="failed/invalid_input", inputs=inputs)


def _raw(encoding: bytes, data: bytes) -> RawValue:
    return RawValue(Payload(metadata={"encoding": encoding}, data=data))


ANSWER: Final = (lookup(), final("owners-api"))

COMPLETED: Final = (
    _plain("completed", "completed", *ANSWER),
    Recording(name="completed-by-rules-model", ends="completed"),
    _plain("completed-after-model-retry", "completed", TIMEOUT, *ANSWER),
    _plain("completed-in-shadow-mode", "completed", *ANSWER, mode="shadow"),
    _plain("completed-entailed", "completed", *ANSWER, grounding="entailed"),
    _plain(
        "completed-with-redacted-secret",
        "completed",
        lookup(LEAKY),
        final("owners-leaky", labels=("bug",)),
    ),
    _plain(
        "completed-approved-at-start",
        "completed",
        label("bug"),
        final("mutation-receipt"),
        approvals={OPERATION: 3},
    ),
    _driven("completed-approved-by-signal", "completed", people.approve_by_signal, *ANSWER),
    _driven("completed-approved-by-update", "completed", people.approve_by_update, *ANSWER),
    _driven(
        "completed-with-repeated-operation",
        "completed",
        people.approve_two,
        label("bug"),
        label("bug"),
        final("mutation-receipt", labels=("bug",)),
    ),
    _driven("completed-despite-junk", "completed", people.send_junk_then_approve, *ANSWER),
    _driven(LOST_ANSWER, "completed", people.approve_by_signal, *ANSWER),
    _driven(
        "completed-edited-while-waiting",
        "completed",
        people.edit_then_approve,
        *ANSWER,
        final("owners-api"),
    ),
    Recording(
        name="completed-edited-at-start",
        ends="completed",
        script=[*ANSWER],
        edit=people.EDITED,
    ),
    Recording(
        name="completed-edited-while-deciding",
        ends="completed",
        script=[hand_over(reason="about the first text"), *ANSWER],
        drive=people.edit_in_thought,
        thinks=True,
    ),
)

REVIEW_REQUIRED: Final = (
    _plain("review-requested", "review_required", lookup(), hand_over("owners-api")),
    _plain(
        "review-by-policy",
        "review_required",
        policy("security"),
        hand_over("policy-security", route="security_review"),
    ),
    _plain("review-approval-required", "review_required/approval_required", lookup(), label("bug")),
    _plain(
        "review-write-without-operation-id",
        "review_required/approval_required",
        label("bug", operation_id=None),
    ),
    _plain(
        "review-stale-approval-at-start",
        "review_required/approval_required",
        label("bug"),
        approvals={OPERATION: 2},
    ),
    _driven(
        "review-rejected-by-signal",
        "review_required/approval_required",
        people.reject_by_signal,
        *ANSWER,
    ),
    _driven(
        "review-rejected-by-update",
        "review_required/approval_required",
        people.reject_by_update,
        *ANSWER,
    ),
    _driven(
        "review-approval-expired",
        "review_required/approval_required",
        people.only_look,
        *ANSWER,
        approval_window_seconds=1,
    ),
    _plain("review-policy-block", "review_required/policy_block", label("bug"), mode="shadow"),
    _plain(
        "review-other-issue",
        "review_required/policy_block",
        label("bug", issue="ISSUE-2"),
        approvals={OPERATION: 3},
    ),
    _plain(
        "review-label-not-permitted",
        "review_required/policy_block",
        label("wontfix"),
        approvals={OPERATION: 3},
    ),
    _plain("review-model-timeout", "review_required/model_timeout", TIMEOUT, TIMEOUT),
    _plain(
        "review-tool-error-with-evidence", "review_required/tool_error", lookup(), lookup(BROKEN)
    ),
    _plain(
        "review-tool-timeout-with-evidence", "review_required/tool_timeout", lookup(), lookup(SLOW)
    ),
    _driven(
        "review-operation-id-reused",
        "review_required/state_conflict",
        people.approve_by_signal,
        label("bug"),
        label("documentation"),
    ),
    _driven(
        "review-issue-changed",
        "review_required/state_conflict",
        people.change_issue_then_approve,
        *ANSWER,
    ),
    _plain(
        "review-budget-exceeded",
        "review_required/budget_exceeded",
        *ANSWER,
        budget={"evidence_bytes": 1},
    ),
    _plain(
        "review-not-entailed",
        "review_required/final_output_invalid",
        lookup(),
        final("owners-api", owner="docs-team"),
        grounding="entailed",
    ),
    _driven(LOST_ISSUE, "review_required/tool_timeout", people.approve_by_signal, *ANSWER),
)

FAILED: Final = (
    Recording(
        name="failed-unknown-field",
        ends="failed/invalid_input",
        request=a_request(severity="high"),
    ),
    Recording(name="failed-not-an-object", ends="failed/invalid_input", request=["a", "list"]),
    _plain("failed-unknown-option", "failed/invalid_input", *ANSWER, colour="red"),
    _input("failed-no-input"),
    _input("failed-three-inputs", a_request(), {}, {}),
    _input("failed-binary-input", _raw(b"binary/plain", b"\x00\xff")),
    _input("failed-broken-json", _raw(b"json/plain", b'{"request_id": "\\ud800", ')),
    _input("failed-unknown-model", a_request(), {"model": "oracle"}),
    _plain("failed-not-a-decision", "failed/model_invalid_output", {"kind": "sing"}),
    _plain("failed-script-exhausted", "failed/model_invalid_output"),
    _plain(
        "failed-review-without-ground", "failed/model_invalid_output", hand_over("made-up-evidence")
    ),
    _plain("failed-unknown-tool", "failed/unknown_tool", call("run_shell", {"command": "id"})),
    _plain(
        "failed-invalid-tool-arguments",
        "failed/invalid_tool_arguments",
        call("lookup_component_owner", {"path": 7}),
    ),
    _plain("failed-tool-timeout", "failed/tool_timeout", lookup(SLOW)),
    _plain("failed-tool-error", "failed/tool_error", lookup(BROKEN)),
    _plain("failed-max-steps", "failed/max_steps_exceeded", lookup(), lookup(), max_steps=2),
    _plain("failed-final-without-ground", "failed/final_output_invalid", final("owners-api")),
)

UNFINISHED: Final = (
    _driven("waiting-for-approval", OPEN, people.only_look, *ANSWER),
    _driven("waiting-with-refusals", OPEN, people.send_junk, *ANSWER),
    Recording(
        name="deciding",
        ends=OPEN,
        script=[lookup(), hand_over()],
        drive=people.leave_in_thought,
        thinks=True,
    ),
    _driven("canceled-while-waiting", CANCELED, people.cancel, *ANSWER),
)

# Removes the stored content of every run, so it is recorded when all others have ended.
LAST: Final = (
    _plain(
        "review-content-unavailable",
        "review_required/tool_error",
        lookup(FORGETFUL),
        final("owners-default"),
    ),
)


def _loop(name: str, ends: str, *decisions: JsonValue, limit: int = 3) -> Recording:
    incident: dict[str, JsonValue] = {
        "incident_id": "INC-1",
        "limit": limit,
        "evidence": {"latency": {"p95_ms": 900}, "errors": 3},
    }
    if decisions:
        incident["decisions"] = [*decisions]
    return Recording(name=name, ends=ends, workflow=EVIDENCE_LOOP, inputs=(incident,))


def _read(ref: str) -> JsonValue:
    return {"action": "read", "argument": ref}


_FINISH: Final[JsonValue] = {"action": "finish", "argument": None}

LOOPS: Final = (
    _loop("loop-complete", "complete"),
    _loop("loop-unsupported", "unsupported", _FINISH),
    _loop("loop-denied", "denied", _read("latency"), _read("passwords")),
    _loop("loop-repeated", "repeated", _read("latency"), _read("latency")),
    _loop("loop-exhausted", "exhausted", _read("latency"), _read("errors"), limit=2),
    _loop("loop-invalid", "invalid", "sing"),
    _loop("loop-adapter-error", "adapter_error", {"error": "down"}),
    Recording(
        name="loop-not-an-incident",
        ends="failure/invalid_input",
        workflow=EVIDENCE_LOOP,
        inputs=({"incident_id": "INC-1"},),
    ),
    Recording(
        name="unknown-workflow", ends="failure/invalid_input", workflow="NoSuchWorkflow", inputs=()
    ),
)

RECORDINGS: Final = (*COMPLETED, *REVIEW_REQUIRED, *FAILED, *UNFINISHED, *LOOPS)
