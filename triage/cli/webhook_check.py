"""Checks what `triage serve` needs to tell a delivery from a forged one."""

from __future__ import annotations

from typing import Final

from triage.cli.findings import Finding, Level
from triage.settings import Settings

NAME: Final = "webhooks"
SET_IT: Final = "set TRIAGE_WEBHOOK_SECRET or TRIAGE_WEBHOOK_SECRET_FILE to the one in force"


def check(settings: Settings) -> Finding:
    """Return what there is to say about it; never a secret."""
    if settings.webhook_secret is None:
        if settings.webhook_secret_previous is not None:
            detail = "a previous secret is set and none in force: 'triage serve' does not start"
            return Finding(NAME, Level.FAIL, detail, SET_IT)
        return Finding(NAME, Level.OK, "no secret is set: 'triage serve' does not start")
    if settings.webhook_secret_previous is not None:
        return Finding(NAME, Level.OK, "a secret is set, and the one before it counts as well")
    return Finding(NAME, Level.OK, "a secret is set")
