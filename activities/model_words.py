"""What a model says, before it is written anywhere.

Why it exists: a decision goes into the run's history and much of it into the response, and both
outlive access rules. A model may repeat a credential that somebody pasted into an issue, so none
leaves the activity that asked the model.
"""

from __future__ import annotations

from pydantic import JsonValue

from triage.policy.redaction import redact, redact_secrets, redact_value


def without_secrets(decision: JsonValue) -> JsonValue:
    """Return a decision without credentials, and its reason without personal data either.

    Names and arguments keep what is personal: a path is looked up as it is.
    """
    value = redact_value(decision, redact_secrets)
    if isinstance(value, dict) and isinstance(reason := value.get("reason"), str):
        return {**value, "reason": redact(reason)}
    return value
