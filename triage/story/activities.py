"""Tells what activities did: what was pinned, what tools returned, what was shown and written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from pydantic import JsonValue

from triage.contracts import names
from triage.contracts.options import Grounding
from triage.contracts.payloads import WriteOutcome
from triage.story.calls import Done, Ending
from triage.story.desk import START
from triage.story.memory import Memory
from triage.story.parts import Beat, Kind, beat
from triage.story.payloads import Fields
from triage.story.verifying import tell_verification
from triage.story.words import counted, labelled, listed, named, short_digest

NOT_READABLE: Final = "its answer is not readable here"


def tell_activity(memory: Memory, done: Done) -> Iterator[Beat]:
    """Tell one activity, but for the one that asks the model."""
    teller = _TELLERS.get(done.call.name)
    if teller is None:
        teller = _tell_write if "operation" in done.call.request else _tell_tool
    if done.ending is Ending.COMPLETED and done.result.readable:
        yield from teller(memory, done)
    elif done.ending is Ending.COMPLETED:
        yield _beat(done, Kind.TOOL, f"{named(done.call.name)} answered, but {NOT_READABLE}")
    else:
        yield _unanswered(memory, done)


def _unanswered(memory: Memory, done: Done) -> Beat:
    is_write = _note_sent(memory, done)
    doubt = "; whether it was written is not known" if is_write else ""
    why = "" if done.ending is Ending.CANCELED else f": {memory.failed(*done.failure)}"
    text = f"{named(done.call.name)} {done.ending}{doubt}{why}"
    kind = Kind.WRITE if is_write else Kind.TOOL
    return _beat(done, kind, text, error=done.failure[0] or None)


def _tell_tool(memory: Memory, done: Done) -> Iterator[Beat]:
    """Tell a tool that returned evidence, which may be cited from now on."""
    evidence = memory.keep(done.result, memory.asked)
    text = f"{named(done.call.name)} returned {_evidence(done.result)}"
    yield _beat(done, Kind.TOOL, text, evidence_id=evidence.id if evidence else None)


def _tell_pin(memory: Memory, done: Done) -> Iterator[Beat]:
    refused = done.result.text("refused")
    if refused:
        yield _beat(done, Kind.PINNED, f"nothing was pinned: {memory.said(refused)}")
        return
    again = " again, for the edited request" if memory.edited else ""
    memory.edited = False
    memory.pin(done.result)
    pinned = done.result.fields("provenance")
    parts = [f"{name} {named(pinned.text(name))}" for name in pinned.names() if pinned.text(name)]
    inherited = list(_inherited(memory, done.result))
    over = f"; takes over {', '.join(map(_evidence, inherited))}" if inherited else ""
    text = f"pinned{again}: {', '.join(parts) or 'nothing'}; {_limits(memory)}{over}"
    ids: list[JsonValue] = [item.text("id") for item in inherited]
    yield _beat(done, Kind.PINNED, text, **pinned.json(), inherited=ids or None)


def _inherited(memory: Memory, context: Fields) -> Iterator[Fields]:
    """Keep the evidence of the run that this one continues."""
    listed_items = context.value("inherited")
    for item in listed_items if isinstance(listed_items, list) else ():
        fields = Fields(item)
        if memory.keep(fields) is not None:
            yield fields


def _limits(memory: Memory) -> str:
    """Say what the run is held to, by its options or by the rules."""
    steps, retries = memory.limit("max_steps"), memory.limit("max_model_retries")
    grounding = memory.options.text("grounding") or memory.policy.text("grounding")
    mode = memory.options.text("mode") or memory.policy.text("mode")
    unsigned = "count" if memory.desk.local else "do not count"
    required, approvers = memory.approvals_required, memory.desk.approvers
    several = f", {required} people have to approve a write" if required > 1 else ""
    only = f", only {listed(approvers)} may decide" if approvers else ""
    return (
        f"mode {named(mode)}, at most {counted(steps or 0, 'step')}"
        f" and {counted(retries or 0, 'model retry')},"
        f" grounding {named(grounding or Grounding.CITED)}, unsigned approvals {unsigned}"
        f"{several}{only}"
    )


def _tell_preview(memory: Memory, done: Done) -> Iterator[Beat]:
    """Tell what a person is shown, or why it is shown to nobody."""
    proposal, shown = memory.proposal, done.result
    if proposal is None:
        yield _beat(done, Kind.PROPOSED, "a write was looked at before it was shown")
        return
    what = f"{named(proposal.operation_id)} at version {proposal.version}"
    text = (
        f"the {proposal.proposed_by} proposes {what}: {named(proposal.tool)} on"
        f" {place(proposal.target)}, labels {labelled(proposal.labels)}; {_shown(memory, shown)}"
    )
    yield _beat(
        done,
        Kind.PROPOSED,
        text,
        operation_id=proposal.operation_id,
        version=proposal.version,
        labels=[*proposal.labels],
    )


def _shown(memory: Memory, shown: Fields) -> str:
    if shown.flag("gone"):
        return "the tracker has no such issue any more"
    if shown.texts("missing"):
        return f"the tracker lacks {labelled(shown.texts('missing'))}"
    if shown.texts("removed"):
        return f"a person took {labelled(shown.texts('removed'))} off the issue"
    if shown.flag("too_many"):
        return "the issue would have more labels than it may"
    if shown.text("content_digest") != memory.context.text("content_digest"):
        return "the issue changed after it was read"
    before, after = shown.texts("labels_before"), shown.texts("labels_after")
    return f"the issue would go from {labelled(before)} to {labelled(after)}"


def _tell_write(memory: Memory, done: Done) -> Iterator[Beat]:
    """Tell a write, on whose approval it rests and its receipt."""
    request = done.call.request
    operation, receipt = request.fields("operation"), done.result.fields("evidence")
    outcome = done.result.text("outcome")
    if receipt.readable:
        memory.keep(receipt)
    _note_sent(memory, done)
    if outcome == WriteOutcome.APPLIED:
        memory.applied.update(operation.texts("labels"))
    text = f"{sent(memory, request)}: {_outcome(memory, done.result)}"
    yield _beat(
        done,
        Kind.WRITE,
        text,
        operation_id=operation.text("operation_id"),
        version=operation.number("version"),
        outcome=outcome,
        evidence_id=receipt.text("id") or None,
        receipt=receipt.text("locator") or None,
    )


def _note_sent(memory: Memory, done: Done) -> bool:
    """Keep what a write sent, whatever came of it; return whether it was a write."""
    operation = done.call.request.fields("operation")
    if operation.readable:
        memory.sent[operation.text("operation_id")] = operation.text("digest")
    return operation.readable


def sent(memory: Memory, request: Fields) -> str:
    """Say what a write sends, where to and on whose approval: of several people, on all of them."""
    operation, approval = request.fields("operation"), request.fields("approval")
    target = {name: operation.fields("target").text(name) for name in _TARGET}
    operation_id, version = operation.text("operation_id"), operation.number("version")
    people = memory.desk.who_approved(operation_id, version) or [approval.text("approver")]
    source = named(approval.text("source"))
    is_plain = (approval.text("source"), approval.text("approver")) == (START, START)
    by = "the run's start" if is_plain else f"{listed(people)} ({source})"
    return (
        f"{named(operation.text('tool'))} {named(operation_id)} at version"
        f" {version} on {place(target)},"
        f" labels {labelled(operation.texts('labels'))}, approved by {by}"
    )


def _outcome(memory: Memory, result: Fields) -> str:
    outcome, detail = named(result.text("outcome")), result.text("detail")
    replayed = ", as the stored receipt of an earlier write" if result.flag("replayed") else ""
    receipt = result.fields("evidence")
    shown = f", receipt {_evidence(receipt)}" if receipt.readable else ""
    return f"{outcome}{replayed}{shown}" + (f": {memory.said(detail)}" if detail else "")


def _tell_incident(_memory: Memory, done: Done) -> Iterator[Beat]:
    adapter = done.result.text("adapter")
    references = named(done.result.text("references_digest"))
    text = f"pinned: adapter {named(adapter)}, references {references}"
    yield _beat(done, Kind.PINNED, text, adapter=adapter)


def _tell_choice(_memory: Memory, done: Done) -> Iterator[Beat]:
    step = done.call.request.number("step")
    chosen = Fields(done.result.value("decision"))
    action, argument = chosen.text("action"), chosen.text("argument")
    what = f"proposed to {named(action)} {named(argument) if argument else ''}".rstrip()
    if done.result.flag("failed"):
        what = "failed"
    elif not action:
        what = "answered with no decision"
    yield _beat(done, Kind.MODEL, f"step {step}: the adapter {what}", step=step)


def _tell_reading(_memory: Memory, done: Done) -> Iterator[Beat]:
    reference, locator = done.call.request.text("ref"), done.result.text("locator")
    text = f"{named(reference)} was read; it is at {named(locator)}"
    yield _beat(done, Kind.TOOL, text, step=done.call.request.number("step"))


def place(target: dict[str, str]) -> str:
    """Name an issue: tracker, repository and number."""
    return named(f"{target['tracker']}:{target['repository']}#{target['issue']}")


def _evidence(value: Fields) -> str:
    identity, locator = value.text("id"), value.text("locator")
    if not identity:
        return listed(value.names()) if value.readable else NOT_READABLE
    where = f" at {named(locator)}" if locator else ""
    return f"{named(identity)}{where} ({named(short_digest(value.text('digest')))})"


def _beat(done: Done, kind: Kind, text: str, **facts: JsonValue) -> Beat:
    whole = f"{text} ({done.effort})"
    attempts, took = done.call.attempts, done.duration_ms
    more: dict[str, JsonValue] = {"activity": done.call.name, **facts}
    return beat(done.event, kind, whole, **more, attempts=attempts, duration_ms=took)


_TARGET: Final = ("tracker", "repository", "issue")
_TELLERS: Final[dict[str, Callable[[Memory, Done], Iterator[Beat]]]] = {
    names.ACTIVITY_PIN_RUN_CONTEXT: _tell_pin,
    names.ACTIVITY_PREVIEW_OPERATION: _tell_preview,
    names.ACTIVITY_APPLY_LABELS: _tell_write,
    names.ACTIVITY_VERIFY_APPROVAL: tell_verification,
    names.ACTIVITY_OPEN_INCIDENT: _tell_incident,
    names.ACTIVITY_CHOOSE_ACTION: _tell_choice,
    names.ACTIVITY_READ_REFERENCE: _tell_reading,
}
