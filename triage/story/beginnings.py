"""Tells what a run was started with: never the issue's text, nor a signature."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from pydantic import JsonValue
from temporalio.api.history.v1 import HistoryEvent, WorkflowExecutionStartedEventAttributes

from triage.contracts.base import Contract
from triage.contracts.options import ContinuedFrom, IssueContext, RunOptions
from triage.contracts.request import claimed_request_id
from triage.story.carrying import learn_carried
from triage.story.memory import Memory
from triage.story.parts import Beat, Kind, beat
from triage.story.payloads import Fields, is_encoded, read
from triage.story.waits import tell_wait
from triage.story.words import counted, listed, named, short_digest

MAX_OPTION_CHARS: Final = 100


def tell_start(memory: Memory, event: HistoryEvent, missing: str = "") -> Iterator[Beat]:
    """Tell what a run was started with: its request id and options, never the issue's text.

    Args:
        memory: what is learned by it.
        event: the start of an execution.
        missing: why the execution that it carries on from is not told, if one should be.
    """
    started = event.workflow_execution_started_event_attributes
    values = [read(payload) for payload in started.input.payloads]
    request, options = (Fields(value) for value in (*values, None, None)[:2])
    memory.learn_request(request)
    memory.options = options
    memory.desk.author = options.fields("context").text("author")
    carried = learn_carried(memory, started)
    what = f"{named(memory.workflow_type)} on the queue {named(started.task_queue.name)}"
    parts = [what, _subject(request, encoded=is_encoded(started.input))]
    parts += [*_origin(memory, started, carried, missing), *_predecessor(options)]
    if len(values) > 1:
        parts.append(f"options {_options(options)}" if options.readable else "unreadable options")
    facts = {**_subject_facts(request), **_link_facts(started, options)}
    yield beat(event, Kind.STARTED, ", ".join(parts), **facts)
    if memory.desk.waiting:
        yield tell_wait(memory, event)


def _predecessor(options: Fields) -> Iterator[str]:
    """Name the run that this one continues; no history says whether that one had ended."""
    link = options.fields("continued_from")
    if link.readable:
        run = f"{named(link.text('workflow_id'))} (run {named(link.text('run_id'))})"
        yield f"continuing the run {run} from version {link.number('version')}"


def _link_facts(
    started: WorkflowExecutionStartedEventAttributes, options: Fields
) -> dict[str, JsonValue]:
    link = options.fields("continued_from")
    return {
        "carries_on": started.continued_execution_run_id or None,
        "continued_from": {name: link.value(name) for name in ContinuedFrom.model_fields}
        if link.readable
        else None,
    }


def _subject(request: Fields, *, encoded: bool) -> str:
    if encoded or not request.readable:
        return "with an input that is not readable here" if encoded else "with no readable request"
    if "incident_id" in request:
        references = listed(request.fields("evidence").names())
        return f"incident {named(request.text('incident_id'))}, references {references}"
    return f"request {named(claimed_request_id(request.json()))}"


def _subject_facts(request: Fields) -> dict[str, JsonValue]:
    known = ("request_id", "incident_id")
    return {name: request.text(name) for name in known if request.text(name)}


def _origin(
    memory: Memory,
    started: WorkflowExecutionStartedEventAttributes,
    carried: Fields,
    missing: str,
) -> Iterator[str]:
    """Name the execution that this one follows, and what it is known to have handed on."""
    if not started.continued_execution_run_id:
        return
    why = f" ({missing})" if missing else ""
    yield f"carrying on from the run {named(started.continued_execution_run_id)}{why}"
    if carried.readable:
        state = carried.fields("state")
        steps = counted(state.number("steps") or 0, "step")
        yield f"at version {state.number('version')} after {steps}"
        if memory.evidence:
            yield f"with the evidence {listed(item.id for item in memory.evidence)}"


def _options(options: Fields) -> str:
    """Show options that there are; of others the name alone, as anything may be in them."""
    shown = [*_pairs(options, RunOptions), *_pairs(options.fields("context"), IssueContext)]
    approvals = options.fields("approvals")
    if approvals.names():
        shown.append(f"approvals={', '.join(_approvals(approvals))}")
    return " ".join(shown) or "none"


def _approvals(approvals: Fields) -> Iterator[str]:
    """Show what was approved beforehand; a signature is only said to be there."""
    for name in approvals.names():
        signed = approvals.fields(name)
        if signed.readable:
            by = named(f"{name}@{signed.number('version')}"), named(signed.text("approver"))
            yield f"{by[0]} by {by[1]}{', signed' if signed.text('token') else ''}"
        else:
            yield named(f"{name}@{approvals.number(name)}")


def _pairs(values: Fields, contract: type[Contract]) -> Iterator[str]:
    for name in values.names():
        if name not in contract.model_fields:
            yield f"{named(name)} (unknown)"
        elif name not in {"context", "approvals", "continued_from"}:
            yield f"{name}={_short(values.value(name))}"


def _short(value: JsonValue) -> str:
    if isinstance(value, str):
        return named(value)
    text = short_digest(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    return text if len(text) <= MAX_OPTION_CHARS else f"{text[: MAX_OPTION_CHARS - 1]}…"
