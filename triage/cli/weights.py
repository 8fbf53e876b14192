"""`triage weights`: hands what was learned to workers, and shows what it looks at."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from triage.cli.errors import InputError, RefusedError
from triage.cli.inputs import read_bytes
from triage.cli.output import Format, beside, put, put_json
from triage.cli.running import run
from triage.cli.stores import look_into_store, must_exist, open_store, place
from triage.contracts.base import ContractError
from triage.learning.report import heaviest
from triage.models.learned_weights import Weights, read_weights, read_written
from triage.settings import load_settings
from triage.storage.documents import SHARED, Document, DocumentKind, DocumentStore

NO_DATABASE: Final = (
    "start a worker once, or go to the folder that it runs in; 'triage up' makes the database"
)

NO_WEIGHTS: Final = "'triage learn --output FILE' makes such a file"
STORE: Final = "'triage weights store FILE' stores them"
_STORED: Final = re.compile(r"(?:learned:(?:sha256:)?|sha256:)([0-9a-f]{16,64})(?::.+)?")


def store(file: Path, format_: Format) -> None:
    """Put weights into the workers' database by their digest; again changes nothing.

    Raises:
        InputError: the file cannot be read, or holds no weights.
        RefusedError: there is no database.
        StorageError: it cannot be used.
    """
    weights = _read(file)
    digest = run(_store(weights))
    model = f"learned:{digest}"
    if format_ is Format.JSON:
        put_json({"digest": digest, "model": model, "database": place()})
        return
    put(f"stored in {place()}", f"as a model:           TRIAGE_MODEL={model}")
    put(f'as a second opinion:  second_opinion = "{digest}" under [policy] in the rules file')


async def _store(weights: Weights) -> str:
    async with open_store(create=False, hint=NO_DATABASE) as opened:
        return await DocumentStore(opened).put(SHARED, DocumentKind.WEIGHTS, weights.body())


def show(name: str, format_: Format) -> None:
    """Print what a classifier is and looks at: one in a file, or one that is stored.

    What is stored goes by its digest, as `triage doctor` prints it, or by the name of the model.

    Raises:
        InputError: the file cannot be read, or holds no weights.
        RefusedError: no such weights are stored.
        StorageError: the database cannot be used.
    """
    weights = _weights_of(name)
    facts = {
        "digest": weights.digest(),
        "labels": list(weights.labels),
        "groups": sorted(weights.groups),
        "issues": weights.issues,
        "threshold": weights.threshold,
        "target_accuracy": weights.target_accuracy,
        "features": {block.value: len(rows) for block, rows in weights.shared.features.items()},
        "top_features": heaviest(weights),
    }
    if format_ is Format.JSON:
        put_json(facts)
        return
    threshold = "nothing" if weights.threshold is None else f"what is {weights.threshold:.4f} sure"
    put(f"{facts['digest']}, taught by {weights.issues:,} issues")
    put(f"answers {threshold}, chosen for {weights.target_accuracy:.0%} right")
    put(f"groups with weights of their own: {', '.join(sorted(weights.groups)) or 'none'}", "")
    put("what speaks most for a label:")
    top = heaviest(weights)
    for label in weights.labels:
        put(*beside("", label), *beside("  ", ", ".join(map(str, _listed(top[label])))))


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _weights_of(name: str) -> Weights:
    """Return those of a file if there is one, else those that are stored."""
    found = _STORED.fullmatch(name)
    if Path(name).exists() or not (found or name.startswith(("sha256:", "learned:"))):
        return _read(Path(name))
    if found is None:
        raise InputError(f"{name}: is no digest", "'triage doctor' prints it: sha256:…")
    return run(_stored(f"sha256:{found[1]}"))


def _read(file: Path) -> Weights:
    data = read_bytes(file)
    try:
        return read_written(data)
    except ContractError as error:
        raise InputError(f"{file}: {error}", NO_WEIGHTS) from None


async def _stored(digest: str) -> Weights:
    await must_exist(NO_DATABASE)
    async with look_into_store(load_settings()) as opened:
        found = await DocumentStore(opened).get(SHARED, DocumentKind.WEIGHTS, digest)
    if not isinstance(found, Document):
        raise RefusedError(f"{digest}: no such weights are stored in {place()}", STORE)
    return read_weights(found.body)
