"""Marks a run whose issue is one for a security review, when it is pinned."""

from __future__ import annotations

from triage.contracts.payloads import PinRequest, RunContext
from triage.policy.rules import Rules
from triage.policy.security import is_security


def marked(context: RunContext, request: PinRequest, rules: Rules) -> RunContext:
    """Return the snapshot, marked if the request's text has a word of the security list."""
    text = request.request
    if not is_security(text.title, text.body, rules.security_terms):
        return context
    return context.model_copy(update={"security": True})
