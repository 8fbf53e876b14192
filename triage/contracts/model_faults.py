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
        passes: whether the same call may succeed later, so that the loop may ask again.
        is_answer: whether the model answered, so that one corrective turn may help.
        pause_seconds: before the first retry, where the provider names no pause; each later one is
            twice as long. A model that timed out is asked again at once: that was wait enough.
    """

    failure: FailureClass
    meaning: str
    passes: bool = False
    is_answer: bool = False
    pause_seconds: int = 0


_NONE = FailureClass.MODEL_TIMEOUT
_BAD = FailureClass.MODEL_INVALID_OUTPUT

MODEL_FAULTS: Final[dict[ModelFault, FaultInfo]] = {
    ModelFault.TIMEOUT: FaultInfo(_NONE, "the model timed out", passes=True),
    ModelFault.RATE_LIMITED: FaultInfo(
        _NONE, "the provider limits the rate", passes=True, pause_seconds=5
    ),
    ModelFault.OVERLOADED: FaultInfo(
        _NONE, "the provider is overloaded", passes=True, pause_seconds=2
    ),
    ModelFault.UNREACHABLE: FaultInfo(
        _NONE, "the provider cannot be reached", passes=True, pause_seconds=2
    ),
    ModelFault.QUOTA: FaultInfo(_NONE, "the provider's quota is used up"),
    ModelFault.AUTH: FaultInfo(_NONE, "the provider does not accept the key"),
    ModelFault.CONTEXT_TOO_LONG: FaultInfo(_BAD, "the question is too long for the model"),
    ModelFault.REJECTED: FaultInfo(_BAD, "the provider rejected the request"),
    ModelFault.REFUSAL: FaultInfo(_BAD, "the model refused to answer"),
    ModelFault.CONTENT_FILTER: FaultInfo(_BAD, "the provider's filter withheld the answer"),
    ModelFault.CUT_OFF: FaultInfo(_BAD, "the answer was cut off", is_answer=True),
    ModelFault.NOT_JSON: FaultInfo(_BAD, "the answer is not JSON", is_answer=True),
    ModelFault.SCHEMA_VIOLATED: FaultInfo(
        _BAD, "the answer does not follow the schema", is_answer=True
    ),
    ModelFault.TOO_LARGE: FaultInfo(_BAD, "the answer is too large"),
    ModelFault.PROTOCOL_ERROR: FaultInfo(_BAD, "the provider's answer breaks its protocol"),
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
