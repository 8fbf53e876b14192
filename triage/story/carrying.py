"""Learns what a run had handed on to an execution that is told without those before it.

A run whose history has grown long continues as new: the third argument of the next execution holds
all that it knew. Where the earlier execution is told as well, nothing has to be learned.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from temporalio.api.enums.v1 import ContinueAsNewInitiator
from temporalio.api.history.v1 import WorkflowExecutionStartedEventAttributes

from triage.contracts.approval import Review, parse_review
from triage.contracts.base import ContractError
from triage.story.desk import Proposal, Wait
from triage.story.memory import Memory
from triage.story.payloads import Fields, read

CARRIED: Final = 2
"""Which argument it is."""


def carries_on(started: WorkflowExecutionStartedEventAttributes) -> str:
    """Return the run id of the execution that handed this one what it knew; empty if none did.

    The server starts an execution anew for a schedule or a retry, too, which hands nothing on.
    """
    by_itself = ContinueAsNewInitiator.CONTINUE_AS_NEW_INITIATOR_WORKFLOW
    return started.continued_execution_run_id if started.initiator == by_itself else ""


def learn_carried(memory: Memory, started: WorkflowExecutionStartedEventAttributes) -> Fields:
    """Take over what an earlier execution handed on, and return it; not readable if it did not."""
    arguments = started.input.payloads
    if not carries_on(started) or len(arguments) != CARRIED + 1:
        return Fields()
    carried = Fields(read(arguments[CARRIED]))
    if carried.readable:
        _learn(memory, carried, carried.fields("state"))
    return carried


def _learn(memory: Memory, carried: Fields, state: Fields) -> None:
    memory.pin(carried.fields("context"))
    memory.version = state.number("version") or 0
    memory.retries = state.number("retries") or 0
    memory.corrections = state.number("corrections") or 0
    memory.fallbacks = state.number("fallbacks") or 0
    for item in _items(state, "evidence"):
        memory.keep(item)
    sent, applied = state.fields("sent"), state.fields("applied")
    memory.sent = {name: sent.text(name) for name in sent.names()}
    memory.applied = {label for name in applied.names() for label in applied.texts(name)}
    memory.edits = [(e.number("version") or 0, e.texts("fields")) for e in _items(state, "edits")]
    waited = carried.value("waited_seconds")
    memory.waited = timedelta(seconds=waited if isinstance(waited, int | float) else 0)
    memory.looped_since = _moment(carried.text("began"))
    for note in _reviews(_items(state, "verdicts")):
        memory.desk.verdicts[note.operation_id, note.version] = note
    memory.desk.unproven = list(_reviews(_items(carried, "unproven")))
    memory.edited = carried.value("edited") is not None
    if carried.fields("wait").readable:
        _go_on_waiting(memory, carried.fields("wait"))


def _go_on_waiting(memory: Memory, wait: Fields) -> None:
    """Take up the wait as it stood: the question, its deadline and who has approved so far."""
    view = wait.fields("view")
    target, arguments = view.fields("target"), view.fields("arguments")
    memory.proposal = Proposal(
        operation_id=view.text("operation_id"),
        version=view.number("version") or 0,
        tool=view.text("tool"),
        target={name: target.text(name) for name in target.names()},
        labels=arguments.texts("labels"),
        proposed_by=view.text("proposed_by"),
    )
    memory.desk.open(
        _moment(wait.text("began")) or memory.began,
        Wait(
            operation_id=view.text("operation_id"),
            version=view.number("version") or 0,
            digest=view.text("digest"),
            deadline=_moment(view.text("expires_at")),
            approvals_required=view.number("approvals_required") or 1,
        ),
        view.texts("approved_by"),
    )
    memory.desk.subjects = set(wait.texts("subjects"))
    for decided in _reviews([wait.fields("decided").fields("review")]):
        memory.desk.decided = decided


def _items(fields: Fields, name: str) -> list[Fields]:
    value = fields.value(name)
    return [Fields(item) for item in value] if isinstance(value, list) else []


def _reviews(items: list[Fields]) -> Iterator[Review]:
    for item in items:
        known = {name: item.value(name) for name in Review.model_fields if name in item}
        try:
            yield parse_review(known, None)
        except ContractError:
            continue


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
