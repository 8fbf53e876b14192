"""Weights that an evaluation borrows from the workers' database for its own.

Why it exists: a learned model's weights are in the database that workers share, by digest, and an
evaluation has a database of its own. Of the user's it reads these alone, and changes nothing in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from triage.contracts.base import ContractError
from triage.models.classifier import Classifier
from triage.policy.rules import Rules
from triage.settings import Settings
from triage.storage.address import parse_address
from triage.storage.documents import SHARED, Document, DocumentKind, DocumentStore
from triage.storage.engine import Store

_LEARNED: Final = re.compile(r"learned:(?:sha256:)?([0-9a-f]{64})(?::.*)?")


def wanted(models: Iterable[str], rules: Rules | None) -> tuple[str, ...]:
    """Return the digests of the weights that models, and the rules' second opinion, stand for."""
    named = (_LEARNED.fullmatch(model) for model in models)
    found = [f"sha256:{match[1]}" for match in named if match]
    if rules is not None and rules.second_opinion is not None:
        found.append(rules.second_opinion)
    return tuple(dict.fromkeys(found))


async def lend(settings: Settings, digests: Iterable[str]) -> dict[str, bytes]:
    """Read weights from the user's database; what it does not have is not in the result.

    Raises:
        StorageError: it cannot be used.
    """
    digests = tuple(digests)
    address = parse_address(settings.database_url)
    if not digests or (address.path is not None and not address.path.exists()):
        return {}
    store = await Store.open(settings.database_url)
    try:
        documents = DocumentStore(store)
        found = [await documents.get(SHARED, DocumentKind.WEIGHTS, digest) for digest in digests]
    finally:
        await store.close()
    return {one.digest: one.body for one in found if isinstance(one, Document)}


async def borrow(documents: DocumentStore, bodies: Iterable[bytes]) -> None:
    """Put what was lent into the evaluation's own database."""
    for body in bodies:
        await documents.put(SHARED, DocumentKind.WEIGHTS, body)


def classifier_of(body: bytes | None) -> Classifier | None:
    """Return the classifier of lent weights; None if there are none that can be used."""
    try:
        return None if body is None else Classifier.of(body)
    except ContractError:
        return None
