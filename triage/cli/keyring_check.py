"""Checks the keyring that signed approvals are verified against."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from triage.cli.findings import Finding, Level
from triage.cli.key_files import ring_advice
from triage.settings import Settings
from triage.signing.files import KeyringFile
from triage.signing.keys import KeyringError

NAME: Final = "keyring"
NEW_KEY: Final = "'triage keys new NAME' makes a key and a keyring, and says what to set"


def check(settings: Settings) -> Finding:
    """Return what there is to say about it."""
    path = settings.keyring
    if path is None:
        return _unset(settings)
    try:
        entries = KeyringFile(path).load().entries
    except KeyringError as error:
        advice = ring_advice(path) or "correct it; no worker starts, and no signed approval counts"
        return Finding(NAME, Level.FAIL, f"{path}: {error}", advice)
    now = datetime.now(UTC)
    in_use = sum(entry.retired_at is None or entry.retired_at > now for entry in entries)
    unasked = ", which local trust never asks" if settings.local_trust else ""
    detail = f"{path}: {in_use} of {len(entries)} keys in use{unasked}"
    return Finding(NAME, Level.OK, detail) if in_use else Finding(NAME, Level.WARN, detail, NEW_KEY)


def _unset(settings: Settings) -> Finding:
    if settings.local_trust is False:
        detail = "none is set: no signed approval counts, and no unsigned one either"
        return Finding(NAME, Level.WARN, detail, NEW_KEY)
    return Finding(NAME, Level.OK, "none is set: no signature can be checked")
