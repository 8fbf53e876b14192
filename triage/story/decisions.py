"""Tells what the model proposed at a step, and why the run followed it or did not.

The checks are those of the run, made once more with the same pure functions and the rules that
were pinned then.
"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import JsonValue

from triage.contracts.base import ContractError
from triage.contracts.decision import (
    CallTool,
    Decision,
    FinalAnswer,
    RequestReview,
    ToolCall,
    parse_decision,
)
from triage.contracts.failures import FailureClass
from triage.contracts.names import ACTIVITY_APPLY_LABELS
from triage.contracts.options import Grounding
from triage.contracts.payloads import DecideOutcome
from triage.policy.grounding import entailment_problem, is_cited
from triage.policy.named_paths import NamedPaths
from triage.policy.tools import check_arguments
from triage.story.calls import Done, Ending
from triage.story.desk import Proposal, StartingApproval
from triage.story.memory import Memory
from triage.story.parts import Beat, Kind, beat
from triage.story.payloads import Fields
from triage.story.silences import after_no_decision, after_silence, corrects, meaning_of
from triage.story.verdicts import Verdict, accepted, refused
from triage.story.words import labelled, listed, named

UNJUDGED = Verdict(accepted=None, because="the rules that were pinned are not readable here")
UNSEEN = Verdict(accepted=None, because="the run has not looked at it yet")


def tell_decision(memory: Memory, done: Done, *, seen: bool) -> Iterator[Beat]:
    """Tell one step: what was proposed and what the run made of it."""
    step = done.call.request.number("step")
    memory.version = done.call.request.number("version") or memory.version
    raw = Fields(done.result.value("decision"))
    verdict = _verdict(memory, done) if seen else UNSEEN
    text = f"step {'?' if step is None else step}: {_outcome(memory, done)} ({done.effort})"
    yield beat(
        done.event,
        Kind.MODEL,
        f"{text}; {verdict}",
        step=step,
        decision=raw.text("kind") or None,
        accepted=verdict.accepted,
        failure=verdict.failure,
        tool=raw.fields("tool").text("name") or None,
        attempts=done.call.attempts,
        duration_ms=done.duration_ms,
    )


def _outcome(memory: Memory, done: Done) -> str:
    """Say what the model did, whatever the run made of it."""
    if done.ending is not Ending.COMPLETED:
        return f"asking the model {done.ending}: {memory.failed(*done.failure)}"
    if not done.result.readable:
        return "the model answered, but its answer is not readable here"
    match done.result.text("outcome"):
        case DecideOutcome.DECISION:
            return f"the model {_proposed(memory, done.result.value('decision'))}"
        case DecideOutcome.TIMEOUT:
            meaning = meaning_of(done.result)
            if meaning:
                return f"the model gave no answer: {meaning}"
            return "the model did not answer in time"
        case DecideOutcome.EXHAUSTED:
            return f"the model was not asked: {memory.said(done.result.text('detail'))}"
        case DecideOutcome.UNAVAILABLE:
            return "the model was not asked, as content that it needs is unavailable"
        case _:
            meaning = meaning_of(done.result) or memory.said(done.result.text("detail"))
            return f"the model gave no decision: {meaning}"


def _proposed(memory: Memory, decision: JsonValue) -> str:
    """Say what a decision proposes: names only, never what arguments hold."""
    given = Fields(decision)
    cites = f"citing {listed(given.texts('evidence_ids'))}"
    match given.text("kind"):
        case "call_tool":
            return f"proposed to call {_call(given.fields('tool'))}"
        case "request_review":
            reason = memory.said(given.text("reason"))
            return f"asked for a review, route {named(given.text('route'))}, {cites}: {reason}"
        case "final":
            owner, labels = named(given.text("owner")), labelled(given.texts("labels"))
            answer = f"route {named(given.text('route'))}, labels {labels}, owner {owner}"
            return f"answered with {answer}, {cites}: {memory.said(given.text('reason'))}"
        case kind:
            return f"answered with a decision of the kind {named(kind)}" if kind else "did not"


def _call(tool: Fields) -> str:
    arguments = tool.fields("arguments")
    names = listed(arguments.names()) if arguments.names() else ""
    labels = f" with labels {labelled(arguments.texts('labels'))}" if "labels" in arguments else ""
    operation = tool.text("operation_id")
    return f"{named(tool.text('name'))}({names})" + (
        f"{labels} as operation {named(operation)}" if operation else labels
    )


def _verdict(memory: Memory, done: Done) -> Verdict:
    if done.ending is not Ending.COMPLETED:
        return Verdict(
            accepted=None, because="no outcome of the model, but a fault of the platform"
        )
    if memory.edited:
        return refused("the request was edited meanwhile, so the answer was discarded")
    if not done.result.readable or not memory.policy.readable:
        return UNJUDGED
    match done.result.text("outcome"):
        case DecideOutcome.DECISION:
            return _weigh(memory, done.result.value("decision"))
        case DecideOutcome.TIMEOUT:
            return after_silence(memory, done.result, done.call.turn_at or done.call.asked_at)
        case DecideOutcome.EXHAUSTED:
            return refused("a person has to go on", FailureClass.BUDGET_EXCEEDED)
        case DecideOutcome.UNAVAILABLE:
            return refused("a person has to go on", FailureClass.TOOL_ERROR)
        case _:
            return after_no_decision(memory, done.result)


def _weigh(memory: Memory, value: JsonValue) -> Verdict:
    routes = frozenset(memory.policy.texts("routes"))
    try:
        decision = parse_decision(value, routes=routes, labels=memory.labels)
    except ContractError as error:
        if corrects(memory):
            return refused(f"{error}; the model is asked to correct it")
        return refused(str(error), FailureClass.MODEL_INVALID_OUTPUT)
    return _followed(memory, decision)


def _followed(memory: Memory, decision: Decision) -> Verdict:
    match decision:
        case RequestReview():
            if not is_cited(decision.evidence_ids, memory.known_evidence()):
                reason = "it cites evidence that no tool returned"
                return refused(reason, FailureClass.MODEL_INVALID_OUTPUT)
            return accepted("it cites nothing but returned evidence")
        case FinalAnswer():
            return _final(memory, decision)
        case CallTool():
            return _tool(memory, decision.tool)


def _final(memory: Memory, answer: FinalAnswer) -> Verdict:
    if not answer.evidence_ids or not is_cited(answer.evidence_ids, memory.known_evidence()):
        reason = "it does not rest on returned evidence"
        return refused(reason, FailureClass.FINAL_OUTPUT_INVALID)
    problem = _entailment(memory, answer)
    if problem is not None:
        return refused(problem, FailureClass.FINAL_OUTPUT_INVALID)
    grounds = "it rests on returned evidence"
    if not memory.must_propose(answer.labels):
        return accepted(grounds)
    operation = f"op-{memory.version + 1}"
    proposal = memory.propose(ACTIVITY_APPLY_LABELS, operation, answer.labels, "orchestrator")
    return _proposed_write(
        memory, proposal, f"{grounds}, and its labels are proposed as operation {operation}"
    )


def _entailment(memory: Memory, answer: FinalAnswer) -> str | None:
    grounding = memory.options.text("grounding") or memory.policy.text("grounding")
    if grounding != Grounding.ENTAILED:
        return None
    issue = memory.request
    named = NamedPaths.of(issue.text("title"), issue.text("body"), issue.texts("changed_paths"))
    routes = frozenset(memory.policy.texts("routes"))
    return entailment_problem(answer, memory.evidence, routes, named)


def _tool(memory: Memory, call: ToolCall) -> Verdict:
    tool = memory.tools.get(call.name)
    if tool is None:
        return refused("no such tool is registered", FailureClass.UNKNOWN_TOOL)
    try:
        check_arguments(tool, call.arguments)
    except ContractError as error:
        return refused(str(error), FailureClass.INVALID_TOOL_ARGUMENTS)
    if not tool.side_effect:
        memory.asked = call.arguments
        return accepted("the tool is registered and its arguments fit")
    return _write(memory, call)


def _write(memory: Memory, call: ToolCall) -> Verdict:
    if call.name not in memory.permitted_effects:
        return refused("this run may not have side effects", FailureClass.POLICY_BLOCK)
    labels = Fields(call.arguments).texts("labels")
    proposal = memory.propose(call.name, call.operation_id or "", labels, "model")
    because = "the run may write, if a person approves"
    issue = call.arguments.get("issue_id")
    return _proposed_write(memory, proposal, because, foreign=issue != memory.target["issue"])


def _proposed_write(
    memory: Memory, proposal: Proposal, because: str, *, foreign: bool = False
) -> Verdict:
    """Say whether a proposed write can be approved at all."""
    worth = memory.starting_approval(proposal)
    if worth is StartingApproval.UNPROVEN and not memory.window:
        return Verdict(accepted=None, because="the signature of its approval has to be verified")
    approved = worth is StartingApproval.COUNTS
    if not proposal.operation_id or not (approved or memory.window):
        reason = "the write needs an approval of this operation and version, and waits for none"
        return refused(reason, FailureClass.APPROVAL_REQUIRED)
    if foreign:
        reason = "a write may only touch the request's own issue"
        return refused(reason, FailureClass.POLICY_BLOCK)
    if not memory.labels.issuperset(proposal.labels):
        reason = "the write names a label that the rules do not permit"
        return refused(reason, FailureClass.POLICY_BLOCK)
    if memory.sent.get(proposal.operation_id, proposal.digest) != proposal.digest:
        reason = "the operation id was used before, for other labels"
        return refused(reason, FailureClass.STATE_CONFLICT)
    return accepted(because)
