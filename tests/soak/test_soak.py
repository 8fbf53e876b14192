"""A short soak: random faults, two workers, one of the two databases; `make soak` is the long one.

What a seed draws is the same each time; how it meets the steps of the runs is not. So a seed that
found something may have to be played more than once.
"""

from __future__ import annotations

from pathlib import Path
from random import SystemRandom
from typing import Final

import pytest

from tests.soak.databases import Database, SqliteFile, created
from tests.soak.server import running_server
from tests.soak.soak import Order, soak

OPERATIONS: Final = 40
ABREAST: Final = 16
SECONDS: Final = 20.0


def _database(seed: int, request: pytest.FixtureRequest, folder: Path) -> Database:
    """Return one of the two databases, by seed."""
    if seed % 2 == 0:
        return SqliteFile(folder / "triage.db")
    return created(request.getfixturevalue("postgres_server"), f"soak_{seed}")


@pytest.mark.slow
async def test_under_random_faults_every_write_settles_and_happens_once(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Whatever a fresh seed draws breaks no invariant, and then everything settles in time."""
    seed = SystemRandom().getrandbits(32)
    database = _database(seed, request, tmp_path)
    name = "sqlite" if isinstance(database, SqliteFile) else "postgresql"
    order = Order(
        seed=seed,
        operations=OPERATIONS,
        abreast=ABREAST,
        seconds=SECONDS,
        folder=tmp_path / name,
        signed=name == "postgresql",
    )
    order.say(f"seed {seed}: make soak SEED={seed} OPERATIONS={OPERATIONS} DATABASE={name}")
    async with running_server(tmp_path) as server:
        verdict = await soak(order, server.client, server.environment(), database)
    for line in verdict.lines():
        order.say(line)
    assert [] == verdict.breaches, f"seed {seed}"
