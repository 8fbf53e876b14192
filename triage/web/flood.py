"""How many deliveries one repository may send: a bucket that fills with time."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final

MAX_BUCKETS: Final = 10_000
_MINUTE: Final = 60.0


class Flood:
    """Counts in this process's memory, in bounded space.

    Args:
        per_minute: how many each sender may send at once, and again within a minute.
        clock: seconds that only grow.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._capacity = float(per_minute)
        self._clock = clock
        self._buckets: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def wait_for(self, sender: Hashable) -> float:
        """Take one from the sender's bucket; return 0, or the seconds until there is one."""
        now = self._clock()
        level, at = self._buckets.pop(sender, (self._capacity, now))
        level = min(self._capacity, level + (now - at) * self._capacity / _MINUTE)
        wait = 0.0 if level >= 1 else (1 - level) * _MINUTE / self._capacity
        self._buckets[sender] = (level if wait else level - 1, now)
        if len(self._buckets) > MAX_BUCKETS:
            self._buckets.popitem(last=False)
        return wait
