"""`triage weights`: hands what was learned to workers, and shows what it looks at."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from triage.cli.inputs import read_bytes
from triage.cli.output import Format, put, put_json, put_table
from triage.cli.running import run
from triage.cli.stores import open_store, place
from triage.learning.report import heaviest
from triage.models.learned_weights import Weights, read_weights
from triage.storage.documents import SHARED, DocumentKind, DocumentStore

NO_DATABASE: Final = (
    "start a worker once, or go to the folder that it runs in; 'triage up' makes the database"
)


def store(file: Path, format_: Format) -> None:
    """Put weights into the workers' database by their digest; again changes nothing.

    Raises:
        ContractError: they cannot be used.
        RefusedError: there is no database.
        StorageError: it cannot be used.
    """
    weights = read_weights(read_bytes(file))
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


def show(file: Path, format_: Format) -> None:
    """Print what a classifier is and looks at.

    Raises:
        ContractError: the file holds no weights.
    """
    weights = read_weights(read_bytes(file))
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
    top = heaviest(weights)
    rows = [(label, ", ".join(map(str, _listed(top[label])))) for label in weights.labels]
    put_table(("LABEL", "WHAT SPEAKS MOST FOR IT"), rows)


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []
