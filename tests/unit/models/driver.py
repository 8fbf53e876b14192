"""Plays a model against the built-in rules, without Temporal: reads answer, the rest ends it."""

import asyncio
from dataclasses import dataclass, field

from pydantic import JsonValue

from triage.contracts.decision import CallTool, Decision, parse_decision
from triage.contracts.payloads import DecideOutcome, PolicySnapshot
from triage.contracts.request import TriageRequest
from triage.models.base import ModelAdapter, ModelRequest, Observation, ToolDescription
from triage.policy.rules import BUILTIN_RULES
from triage.policy.tools import BUILTIN_TOOLS, check_arguments

POLICY: PolicySnapshot = BUILTIN_RULES.snapshot(BUILTIN_TOOLS)
MAX_STEPS = 3


@dataclass
class Played:
    """What came of one issue: the last decision and the calls before it."""

    decision: Decision
    calls: list[CallTool] = field(default_factory=list)
    observations: list[Observation] = field(default_factory=list)


def issue(title: str, body: str, paths: tuple[str, ...] = ()) -> TriageRequest:
    """Return a request with this text."""
    return TriageRequest(
        request_id="ISSUE-1", title=title, body=body, changed_paths=paths, source="test"
    )


def model_request(
    request: TriageRequest, observations: tuple[Observation, ...] = (), step: int = 1
) -> ModelRequest:
    """Return what `decide` would hand to an adapter under the built-in rules."""
    return ModelRequest(
        step=step,
        request=request,
        observations=observations,
        tools=tuple(
            ToolDescription(
                name=tool.name,
                purpose=tool.purpose,
                arguments={name: kind.value for name, kind in tool.arguments.items()},
                side_effect=tool.side_effect,
            )
            for tool in BUILTIN_TOOLS
        ),
        routes=BUILTIN_RULES.routes,
        labels=BUILTIN_RULES.proposable_labels(),
    )


def ask(model: ModelAdapter, request: ModelRequest) -> Decision:
    """Return the parsed decision of one call."""
    answer = asyncio.run(model.decide(request))
    assert DecideOutcome.DECISION is answer.outcome
    return parse_decision(
        answer.decision, routes=frozenset(request.routes), labels=frozenset(request.labels)
    )


def read(call: CallTool, version: int) -> Observation:
    """Answer a read call from the built-in rules; anything else is refused."""
    specs = {spec.name: spec for spec in POLICY.tools if not spec.side_effect}
    check_arguments(specs[call.tool.name], call.tool.arguments)
    return observation(call.tool.name, call.tool.arguments, version)


def observation(tool: str, arguments: dict[str, JsonValue], version: int = 3) -> Observation:
    """Return what a built-in read tool returns for these arguments."""
    (value,) = (str(item) for item in arguments.values())
    rule = (
        BUILTIN_RULES.owners.get(value, BUILTIN_RULES.default_owner)
        if tool == "lookup_component_owner"
        else BUILTIN_RULES.topics.get(value, BUILTIN_RULES.default_topic)
    )
    return Observation(
        version=version,
        tool=tool,
        arguments=arguments,
        evidence_id=rule.evidence_id,
        locator=f"rules#{rule.evidence_id}",
        content=rule.model_dump(mode="json", exclude={"evidence_id"}, exclude_none=True),
    )


def play(model: ModelAdapter, request: TriageRequest) -> Played:
    """Run the loop until the model stops asking for reads; it must within `MAX_STEPS`."""
    calls: list[CallTool] = []
    seen: list[Observation] = []
    for step in range(1, MAX_STEPS + 1):
        decision = ask(model, model_request(request, tuple(seen), step))
        if not isinstance(decision, CallTool):
            return Played(decision, calls, seen)
        calls.append(decision)
        seen.append(read(decision, version=3 * step))
    raise AssertionError("the model never came to an end")
