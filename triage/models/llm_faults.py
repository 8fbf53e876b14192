"""What a provider did, as the one name that we have for it.

Why it exists: a provider has a hundred ways to give no answer, and what it says about them may hold
anything: our question, a key, a stranger's text. So its error becomes a name of ours and a pause,
here and once, and nothing else of it is kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from pydantic_ai import exceptions as library

from triage.contracts.model_faults import MAX_RETRY_AFTER_SECONDS, ModelFault

FAULTS: Final[Sequence[tuple[type[BaseException], ModelFault]]] = (
    (library.ModelRequestTimeout, ModelFault.TIMEOUT),
    (library.ModelTimeoutError, ModelFault.TIMEOUT),
    (TimeoutError, ModelFault.TIMEOUT),
    (library.ModelConnectionError, ModelFault.UNREACHABLE),
    (library.ModelQuotaExceededError, ModelFault.QUOTA),
    (library.ModelRateLimitError, ModelFault.RATE_LIMITED),
    (library.ModelUnavailableError, ModelFault.OVERLOADED),
    (library.ModelServerError, ModelFault.OVERLOADED),
    (library.ModelContextWindowExceededError, ModelFault.CONTEXT_TOO_LONG),
    (library.ModelAuthenticationError, ModelFault.AUTH),
    (library.ContentFilterError, ModelFault.CONTENT_FILTER),
    (library.ModelRequestRejectedError, ModelFault.REJECTED),
)
"""The first kind that an error is of counts; whatever is of none breaks the protocol."""

STATUSES: Final[dict[int, ModelFault]] = {
    408: ModelFault.TIMEOUT,
    409: ModelFault.OVERLOADED,
    413: ModelFault.CONTEXT_TOO_LONG,
}
"""Statuses that the library has no kind of error for."""

FILTER_CODES: Final = frozenset({"content_filter", "content_policy_violation", "policy_violation"})
"""Codes of a rejected request that a provider's filter rejected."""

_FILTERED: Final = "content filtering policy"
"""What a provider says that has no code for it; it is looked for, and not kept."""


def fault_of(error: BaseException) -> ModelFault:
    """Return the name of what an error of the library means."""
    is_coded = getattr(error, "provider_error_code", None) in FILTER_CODES
    if is_coded or _FILTERED in str(getattr(error, "body", "")):
        return ModelFault.CONTENT_FILTER
    for kind, fault in FAULTS:
        if isinstance(error, kind):
            return fault
    status = getattr(error, "status_code", None)
    return STATUSES.get(status, ModelFault.PROTOCOL_ERROR) if status else ModelFault.PROTOCOL_ERROR


def pause_of(error: BaseException) -> int | None:
    """Return for how many seconds a provider asks to be left alone, clamped; None if not at all."""
    asked = getattr(error, "retry_after", None)
    if not isinstance(asked, int | float) or math.isnan(asked) or asked < 0:
        return None
    return math.ceil(min(asked, MAX_RETRY_AFTER_SECONDS))
