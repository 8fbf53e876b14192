"""Checks stories of what goes wrong, and of what strangers send."""

import base64
import json
from typing import Any, Final

import pytest

from tests.replay.histories import payloads
from tests.unit.story.histories import (
    Events,
    changed,
    events_of,
    of_kind,
    parsed,
    payload,
    text_of,
    told,
)
from triage.story.parts import Kind
from triage.story.telling import tell
from triage.story.words import quoted


@pytest.mark.parametrize(
    ("event_type", "attributes", "status", "said"),
    [
        ("TERMINATED", {"reason": "by\nhand"}, "terminated", '"by\\nhand"'),
        ("TIMED_OUT", {}, "timed_out", "the execution timed out"),
        ("CONTINUED_AS_NEW", {"newExecutionRunId": "run-2"}, "continued_as_new", "run run-2"),
        ("FAILED", {"failure": {"message": "lost"}}, "failed", 'without a response: "lost"'),
    ],
)
def test_executions_that_end_otherwise_say_so(
    event_type: str, attributes: dict[str, Any], status: str, said: str
) -> None:
    """What ends an execution without a response is told, and that nobody was left waiting."""
    camel = "".join(part.capitalize() for part in event_type.lower().split("_"))
    events = events_of("waiting-for-approval")
    events.append(
        {
            "eventId": str(len(events) + 1),
            "eventTime": events[-1]["eventTime"],
            "eventType": f"EVENT_TYPE_WORKFLOW_EXECUTION_{event_type}",
            f"workflowExecution{camel}EventAttributes": attributes,
        }
    )
    story = tell(parsed(events))
    assert (status, Kind.ENDED) == (story.status, story.beats[-1].kind)
    assert said in story.beats[-1].text
    assert 1 == len(of_kind(story, Kind.WAITED))


def test_workers_that_were_lost_are_told() -> None:
    """A workflow task that failed or was given to another worker is part of the story."""
    events = events_of("waiting-for-approval")
    extra: list[tuple[str, str, dict[str, Any]]] = [
        ("FAILED", "Failed", {"failure": {"message": "boom"}}),
        ("TIMED_OUT", "TimedOut", {"timeoutType": "TIMEOUT_TYPE_START_TO_CLOSE"}),
    ]
    for kind, camel, attributes in extra:
        events.append(
            {
                "eventId": str(len(events) + 1),
                "eventTime": events[-1]["eventTime"],
                "eventType": f"EVENT_TYPE_WORKFLOW_TASK_{kind}",
                f"workflowTask{camel}EventAttributes": attributes,
            }
        )
    failed, late = of_kind(tell(parsed(events)), Kind.WORKER)
    assert 'a worker could not carry the run on: "boom"' == failed.text
    assert "did not answer in time" in late.text


def test_a_signal_that_came_too_late_was_never_seen() -> None:
    """A message after the last workflow task is told as one that the run has not seen."""
    events = events_of("waiting-for-approval")
    signal = {"signalName": "approve", "input": {"payloads": [payload({"operation_id": "op-6"})]}}
    events.append(
        {
            "eventId": str(len(events) + 1),
            "eventTime": events[-1]["eventTime"],
            "eventType": "EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED",
            "workflowExecutionSignaledEventAttributes": signal,
        }
    )
    [message] = of_kind(tell(parsed(events)), Kind.MESSAGE)
    assert "signal approve: the run has not seen it" == message.text


HOSTILE: Final = 'ann", it counts\n\x1b[2J\u202e'


def test_names_of_strangers_cannot_pass_for_the_story() -> None:
    """An approver, a signal or a tool with quotes and line breaks stays one quoted word."""

    def attack(payload: dict[str, Any]) -> dict[str, Any]:
        data = base64.b64decode(payload["data"]) if "data" in payload else b""
        for name in ("maintainer", "lookup_component_owner", "backend-team"):
            data = data.replace(json.dumps(name).encode(), json.dumps(HOSTILE).encode())
        return {**payload, "data": base64.b64encode(data).decode()}

    story = tell(parsed(changed(events_of("completed-approved-by-signal"), attack)))
    text = text_of(story)
    assert quoted(HOSTILE) in text
    assert "\x1b" not in text
    assert len(story.beats) == len(text.splitlines())


def test_words_that_repeat_the_issue_are_withheld() -> None:
    """A reason that quotes the request's body is not passed on, however it got there."""
    body = "Since yesterday every call fails."

    def quote(payload: dict[str, Any]) -> dict[str, Any]:
        data = base64.b64decode(payload["data"]) if "data" in payload else b""
        data = data.replace(b"the API's owner takes its bugs", b"it says: " + body.encode())
        return {**payload, "data": base64.b64encode(data).decode()}

    text = text_of(tell(parsed(changed(events_of("completed"), quote))))
    assert body not in text
    assert "(withheld: it repeats the issue's text)" in text


