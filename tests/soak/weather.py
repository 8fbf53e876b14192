"""What goes wrong on the wire: a fault for some requests, drawn from a seed.

Each issue has streams of its own, one for its reads and one for its writes. So what happens to the
third write on issue 17 depends on the seed alone, whatever else is going on.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Final

from tests.fakes.faults import (
    NO_FAULT,
    Fault,
    Plan,
    Reply,
    dropped_after,
    dropped_before,
    fails_after,
    fails_before,
    late,
    rate_limited,
    refused,
    without_effect,
    wrong_type,
)
from tests.fakes.faults import (
    partial as only_some,
)

LATEST_MS: Final = 2_500
"""How much later than its request a write may take effect: well inside the quiet period."""

Draw = Callable[[Random], Fault]

_CUTS: Final = (Reply.DROP, Reply.RESET, Reply.HALF)
_ISSUE: Final = re.compile(r"/issues/([^/]+)")


def _ms(random: Random) -> int:
    return random.randint(100, 1_200)


READS: Final[dict[str, tuple[int, Draw]]] = {
    "read delayed": (4, lambda r: Fault(before_ms=_ms(r))),
    "read 429": (2, lambda _: rate_limited("1")),
    "read 500": (2, lambda _: fails_before(500)),
    "read 503": (2, lambda _: fails_before(503)),
    "read dropped": (2, lambda r: dropped_before(r.choice(_CUTS))),
    "read unanswered": (1, lambda _: dropped_before(Reply.SILENCE)),
    "read as HTML": (1, lambda _: wrong_type()),
}
WRITES: Final[dict[str, tuple[int, Draw]]] = {
    "write delayed": (3, lambda r: Fault(before_ms=_ms(r))),
    "write answered late": (3, lambda r: Fault(after_ms=_ms(r))),
    "write 429": (3, lambda _: rate_limited("1")),
    "write 500 before commit": (2, lambda _: fails_before(500)),
    "write 503 before commit": (2, lambda _: fails_before(503)),
    "write 500 after commit": (3, lambda _: fails_after(500)),
    "write 502 after commit": (3, lambda _: fails_after(502)),
    "write dropped before commit": (3, lambda r: dropped_before(r.choice(_CUTS))),
    "write dropped after commit": (4, lambda r: dropped_after(r.choice(_CUTS))),
    "write unanswered before commit": (2, lambda _: dropped_before(Reply.SILENCE)),
    "write unanswered after commit": (2, lambda _: dropped_after(Reply.SILENCE)),
    "write committed late": (
        4,
        lambda r: late(r.randint(300, LATEST_MS), r.choice((*_CUTS, Reply.SILENCE))),
    ),
    "write committed in part": (3, lambda r: only_some(1, r.choice((500, 502)))),
    "write refused": (1, lambda _: refused(422, "Validation Failed")),
    "write without effect": (1, lambda _: without_effect()),
    "write answered as HTML": (1, lambda _: wrong_type()),
}


class Weather(Plan):
    """A plan without an end.

    Attributes:
        counts: how often each kind of fault struck.
    """

    def __init__(self, seed: int, *, reads: float, writes: float) -> None:
        """Take a seed, and how likely a read and a write is struck."""
        super().__init__()
        self._seed = seed
        self._chances = {False: reads, True: writes}
        self._streams: dict[tuple[bool, str], Random] = {}
        self.counts: Counter[str] = Counter()

    def next(self, method: str, path: str, operation: str) -> Fault:
        """Return what happens to the next request."""
        writing = method != "GET"
        found = _ISSUE.search(path)
        random = self._stream(writing, found[1] if found else "")
        if random.random() >= self._chances[writing]:
            return NO_FAULT
        table = WRITES if writing else READS
        [name] = random.choices([*table], [weight for weight, _ in table.values()])
        self.counts[name] += 1
        return table[name][1](random)

    def _stream(self, writing: bool, issue: str) -> Random:
        key = (writing, issue)
        if key not in self._streams:
            self._streams[key] = Random(f"{self._seed} {key}")  # noqa: S311 - a test repeats it
        return self._streams[key]
