"""Plays the whole crash matrix: ``python -m tests.crash [WORD...]``, which `make crash` runs.

With words, only the cells whose names hold one of them. A line a cell as it ends, then a table;
the exit status is 1 if a cell came to anything else than it must.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import active_children
from pathlib import Path
from typing import Final

from tests.crash.arena import Arena, opened_ground
from tests.crash.cells import Spec, every_cell
from tests.postgres_server import running_server

AT_ONCE: Final = 10 * (os.cpu_count() or 1)
"""Cells side by side: most of the time of each is a wait for a timeout."""
AS_EXPECTED: Final = "as expected"


@dataclass(frozen=True)
class Outcome:
    """What a cell came to."""

    spec: Spec
    breaches: Sequence[str]
    seconds: float

    @property
    def seen(self) -> str:
        """In short."""
        return "; ".join(self.breaches) or AS_EXPECTED


class Show:
    """Plays cells, and tells as they end."""

    def __init__(self, arena: Arena, specs: Sequence[Spec]) -> None:
        self._arena = arena
        self._specs = specs
        self._room = asyncio.Semaphore(AT_ONCE)
        self._done = 0

    async def play(self) -> list[Outcome]:
        """Play every cell; none keeps another from its turn."""
        return await asyncio.gather(*map(self._played, self._specs))

    async def _played(self, spec: Spec) -> Outcome:
        async with self._room:
            began = time.monotonic()
            try:
                breaches = await self._arena.breaches(spec)
            except Exception as error:  # noqa: BLE001 - a cell that breaks off is a breach
                breaches = [f"{type(error).__name__}: {error}"]
            outcome = Outcome(spec, breaches, time.monotonic() - began)
        self._done += 1
        mark = "BREACH" if breaches else "ok"
        say(f"[{self._done:3}/{len(self._specs)}] {mark:6} {outcome.seconds:5.0f} s  {spec}")
        return outcome


def say(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)  # noqa: T201 - a program for people


def put_table(outcomes: Sequence[Outcome]) -> None:
    """Print what was expected of each cell and what was seen."""
    width = max(len(str(outcome.spec)) for outcome in outcomes)
    middle = max(len(outcome.spec.expected) for outcome in outcomes)
    say(f"\n{'cell':{width}}  {'expected':{middle}}  seen")
    for outcome in outcomes:
        say(f"{outcome.spec!s:{width}}  {outcome.spec.expected:{middle}}  {outcome.seen}")


async def run(words: Sequence[str]) -> int:
    """Play the cells that `words` name, and return the exit status."""
    specs = [spec for spec in every_cell() if not words or any(w in str(spec) for w in words)]
    if not specs:
        say("no cell has such a name")
        return 2
    began = time.monotonic()
    say(f"{len(specs)} cells, {AT_ONCE} at a time")
    with tempfile.TemporaryDirectory(prefix="crash-") as folder, running_server() as postgres:
        async with opened_ground(Path(folder)) as ground:
            outcomes = await Show(Arena(ground, postgres), specs).play()
    for left in active_children():
        # A cell that broke off may have left a frozen one, which would be waited for without end.
        left.kill()
    put_table(outcomes)
    counts = Counter("breaches" if outcome.breaches else AS_EXPECTED for outcome in outcomes)
    told = ", ".join(f"{number} {name}" for name, number in counts.items())
    say(f"\n{len(outcomes)} cells in {time.monotonic() - began:.0f} s: {told}")
    return 1 if counts["breaches"] else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(run(sys.argv[1:])))