def test_a_signature_is_told_when_it_was_verified() -> None:
    """A signed review counts once its signature was verified, and the token is not told."""
    events = events_of("completed-approved-by-signal")
    [signal] = [e for e in events if "workflowExecutionSignaledEventAttributes" in e]
    attributes = signal["workflowExecutionSignaledEventAttributes"]
    [review] = [json.loads(data) for data in payloads(attributes)]
    attributes["input"]["payloads"] = [payload({**review, "token": "eyJ.secret.token"})]
    events = changed(events, _without_local_trust)
    story = tell(parsed(_verified(events, accepted=True, code="accepted")))
    refused = tell(parsed(_verified(events, accepted=False, code="unauthorised")))
    [came], [verified] = of_kind(story, Kind.REVIEW), of_kind(story, Kind.VERIFIED)
    assert "signed: its signature has to be verified" in came.text
    assert "by maintainer was verified: it counts" in verified.text
    assert "approved by maintainer" in of_kind(story, Kind.WAITED)[0].text
    assert "it does not count: unauthorised" in of_kind(refused, Kind.VERIFIED)[0].text
    assert "eyJ" not in text_of(story) + text_of(refused)


def test_a_signature_that_local_trust_did_not_check_is_told_as_such() -> None:
    """Under local trust a signed review counts, and it is said that nobody looked at its token."""
    events = events_of("completed-approved-by-signal")
    [signal] = [e for e in events if "workflowExecutionSignaledEventAttributes" in e]
    attributes = signal["workflowExecutionSignaledEventAttributes"]
    [review] = [json.loads(data) for data in payloads(attributes)]
    attributes["input"]["payloads"] = [payload({**review, "token": "eyJ.secret.token"})]
    [came] = of_kind(tell(parsed(events)), Kind.REVIEW)
    said = "by maintainer, signed, not checked (local trust takes any approval): it counts"
    assert came.text.endswith(said)


def _without_local_trust(payload: dict[str, Any]) -> dict[str, Any]:
    data = base64.b64decode(payload["data"]) if "data" in payload else b""
    changed = data.replace(b'"local_trust":true', b'"local_trust":false')
    return {**payload, "data": base64.b64encode(changed).decode()}


def _verified(events: Events, *, accepted: bool, code: str) -> Events:
    """Put the verification of a signature where the workflow's next commands are."""
    dropped = next(i for i, event in enumerate(events) if event["eventType"].endswith("R_CANCELED"))
    result = {"accepted": accepted, "code": code, "approver": "maintainer" if accepted else None}
    data = {"activity_type": "verify_approval", "attempt": 1}
    marker = {
        "markerName": "core_local_activity",
        "details": {
            "data": {"payloads": [payload(data)]},
            "result": {"payloads": [payload(result)]},
        },
    }
    recorded = {
        **{name: events[dropped][name] for name in ("eventId", "eventTime")},
        "eventType": "EVENT_TYPE_MARKER_RECORDED",
        "markerRecordedEventAttributes": marker,
    }
    return [*events[:dropped], recorded, *events[dropped:]]


def test_reminders_are_told_by_their_name() -> None:
    """A timer that ends where the rules have a reminder or an escalation is told as that."""

    def remind(given: dict[str, Any]) -> dict[str, Any]:
        data = base64.b64decode(given["data"]) if "data" in given else b""
        if b'"policy":{' not in data:
            return given
        pinned = json.loads(data)
        pinned["policy"] |= {"reminder_seconds": 60, "escalation_seconds": 120}
        return payload(pinned)

    events = changed(events_of("waiting-for-approval"), remind)
    for number, seconds in enumerate((60, 120)):
        events.append(
            {
                "eventId": str(len(events) + 1),
                "eventTime": events[-1]["eventTime"],
                "eventType": "EVENT_TYPE_TIMER_STARTED",
                "timerStartedEventAttributes": {
                    "timerId": str(number + 2),
                    "startToFireTimeout": f"{seconds}s",
                },
            }
        )
    timers = of_kind(tell(parsed(events)), Kind.TIMER)
    assert ["a timer of 1 min is set: reminder", "a timer of 2 min is set: escalation"] == [
        beat.text for beat in timers[-2:]
    ]


@pytest.mark.parametrize("way", ["signal", "update"])
def test_of_two_reviews_in_one_task_the_first_counts(way: str) -> None:
    """Two approvals that reach the run at once: one is told as counting, the other as late."""
    events = events_of(f"completed-approved-by-{way}")
    [digest] = {
        b.facts["digest"] for b in of_kind(told(f"completed-approved-by-{way}"), Kind.WAITING)
    }
    late = {"operation_id": "op-6", "version": 6, "approver": "late", "digest": digest}
    asked = next(i for i, event in enumerate(events) if event["eventType"].endswith("R_STARTED"))
    task = next(
        i for i, e in enumerate(events) if i > asked and e["eventType"].endswith("SCHEDULED")
    )
    signal = {"signalName": "approve", "input": {"payloads": [payload(late)]}}
    second = {
        **{name: events[task - 1][name] for name in ("eventId", "eventTime")},
        "eventType": "EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED",
        "workflowExecutionSignaledEventAttributes": signal,
    }
    story = tell(parsed([*events[:task], second, *events[task:]]))
    codes = {beat.facts["approver"]: beat.facts["code"] for beat in of_kind(story, Kind.REVIEW)}
    assert {"maintainer": "accepted", "late": "duplicate"} == codes
    assert "approved by maintainer" in of_kind(story, Kind.WAITED)[0].text
