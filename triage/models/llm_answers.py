"""Reading what a model answered: text that is one JSON object with one decision, or a named fault.

The decision itself is passed on as plain data: the loop reads it strictly.
"""

from __future__ import annotations

from typing import Final

from pydantic import JsonValue
from pydantic_ai.messages import ModelResponse, TextPart, ThinkingPart

from triage.contracts.base import ContractError
from triage.contracts.canonical import parse_json
from triage.contracts.decision import MAX_DECISION_BYTES
from triage.contracts.model_faults import ModelFault
from triage.contracts.payloads import DecideOutcome, DecideResult
from triage.models.llm_schema import ROOT
from triage.models.outcomes import failed

MAX_BELIEVED_TOKENS: Final = 100_000_000
"""A provider that says more in one call is not believed."""


def read_answer(response: ModelResponse) -> DecideResult:
    """Return the decision that a response holds, or what is wrong with it."""
    if (fault := _ended(response)) is not None:
        return failed(fault)
    if any(not isinstance(part, TextPart | ThinkingPart) for part in response.parts):
        return failed(ModelFault.PROTOCOL_ERROR)
    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    return _read(text)


def tokens_of(response: ModelResponse) -> tuple[int, int] | None:
    """Return the input and output tokens that a provider counts, if it can be believed."""
    counted = response.usage.input_tokens, response.usage.output_tokens
    believed = all(0 <= tokens <= MAX_BELIEVED_TOKENS for tokens in counted)
    return counted if believed and all(counted) else None


def _ended(response: ModelResponse) -> ModelFault | None:
    """Return why a response holds no whole answer; None if it does."""
    details = response.provider_details or {}
    match response.finish_reason:
        case "content_filter":
            refused = "refusal" in details or details.get("finish_reason") == "refusal"
            return ModelFault.REFUSAL if refused else ModelFault.CONTENT_FILTER
        case "length":
            return ModelFault.CUT_OFF
        case "error" | "tool_call":
            return ModelFault.PROTOCOL_ERROR
        case _:
            return ModelFault.PROTOCOL_ERROR if response.state != "complete" else None


def _read(text: str) -> DecideResult:
    data = text.encode("utf-8", "surrogatepass")
    if len(data) > MAX_DECISION_BYTES:
        return failed(ModelFault.TOO_LARGE)
    try:
        value = parse_json(data, "the answer")
    except ContractError:
        return failed(ModelFault.NOT_JSON)
    if not isinstance(value, dict) or set(value) != {ROOT}:
        return failed(ModelFault.SCHEMA_VIOLATED)
    decision: JsonValue = value[ROOT]
    return DecideResult(outcome=DecideOutcome.DECISION, decision=decision)
