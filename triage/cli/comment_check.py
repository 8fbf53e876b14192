"""Checks whether people may decide by a comment, and says how many tried."""

from __future__ import annotations

from typing import Final

from triage.cli.findings import Finding, Level
from triage.settings import Settings, SettingsError

NAME: Final = "comments"


async def check(settings: Settings) -> list[Finding]:
    """Return what there is to say about it; nothing where no key answers for people."""
    if settings.service_key is None:
        return []
    # Slow to load, and only needed where comments count.
    from triage.cli.stores import look_into_store  # noqa: PLC0415 - see above
    from triage.ingest.companions import service_key  # noqa: PLC0415 - likewise
    from triage.storage.commands import Commands  # noqa: PLC0415 - likewise
    from triage.storage.errors import StorageError  # noqa: PLC0415 - likewise

    try:
        key = service_key(settings)
    except SettingsError as error:
        advice = "'triage serve' does not start; correct it"
        return [Finding(NAME, Level.FAIL, str(error), advice)]
    name = key.approver if key else ""
    try:
        async with look_into_store(settings) as store:
            counts = await Commands(store).counts()
    except StorageError:
        counts = {}
    so_far = ", ".join(f"{state} {number}" for state, number in sorted(counts.items()))
    return [Finding(NAME, Level.OK, f"count, signed by {name}; so far: {so_far or 'none'}")]
