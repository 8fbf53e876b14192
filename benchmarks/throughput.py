"""Runs a second of the embedded profile: one machine, one worker process, data on its disk.

Each arm has the machine to itself for a window, in turn. That is how embedded engines are used and
compared, and it is noisier than CPU time: the floor's turn against itself says how much.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Final

from benchmarks.arms import Arm
from benchmarks.load import Load
from benchmarks.plan import Plan, W
from benchmarks.replay import Speed

IN_FLIGHT: Final = 16
"""Enough to keep two processors busy."""


async def measure_throughput(arms: Sequence[Arm], plan: Plan) -> Speed:
    """Give each arm its turn, window after window; the first of each is not counted."""
    rates: dict[str, list[float]] = {arm.name: [] for arm in arms}
    for window in range(plan.windows + 1):
        for arm in arms:
            rate = await _rate(arm, plan.seconds)
            if window > 0:
                rates[arm.name].append(rate)
    return Speed({name: tuple(found) for name, found in rates.items()})


async def _rate(arm: Arm, seconds: float) -> float:
    load = Load([arm], W, IN_FLIGHT)
    begun = time.monotonic()
    runs = await load.play(seconds)
    rate = runs / (time.monotonic() - begun)
    # What the server does after a run's end is not the next arm's.
    await asyncio.sleep(0.2)
    return rate
