"""Every run that is recorded: its input, what a person does to it, and how it has to end.

Each terminal status, each failure class and each way in or out of a wait is here at least once;
`tests.replay.test_catalogue` says what is missing. A name is also the workflow id, the repository
of the run's issue and the file's name.
"""

from __future__ import annotations

from typing import Final

from pydantic import JsonValue

from tests.replay import people, signers
from tests.replay.recording import (
    APPROVE,
    CANCELED,
    OPEN,
    Recording,
    driven,
    plain,
    raw,
    unfit,
)
from tests.replay.stage import (
    BROKEN,
    FORGETFUL,
    LEAKY,
    LOST_ANSWER,
    LOST_ISSUE,
    SEVERAL,
    SIGNED,
    SLOW,
)
from tests.workflow.decisions import (
    OPERATION,
    TIMEOUT,
    a_request,
    call,
    final,
    hand_over,
    label,
    lookup,
    policy,
)
from triage.contracts.names import EVIDENCE_LOOP

CARRIED: Final = "completed-after-continuing-as-new"

ANSWER: Final = (lookup(), final("owners-api"))

COMPLETED: Final = (
    plain("completed", "completed", *ANSWER),
    Recording(name="completed-by-rules-model", ends="completed"),
    plain("completed-after-model-retry", "completed", TIMEOUT, *ANSWER),
    plain("completed-in-shadow-mode", "completed", *ANSWER, mode="shadow"),
    plain("completed-entailed", "completed", *ANSWER, grounding="entailed"),
    plain(
        "completed-with-redacted-secret",
        "completed",
        lookup(LEAKY),
        final("owners-leaky", labels=("bug",)),
    ),
    plain(
        "completed-approved-at-start",
        "completed",
        label("bug"),
        final("mutation-receipt"),
        approvals={OPERATION: 3},
    ),
    driven("completed-approved-by-signal", "completed", people.approve_by_signal, *ANSWER),
    driven(
        "completed-approved-on-a-trail", "completed", people.approve_by_signal, lookup(), *ANSWER
    ),
    driven("completed-approved-by-update", "completed", people.approve_by_update, *ANSWER),
    driven(
        "completed-with-repeated-operation",
        "completed",
        people.approve_two,
        label("bug"),
        label("bug"),
        final("mutation-receipt", labels=("bug",)),
    ),
    driven("completed-despite-junk", "completed", people.send_junk_then_approve, *ANSWER),
    Recording(
        name="completed-by-local-model",
        ends="completed",
        options=APPROVE,
        drive=people.approve_by_signal,
    ),
    Recording(
        name="completed-by-local-model-with-budget",
        ends="completed",
        options={**APPROVE, "budget": {"seconds": 3_600}},
        drive=people.approve_by_signal,
    ),
    Recording(
        name="completed-within-its-time",
        ends="completed",
        options={**APPROVE, "budget": {"seconds": 3_600}},
        drive=people.approve_by_signal,
    ),
    Recording(
        name="completed-by-local-model-after-edit",
        ends="completed",
        options=APPROVE,
        drive=people.edit_then_approve,
    ),
    driven(LOST_ANSWER, "completed", people.approve_by_signal, *ANSWER),
    driven(
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

WRITE: Final = (label("bug"), final("mutation-receipt", labels=("bug",)))

APPROVED_IN_OTHER_WAYS: Final = (
    driven(
        "completed-after-stale-approval",
        "completed",
        people.approve_too_late_then_again,
        label("bug"),
        *WRITE,
    ),
    driven(
        "completed-after-duplicate-review",
        "completed",
        people.approve_one_twice,
        label("bug"),
        label("documentation", operation_id="op-2"),
        final("mutation-receipt", labels=("bug",)),
    ),
    Recording(
        name="completed-approved-by-two",
        ends="completed",
        script=[*ANSWER],
        options=APPROVE,
        drive=people.approve_by_two,
        queue=SEVERAL,
    ),
    Recording(
        name="completed-signed-by-signal",
        ends="completed",
        script=[*WRITE],
        options=APPROVE,
        drive=signers.approve_by_signal,
        queue=SIGNED,
    ),
    Recording(
        name="completed-signed-by-update",
        ends="completed",
        script=[*WRITE],
        options=APPROVE,
        drive=signers.approve_by_update,
        queue=SIGNED,
    ),
    Recording(
        name="completed-signed-at-start",
        ends="completed",
        script=[*WRITE],
        prepare=signers.approve_beforehand,
        queue=SIGNED,
    ),
)

CARRIED_ON: Final = (
    Recording(
        name="completed-as-continuation",
        ends="completed",
        script=[label("bug"), final("owners-api", "mutation-receipt", labels=("bug",))],
        options=APPROVE,
        prepare=people.end_a_run_before,
        drive=people.approve_by_signal,
    ),
    driven(CARRIED, "completed", people.flood_then_approve, lookup(), *WRITE),
    Recording(name="continued-as-new", ends="continued_as_new", first_of=CARRIED),
)

REVIEW_REQUIRED: Final = (
    plain("review-requested", "review_required", lookup(), hand_over("owners-api")),
    plain(
        "review-by-policy",
        "review_required",
        policy("security"),
        hand_over("policy-security", route="security_review"),
    ),
    plain("review-approval-required", "review_required/approval_required", lookup(), label("bug")),
    plain(
        "review-write-without-operation-id",
        "review_required/approval_required",
        label("bug", operation_id=None),
    ),
    plain(
        "review-stale-approval-at-start",
        "review_required/approval_required",
        label("bug"),
        approvals={OPERATION: 2},
    ),
    driven(
        "review-rejected-by-signal",
        "review_required/approval_required",
        people.reject_by_signal,
        *ANSWER,
    ),
    driven(
        "review-rejected-by-update",
        "review_required/approval_required",
        people.reject_by_update,
        *ANSWER,
    ),
    driven(
        "review-approval-expired",
        "review_required/approval_required",
        people.only_look,
        *ANSWER,
        approval_window_seconds=1,
    ),
    driven(
        "review-expired-by-timer",
        "review_required/approval_required",
        people.only_look,
        *ANSWER,
        approval_window_seconds=1,
    ),
    plain("review-policy-block", "review_required/policy_block", label("bug"), mode="shadow"),
    plain(
        "review-other-issue",
        "review_required/policy_block",
        label("bug", issue="ISSUE-2"),
        approvals={OPERATION: 3},
    ),
    plain(
        "review-label-not-permitted",
        "review_required/policy_block",
        label("wontfix"),
        approvals={OPERATION: 3},
    ),
    plain("review-model-timeout", "review_required/model_timeout", TIMEOUT, TIMEOUT),
    plain(
        "review-tool-error-with-evidence", "review_required/tool_error", lookup(), lookup(BROKEN)
    ),
    plain(
        "review-tool-timeout-with-evidence", "review_required/tool_timeout", lookup(), lookup(SLOW)
    ),
    driven(
        "review-operation-id-reused",
        "review_required/state_conflict",
        people.approve_by_signal,
        label("bug"),
        label("documentation"),
    ),
    driven(
        "review-issue-changed",
        "review_required/state_conflict",
        people.change_issue_then_approve,
        *ANSWER,
    ),
    plain(
        "review-budget-exceeded",
        "review_required/budget_exceeded",
        *ANSWER,
        budget={"evidence_bytes": 1},
    ),
    plain(
        "review-not-entailed",
        "review_required/final_output_invalid",
        lookup(),
        final("owners-api", owner="docs-team"),
        grounding="entailed",
    ),
    driven(LOST_ISSUE, "review_required/tool_timeout", people.approve_by_signal, *ANSWER),
)

FAILED: Final = (
    Recording(
        name="failed-unknown-field",
        ends="failed/invalid_input",
        request=a_request(severity="high"),
    ),
    Recording(name="failed-not-an-object", ends="failed/invalid_input", request=["a", "list"]),
    plain("failed-unknown-option", "failed/invalid_input", *ANSWER, colour="red"),
    unfit("failed-no-input"),
    unfit("failed-three-inputs", a_request(), {}, {}),
    unfit("failed-binary-input", raw(b"binary/plain", b"\x00\xff")),
    unfit("failed-broken-json", raw(b"json/plain", b'{"request_id": "\\ud800", ')),
    unfit("failed-unknown-model", a_request(), {"model": "oracle"}),
    plain("failed-not-a-decision", "failed/model_invalid_output", {"kind": "sing"}),
    plain("failed-script-exhausted", "failed/model_invalid_output"),
    plain(
        "failed-review-without-ground", "failed/model_invalid_output", hand_over("made-up-evidence")
    ),
    plain("failed-unknown-tool", "failed/unknown_tool", call("run_shell", {"command": "id"})),
    plain(
        "failed-invalid-tool-arguments",
        "failed/invalid_tool_arguments",
        call("lookup_component_owner", {"path": 7}),
    ),
    plain("failed-tool-timeout", "failed/tool_timeout", lookup(SLOW)),
    plain("failed-tool-error", "failed/tool_error", lookup(BROKEN)),
    plain("failed-max-steps", "failed/max_steps_exceeded", lookup(), lookup(), max_steps=2),
    plain("failed-final-without-ground", "failed/final_output_invalid", final("owners-api")),
)

UNFINISHED: Final = (
    driven("waiting-for-approval", OPEN, people.only_look, *ANSWER),
    driven("waiting-with-refusals", OPEN, people.send_junk, *ANSWER),
    Recording(
        name="deciding",
        ends=OPEN,
        script=[lookup(), hand_over()],
        drive=people.leave_in_thought,
        thinks=True,
    ),
    driven("canceled-while-waiting", CANCELED, people.cancel, *ANSWER),
)

# Removes the stored content of every run, so it is recorded when all others have ended.
LAST: Final = (
    plain(
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

RECORDINGS: Final = (
    *COMPLETED,
    *APPROVED_IN_OTHER_WAYS,
    *CARRIED_ON,
    *REVIEW_REQUIRED,
    *FAILED,
    *UNFINISHED,
    *LOOPS,
)
