"""Tells what came of verifying a signature: the run looks at the review once more then."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from pydantic import JsonValue

from triage.contracts.approval import Review
from triage.story.calls import Done
from triage.story.desk import SIGNAL, UPDATE, Desk
from triage.story.memory import Memory
from triage.story.parts import Beat, Kind, beat, time_of
from triage.story.payloads import Fields
from triage.story.reviews import ACCEPTED, counting, counts_as, refusal, why_refused
from triage.story.words import named


def tell_verification(memory: Memory, done: Done) -> Iterator[Beat]:
    """Tell one verification, whose review came by signal, by update or with the start.

    One after which the review is verified once more, as the decision, is not worth telling.
    """
    result, desk = done.result, memory.desk
    claimed = desk.claim(done.call.request.text("token"), result.text("approver"))
    if claimed is not None and _is_verified_again(desk, done):
        desk.put_back(*claimed)
        return
    code = _code(desk, claimed, result, time_of(done.event))
    whose = claimed[0].approver if claimed else result.text("approver")
    verdict, facts = _worth(memory, claimed, result, code)
    text = f"the signature of the review{' by ' + named(whose) if whose else ''} was verified"
    yield beat(
        done.event,
        Kind.VERIFIED,
        f"{text}: {verdict} ({done.effort})",
        activity=done.call.name,
        code=code,
        approver=whose or None,
        **facts,
        attempts=done.call.attempts,
        duration_ms=done.duration_ms,
    )


def _is_verified_again(desk: Desk, done: Done) -> bool:
    """Whether others approved meanwhile, so that it has to be recorded as the decision first."""
    asked = done.call.request
    return asked.value("decides") is False and asked.text("token") in desk.again


def _code(desk: Desk, claimed: tuple[Review, str] | None, result: Fields, now: datetime) -> str:
    """Return ``accepted`` or why it does not count, and take a review that counts from now on.

    Of an update its answer says whether it counted, and one from the start is waited for by nobody
    else.
    """
    code = result.text("code")
    if not result.flag("accepted") or claimed is None:
        return code
    (review, channel), subject = claimed, result.text("subject") or None
    if channel == UPDATE and review in desk.granted:
        desk.take(review, subject)
    return (desk.receive(review, now, subject) if channel == SIGNAL else None) or code


def _worth(
    memory: Memory, claimed: tuple[Review, str] | None, result: Fields, code: str
) -> tuple[str, dict[str, JsonValue]]:
    """Say whether it counts, for people and for programs."""
    accepted = result.flag("accepted") and code == ACCEPTED
    detail = f" ({memory.said(result.text('detail'))})" if result.text("detail") else ""
    if claimed is None:
        words = counts_as() if accepted else f"{refusal(code)}{detail}"
        return words, {"accepted": accepted}
    review, channel = claimed
    facts: dict[str, JsonValue] = {
        "channel": channel,
        "name": review.verdict.value,
        "operation_id": review.operation_id,
        "version": review.version,
    }
    if not accepted:
        return f"{why_refused(memory, code, review)}{detail}", {**facts, "accepted": False}
    if channel == UPDATE:
        return "it is good", facts
    return counts_as(memory.desk, review), {**facts, **counting(memory.desk, review)}
