"""Soaks one database or both: ``python -m tests.soak --seed 7 --operations 500 --database both``.

The seed comes first, so that a soak that found something can be played again. Exits with 1 if
anything is wrong; then the folder that it names is kept.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import SystemRandom

from tests.soak.databases import Database, SqliteFile, postgres_database
from tests.soak.server import running_server
from tests.soak.soak import Order, soak
from tests.soak.verdict import Verdict

DATABASES = ("sqlite", "postgresql")


def main() -> int:
    """Soak as the command line says."""
    options = _options()
    seed = SystemRandom().getrandbits(32) if options.seed is None else options.seed
    _say(
        f"seed {seed}: make soak SEED={seed}"
        f" OPERATIONS={options.operations} DATABASE={options.database}"
    )
    names = DATABASES if options.database == "both" else (options.database,)
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    breaches = [_soaked(name, seed, options, folder / name) for name in names]
    if any(breaches) or options.keep:
        _say(f"what was left is in {folder}; seed {seed}")
    else:
        shutil.rmtree(folder)
    return int(any(breaches))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests.soak", description=__doc__)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--operations", type=int, default=500)
    parser.add_argument("--abreast", type=int, default=24)
    parser.add_argument("--full-at", type=int, help="from how many events on a history is full")
    parser.add_argument("--keep", action="store_true", help="keep what was left in any case")
    parser.add_argument("--database", choices=(*DATABASES, "both"), default="both")
    return parser.parse_args()


def _soaked(name: str, seed: int, options: argparse.Namespace, folder: Path) -> int:
    """Soak one database and return how many breaches were found."""
    folder.mkdir()
    order = Order(
        seed=seed,
        operations=options.operations,
        abreast=options.abreast,
        folder=folder,
        # As it is used: a file on one's own machine, and a server that many share.
        signed=name == "postgresql",
        say=_say,
    )
    _say(f"{name}:")
    began = time.monotonic()
    with _database(name, folder) as database:
        verdict = asyncio.run(_on_server(order, database, options.full_at))
    for line in verdict.lines():
        _say(line)
    _say(f"{name} took {time.monotonic() - began:.0f} s")
    return len(verdict.breaches)


async def _on_server(order: Order, database: Database, full_at: int | None) -> Verdict:
    async with running_server(order.folder, full_at) as server:
        return await soak(order, server.client, server.environment(), database)


@contextmanager
def _database(name: str, folder: Path) -> Iterator[Database]:
    if name == "sqlite":
        yield SqliteFile(folder / "triage.db")
        return
    with postgres_database("soak") as database:
        yield database


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - meant for people


if __name__ == "__main__":
    sys.exit(main())
