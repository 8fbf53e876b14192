"""Checks the weights that the settings and the rules name: are they stored, whole and usable?

Why it exists: a run whose weights cannot be used is refused, or goes to a person, one by one. So
what is wrong with them is said once, before, with what to do. Nothing is changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from triage.cli.findings import Finding, Level
from triage.cli.model_check import fallbacks, second_opinion
from triage.contracts.base import ContractError
from triage.settings import Role, Settings

if TYPE_CHECKING:
    from triage.storage.engine import Store

NAME: Final = "weights"
_LEARNED: Final = re.compile(r"learned:(?:sha256:)?([0-9a-f]{64})(?::(.+))?")
STORE: Final = "'triage weights store FILE' stores them; 'triage learn' makes such a file"
RESTORE: Final = (
    "somebody changed the database: restore it from a backup, or teach anew and name the new digest"
)
_TEACH: Final = (
    "they were not made by this program's 'triage learn': teach them anew, and name the new digest"
)


async def check(settings: Settings) -> list[Finding]:
    """Return a line for all weights that are named; none where no weights are."""
    wanted = dict.fromkeys(_wanted(settings)) if Role.DECIDE in settings.roles else {}
    return [await _looked_at(settings, digest, group) for digest, group in wanted]


def _wanted(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield the digests of weights that runs would need, each with the group that is named."""
    for name in (settings.model, *fallbacks(settings)):
        if match := _LEARNED.fullmatch(name):
            yield f"sha256:{match[1]}", match[2] or ""
    opinion = second_opinion(settings)
    if opinion is not None:
        yield opinion, ""


async def _looked_at(settings: Settings, digest: str, group: str) -> Finding:
    # Everything of the store's is slow to load.
    from triage.cli.stores import look_into_store  # noqa: PLC0415 - see above
    from triage.storage.errors import StorageError  # noqa: PLC0415 - likewise

    try:
        async with look_into_store(settings) as store:
            return await _stored(store, digest, group)
    except StorageError as error:
        detail = f"{digest}: cannot be looked for: {error}"
        return Finding(NAME, Level.FAIL, detail, f"see the line of the database; then {STORE}")


async def _stored(store: Store, digest: str, group: str) -> Finding:
    from triage.storage.documents import (  # noqa: PLC0415 - slow to load
        SHARED,
        Document,
        DocumentKind,
        DocumentStore,
    )
    from triage.storage.errors import StorageMisconfigured  # noqa: PLC0415 - likewise

    try:
        found = await DocumentStore(store).get(SHARED, DocumentKind.WEIGHTS, digest)
    except StorageMisconfigured:
        return Finding(NAME, Level.FAIL, f"{digest}: what is stored is not what was put", RESTORE)
    if not isinstance(found, Document):
        return Finding(NAME, Level.FAIL, f"{digest}: not stored, so no run begins", STORE)
    return _judged(digest, found.body, group)


def _judged(digest: str, body: bytes, group: str) -> Finding:
    from triage.models.learned_weights import read_weights  # noqa: PLC0415 - slow to load

    try:
        weights = read_weights(body)
    except ContractError as error:
        return Finding(NAME, Level.FAIL, f"{digest}: cannot be used: {error}", _TEACH)
    if group and group not in weights.groups:
        advice = "leave the group out of the model's name"
        return Finding(NAME, Level.FAIL, f"{digest}: nothing of this group's own", advice)
    if weights.threshold is None:
        advice = "teach with more issues, or a lower --target"
        detail = f"{digest}: abstain from everything, as no threshold was good enough"
        return Finding(NAME, Level.WARN, detail, advice)
    detail = f"{digest}: taught by {weights.issues:,} issues, {len(weights.labels)} labels"
    return Finding(NAME, Level.OK, detail)
