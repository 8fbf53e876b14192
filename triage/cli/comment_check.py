"""Checks whether people may decide by a comment, and says how many tried."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from triage.cli.findings import Finding, Level
from triage.settings import Settings, SettingsError

if TYPE_CHECKING:
    from triage.signing.keys import SigningKey

NAME: Final = "comments"
UNSET: Final = "TRIAGE_SERVICE_KEY is not set"


async def check(settings: Settings) -> list[Finding]:
    """Return what there is to say about it: what `triage serve` would make of the settings."""
    if settings.service_key is None:
        return [Finding(NAME, Level.OK, f"'triage serve' ignores orders in them: {UNSET}")]
    # Slow to load, and only needed where comments count.
    from triage.ingest.companions import service_key  # noqa: PLC0415 - see above
    from triage.storage.errors import StorageError  # noqa: PLC0415 - likewise

    try:
        try:
            key, counts = await _looked_up(settings)
        except StorageError:
            key, counts = service_key(settings), {}
    except SettingsError as error:
        advice = "'triage serve' does not start; correct it"
        return [Finding(NAME, Level.FAIL, problem, advice) for problem in error.problems]
    name = key.approver if key else ""
    so_far = ", ".join(f"{state} {number}" for state, number in sorted(counts.items()))
    return [Finding(NAME, Level.OK, f"count, signed by {name}; so far: {so_far or 'none'}")]


async def _looked_up(settings: Settings) -> tuple[SigningKey | None, Mapping[str, int]]:
    """Return the key that signs, judged with the tracker itself, and who tried."""
    from triage.cli.stores import look_into_store  # noqa: PLC0415 - slow to load
    from triage.ingest.companions import vouching  # noqa: PLC0415 - likewise
    from triage.storage.commands import Commands  # noqa: PLC0415 - likewise
    from triage.trackers.factory import open_trackers  # noqa: PLC0415 - likewise

    async with look_into_store(settings) as store:
        who = vouching(settings, open_trackers(settings, store).get(settings.tracker))
        return (who[1] if who else None), await Commands(store).counts()
