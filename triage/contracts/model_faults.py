"""What can go wrong when a model is asked: one name per fault, mapped once to a failure class.

A fault is all that leaves an adapter: what a provider said may hold anything, so it is in no
failure, log or response.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from triage.contracts.failures import FailureClass

MAX_RETRY_AFTER_SECONDS: Final = 15 * 60
"""A provider may name any pause; a longer one counts as this."""


class ModelFault(StrEnum):
    """Why a model call gave no decision."""

    TIMEOUT = "timeout"
    RATE_LIMITED = "rate_limited"
    OVERLOADED = "overloaded"
    UNREACHABLE = "unreachable"
    QUOTA = "quota"
    AUTH = "auth"
    CONTEXT_TOO_LONG = "context_too_long"
    REJECTED = "rejected"
    REFUSAL = "refusal"
    CONTENT_FILTER = "content_filter"
    CUT_OFF = "cut_off"
    NOT_JSON = "not_json"
    SCHEMA_VIOLATED = "schema_violated"
    TOO_LARGE = "too_large"
    PROTOCOL_ERROR = "protocol_error"


@dataclass(frozen=True, slots=True)
class FaultInfo:
    """What a fault means.

    Attributes:
        failure: the class that a run ends with, if nothing else helps.
        meaning: what happened, for the response's reason; it quotes nobody.
        next_step: the first thing to do about it.
        passes: whether the same call may succeed later, so that the loop may ask again.
        is_answer: whether the model answered, so that one corrective turn may help.
        pause_seconds: before the first retry, where the provider names no pause; each later one is
            twice as long. A model that timed out is asked again at once: that was wait enough.
    """

    failure: FailureClass
    meaning: str
    next_step: str
    passes: bool = False
    is_answer: bool = False
    pause_seconds: int = 0


_NONE = FailureClass.MODEL_TIMEOUT
_BAD = FailureClass.MODEL_INVALID_OUTPUT

MODEL_FAULTS: Final[dict[ModelFault, FaultInfo]] = {
    ModelFault.TIMEOUT: FaultInfo(
        _NONE,
        "the model timed out",
        "check the provider's health; a slow model needs a longer TRIAGE_MODEL_TIMEOUT_SECONDS",
        passes=True,
    ),
    ModelFault.RATE_LIMITED: FaultInfo(
        _NONE,
        "the provider limits the rate",
        "wait or have the limit raised, then 'triage resume ID'",
        passes=True,
        pause_seconds=5,
    ),
    ModelFault.OVERLOADED: FaultInfo(
        _NONE,
        "the provider is overloaded",
        "check the provider's health; once it is well, 'triage resume ID'",
        passes=True,
        pause_seconds=2,
    ),
    ModelFault.UNREACHABLE: FaultInfo(
        _NONE,
        "the provider cannot be reached",
        "check the way there and TRIAGE_MODEL_BASE_URL with 'triage doctor'",
        passes=True,
        pause_seconds=2,
    ),
    ModelFault.QUOTA: FaultInfo(
        _NONE,
        "the provider's quota is used up",
        "raise the quota or pay the provider, then 'triage resume ID'",
    ),
    ModelFault.AUTH: FaultInfo(
        _NONE,
        "the provider does not accept the key",
        "correct the key in the worker's settings ('triage doctor'), then 'triage resume ID'",
    ),
    ModelFault.CONTEXT_TOO_LONG: FaultInfo(
        _BAD,
        "the question is too long for the model",
        "name a model that takes longer questions, or shorten the request",
    ),
    ModelFault.REJECTED: FaultInfo(
        _BAD,
        "the provider rejected the request",
        "check that the provider has a model of this name, and TRIAGE_MODEL_BASE_URL",
    ),
    ModelFault.REFUSAL: FaultInfo(
        _BAD, "the model refused to answer", "triage this issue by hand, or name another model"
    ),
    ModelFault.CONTENT_FILTER: FaultInfo(
        _BAD,
        "the provider's filter withheld the answer",
        "triage this issue by hand, or name a model of another provider",
    ),
    ModelFault.CUT_OFF: FaultInfo(
        _BAD,
        "the answer was cut off",
        "raise TRIAGE_MODEL_MAX_TOKENS, or the budget of tokens",
        is_answer=True,
    ),
    ModelFault.NOT_JSON: FaultInfo(
        _BAD, "the answer is not JSON", "name a model that holds to a schema", is_answer=True
    ),
    ModelFault.SCHEMA_VIOLATED: FaultInfo(
        _BAD,
        "the answer does not follow the schema",
        "name a model that holds to a schema",
        is_answer=True,
    ),
    ModelFault.TOO_LARGE: FaultInfo(
        _BAD, "the answer is too large", "name a model that answers in fewer words"
    ),
    ModelFault.PROTOCOL_ERROR: FaultInfo(
        _BAD,
        "the provider's answer breaks its protocol",
        "check that TRIAGE_MODEL_BASE_URL leads to an API of this provider's protocol",
    ),
}


def pause_before_retry(fault: ModelFault, retries: int, named: int | None) -> int:
    """Return for how many seconds a run waits before it asks again.

    Args:
        fault: what went wrong.
        retries: how often it has asked again so far.
        named: the provider's own word; None where it named no pause.
    """
    if named is not None:
        return min(max(0, named), MAX_RETRY_AFTER_SECONDS)
    return min(MODEL_FAULTS[fault].pause_seconds << retries, MAX_RETRY_AFTER_SECONDS)
