"""Tells each message that a run was sent, and what came of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pydantic import JsonValue
from temporalio.api.common.v1 import Payloads
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.update.v1 import Input, Outcome

from triage.contracts.approval import (
    MAX_REVIEW_BYTES,
    REFUSAL_MEANING,
    RefusalCode,
    Review,
    Verdict,
    parse_review,
)
from triage.contracts.base import ContractError
from triage.contracts.names import SIGNAL_APPROVE, SIGNAL_EDIT, SIGNAL_REJECT, UPDATE_REVIEW
from triage.contracts.request import parse_request
from triage.story.desk import SIGNAL, START, UPDATE, Desk, StartingApproval
from triage.story.memory import Memory
from triage.story.parts import Beat, Kind, beat
from triage.story.payloads import Fields, failure_of, first, is_encoded
from triage.story.words import listed, named

ACCEPTED: Final = "accepted"
NO: Final = "it does not count"
TO_VERIFY: Final = "its signature has to be verified"
UNCHECKED: Final = ", signed, not checked (local trust takes any approval)"
_VERDICTS: Final = {SIGNAL_APPROVE: Verdict.APPROVE, SIGNAL_REJECT: Verdict.REJECT}
_MEANING: Final = {code.value: meaning for code, meaning in REFUSAL_MEANING.items()}


@dataclass(frozen=True, slots=True)
class Answer:
    """What an update was answered.

    Attributes:
        review: what was asked for; None if that cannot be read.
        code: ``accepted`` or a refusal's code.
        reason: the run's own sentence about a refusal.
        failure: what the update failed with, if it failed.
        is_open: whether there is no answer yet.
    """

    review: Review | None
    accepted: bool
    code: str
    reason: str = ""
    failure: tuple[str, str] | None = None
    is_open: bool = False


def tell_signal(memory: Memory, event: HistoryEvent, now: datetime | None) -> Iterator[Beat]:
    """Tell a signal that the run saw at `now`; None means that it has not seen it."""
    signal = event.workflow_execution_signaled_event_attributes
    name, shown = signal.signal_name, f"signal {named(signal.signal_name)}"
    if is_encoded(signal.input):
        text = f"{shown}: what it says is not readable here"
        yield beat(event, Kind.MESSAGE, text, channel=SIGNAL, name=name, readable=False)
    elif now is None:
        text = f"{shown}: the run has not seen it"
        yield beat(event, Kind.MESSAGE, text, channel=SIGNAL, name=name, seen=False)
    elif name == SIGNAL_EDIT:
        yield _edit(memory, event, signal.input)
    else:
        yield _review_signal(memory, event, now)


def _edit(memory: Memory, event: HistoryEvent, payloads: Payloads) -> Beat:
    try:
        fields = _only(payloads, "an edit")
        request = parse_request(fields.json())
        if request.request_id != memory.request.text("request_id"):
            raise ContractError("an edit is of another request")
    except ContractError as error:
        return _malformed(event, SIGNAL_EDIT, error)
    old = memory.request
    changed = [name for name in fields.names() if fields.value(name) != old.value(name)]
    memory.edit(fields, changed)
    text = f"signal edit: changes {listed(changed)}; the run starts over with it"
    facts: dict[str, JsonValue] = {"channel": SIGNAL, "name": SIGNAL_EDIT, "changed": [*changed]}
    return beat(event, Kind.EDIT, text, **facts, accepted=True)


def _review_signal(memory: Memory, event: HistoryEvent, now: datetime) -> Beat:
    signal = event.workflow_execution_signaled_event_attributes
    try:
        review = _read(signal.input, signal.signal_name)
    except ContractError as error:
        return _malformed(event, signal.signal_name, error)
    said = f"signal {_shown(memory, review)}"
    facts = _facts(review, SIGNAL)
    desk = memory.desk
    if not desk.is_known():
        text = f"{said}: whether it counts is not readable here"
        return beat(event, Kind.REVIEW, text, **facts)
    code = desk.judge(review, now)
    if code is not None:
        text = f"{said}: {why_refused(memory, code, review)}"
        return beat(event, Kind.REVIEW, text, **facts, **_no(code))
    if review.token is not None and not desk.local:
        desk.unproven.append(review)
        return beat(event, Kind.REVIEW, f"{said}: {TO_VERIFY}", **facts)
    desk.take(review)
    text = f"{said}: {counts_as(desk, review)}"
    return beat(event, Kind.REVIEW, text, **facts, **counting(desk, review), code=ACCEPTED)


def why_refused(memory: Memory, code: str, review: Review) -> str:
    """Say why a review does not count, and what has happened since it was written."""
    if code == RefusalCode.STALE_VERSION:
        later = [
            name for version, names in memory.edits if version >= review.version for name in names
        ]
        names = listed(dict.fromkeys(later))
        return refusal(code) + (f": the request was edited since ({names})" if later else "")
    if code != RefusalCode.DUPLICATE:
        return refusal(code)
    first = memory.desk.decided_on(review)
    if first is None:
        return f"{NO}: {named(code)}, this person has approved it already"
    return f"{refusal(code)}: {_done(first)} by {named(first.approver)}"


def _done(review: Review) -> str:
    return "approved" if review.verdict is Verdict.APPROVE else "rejected"


def counts_as(desk: Desk | None = None, review: Review | None = None) -> str:
    """Say that a review counts, and of several approvals which one it is."""
    if desk is None or review is None or not _is_one_of_several(desk, review):
        return "it counts"
    number = _number(desk, review)
    decides = ", which decides" if number >= desk.required else ""
    return f"it counts, as approval {number} of {desk.required}{decides}"


def counting(desk: Desk, review: Review) -> dict[str, JsonValue]:
    """Return the same for programs."""
    if not _is_one_of_several(desk, review):
        return {"accepted": True, "decides": True}
    number = _number(desk, review)
    return {
        "accepted": True,
        "decides": number >= desk.required,
        "approval": number,
        "approvals_required": desk.required,
    }


def _is_one_of_several(desk: Desk, review: Review) -> bool:
    approves = review.verdict is Verdict.APPROVE
    return approves and desk.required > 1 and review.approver in desk.approved_by


def _number(desk: Desk, review: Review) -> int:
    return desk.approved_by.index(review.approver) + 1


def _malformed(event: HistoryEvent, name: str, error: ContractError) -> Beat:
    code = RefusalCode.MALFORMED
    text = f"signal {named(name)}: it does not count: {code}, {error}"
    return beat(event, Kind.MESSAGE, text, channel=SIGNAL, name=name, accepted=False, code=code)


def _read(payloads: Payloads, name: str) -> Review:
    """Read a review as the run does.

    Raises:
        ContractError: it is none; the message quotes nothing of it.
    """
    if name not in _VERDICTS and name != UPDATE_REVIEW:
        raise ContractError("no run knows such a message")
    fields = _only(payloads, "a review")
    if len(payloads.payloads[0].data) > MAX_REVIEW_BYTES:
        raise ContractError(f"a review is larger than {MAX_REVIEW_BYTES} bytes")
    return parse_review(fields.json(), _VERDICTS.get(name))


def _only(payloads: Payloads, what: str) -> Fields:
    if len(payloads.payloads) != 1:
        raise ContractError(f"{what} has exactly one argument, not {len(payloads.payloads)}")
    fields = Fields(first(payloads))
    if not fields.readable:
        raise ContractError(f"{what} must be a JSON object")
    return fields


def read_answer(event: HistoryEvent, outcome: Outcome | None) -> Answer:
    """Return what an accepted update asked for and what it was answered."""
    accepted = event.workflow_execution_update_accepted_event_attributes
    request = accepted.accepted_request.input
    review = _review_in(request)
    if outcome is None:
        return Answer(review, accepted=False, code="", is_open=True)
    if outcome.HasField("failure"):
        return Answer(review, accepted=False, code="", failure=failure_of(outcome.failure))
    answer = Fields(first(outcome.success))
    return Answer(
        review, answer.flag("accepted"), answer.text("code"), reason=answer.text("reason")
    )


def _review_in(request: Input) -> Review | None:
    try:
        return _read(request.args, request.name)
    except ContractError:
        return None


def tell_update(memory: Memory, event: HistoryEvent, answer: Answer) -> Iterator[Beat]:
    """Tell an update: those that the run refused at once have left nothing to tell."""
    request = event.workflow_execution_update_accepted_event_attributes.accepted_request.input
    review = answer.review
    if review is None:
        text = f"update {named(request.name)}: what it says is not readable here"
        yield beat(event, Kind.MESSAGE, text, channel=UPDATE, name=request.name)
        return
    facts: dict[str, JsonValue] = {**_facts(review, UPDATE), "accepted": answer.accepted}
    if answer.accepted:
        facts |= counting(memory.desk, review)
    text = f"update {_shown(memory, review)}: {_answered(memory, review, answer)}"
    yield beat(event, Kind.REVIEW, text, **facts, code=answer.code or None)


def _answered(memory: Memory, review: Review, answer: Answer) -> str:
    if answer.accepted:
        return counts_as(memory.desk, review)
    if answer.failure is not None:
        return f"it failed with {memory.failed(*answer.failure)}"
    if not answer.code:
        return "no answer yet"
    reason = f": {memory.said(answer.reason)}" if answer.reason else ""
    return f"{refusal(answer.code)}{reason}"


def tell_starting_approval(memory: Memory, event: HistoryEvent) -> Iterator[Beat]:
    """Tell what an approval that the run was started with is worth to the latest proposal."""
    proposal = memory.proposal
    review = memory.starting_review(proposal) if proposal else None
    worth = memory.starting_approval(proposal) if proposal else None
    if review is None or worth is None:
        return
    by = f" by {named(review.approver)}{_signature(memory, review)}" if review.token else ""
    said = (
        f"the approval of {named(review.operation_id)} at version {review.version}"
        f" from the start{by}"
    )
    facts = _facts(review, START)
    if worth is StartingApproval.UNPROVEN:
        memory.desk.starting = review
        yield beat(event, Kind.REVIEW, f"{said}: {TO_VERIFY}", **facts)
    elif worth is StartingApproval.COUNTS:
        taken: dict[str, JsonValue] = {"accepted": True, "decides": True, "code": ACCEPTED}
        yield beat(event, Kind.REVIEW, f"{said}: it counts", **facts, **taken)
    else:
        code = RefusalCode(worth.value)
        yield beat(event, Kind.REVIEW, f"{said}: {refusal(code)}", **facts, **_no(code))


def _shown(memory: Memory, review: Review) -> str:
    note = f", note {memory.said(review.note)}" if review.note else ""
    return (
        f"{review.verdict} of {named(review.operation_id)} at version {review.version}"
        f" by {named(review.approver)}{_signature(memory, review)}{note}"
    )


def _signature(memory: Memory, review: Review) -> str:
    """Say that a review is signed, and where trust is local that nobody looked at it."""
    if not review.token:
        return ""
    return UNCHECKED if memory.desk.local else ", signed"


def _facts(review: Review, channel: str) -> dict[str, JsonValue]:
    return {
        "channel": channel,
        "name": review.verdict.value,
        "operation_id": review.operation_id,
        "version": review.version,
        "approver": review.approver,
    }


def _no(code: RefusalCode) -> dict[str, JsonValue]:
    return {"accepted": False, "code": code.value}


def refusal(code: str) -> str:
    """Say that a review does not count, and why."""
    meaning = _MEANING.get(code)
    return f"{NO}: {named(code)}" + (f", {meaning}" if meaning else "")
