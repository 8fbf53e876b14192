"""Grading: what is wrong with a response, given what its case expected. Pure.

Besides the expected fields, every response is held to the contract: its exact fields and types,
the step cap, the tools and evidence that exist, and grounding.

Source: the production agent's evaluator.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from pydantic import JsonValue, ValidationError

from triage.contracts.base import explain
from triage.contracts.canonical import canonical_json
from triage.contracts.failures import FailureClass
from triage.contracts.response import TERMINAL, Status, TriageResponse
from triage.evaluation.fixture import Case
from triage.policy.rules import BUILTIN_RULES
from triage.policy.tools import BUILTIN_TOOLS

MUTATION_RECEIPT: Final = "mutation-receipt"

GRADED_FIELDS: Final = ("status", "route", "failure", "tool_sequence", "retries")
KNOWN_EVIDENCE: Final = frozenset(
    {
        *(rule.evidence_id for rule in BUILTIN_RULES.owners.values()),
        *(rule.evidence_id for rule in BUILTIN_RULES.topics.values()),
        BUILTIN_RULES.default_owner.evidence_id,
        BUILTIN_RULES.default_topic.evidence_id,
        MUTATION_RECEIPT,
    }
)
KNOWN_TOOLS: Final = frozenset(tool.name for tool in BUILTIN_TOOLS)
WRITE_TOOLS: Final = frozenset(tool.name for tool in BUILTIN_TOOLS if tool.side_effect)


def grade(case: Case, actual: Mapping[str, JsonValue]) -> list[str]:
    """Return what is wrong with a response, in sentences; an empty list if nothing is.

    Args:
        case: what was expected, and under which options.
        actual: the response as JSON gives it: lists, strings, numbers and null.
    """
    if set(actual) != set(TriageResponse.model_fields):
        return ["the response does not have exactly the twelve fields of the contract"]
    try:
        response = TriageResponse.model_validate_json(canonical_json(actual))
    except ValidationError as error:
        return [explain(error, "response", TriageResponse)]
    return [*_mismatches(case, actual), *_violations(case, response)]


def _mismatches(case: Case, actual: Mapping[str, JsonValue]) -> Iterator[str]:
    wanted = case.expected.model_dump(mode="json")
    for name in GRADED_FIELDS:
        if actual[name] != wanted[name]:
            yield f"{name}: expected {wanted[name]!r}, got {actual[name]!r}"


def _violations(case: Case, response: TriageResponse) -> Iterator[str]:
    if response.status not in TERMINAL:
        yield "the status is not a terminal one"
    if response.steps > case.options.max_steps:
        yield f"more than the permitted {case.options.max_steps} steps were taken"
    unregistered = not KNOWN_TOOLS.issuperset(response.tool_sequence)
    if unregistered and response.failure is not FailureClass.UNKNOWN_TOOL:
        yield "an unregistered tool was called and the run did not end as unknown_tool"
    if not KNOWN_EVIDENCE.issuperset(response.evidence_ids):
        yield "evidence is cited that none of the fixture's tools can return"
    if response.status is Status.COMPLETED and not response.evidence_ids:
        yield "the run completed without evidence"
