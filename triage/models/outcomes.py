"""The outcome of a call that gave no decision."""

from __future__ import annotations

from triage.contracts.failures import FailureClass
from triage.contracts.model_faults import MODEL_FAULTS, ModelFault
from triage.contracts.payloads import DecideOutcome, DecideResult


def failed(fault: ModelFault, retry_after_seconds: int | None = None) -> DecideResult:
    """Return it: a timeout where no answer came, invalid where none can be used.

    Args:
        fault: what went wrong.
        retry_after_seconds: the provider's own word, clamped; None if it gave none.
    """
    is_silent = MODEL_FAULTS[fault].failure is FailureClass.MODEL_TIMEOUT
    return DecideResult(
        outcome=DecideOutcome.TIMEOUT if is_silent else DecideOutcome.INVALID,
        fault=fault,
        retry_after_seconds=retry_after_seconds,
    )
