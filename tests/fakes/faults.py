"""What goes wrong with which request: a plan that a test sets, and the faults by name.

A plan is a list of faults. Every fault that fits a request counts it; the first one that is due
acts. The named faults at the end are those of the write's row in the fault matrix; each fits the
request that adds labels unless it is told otherwise.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Final

WRITES: Final = r"/issues/[^/]+/labels$"
"""The path of the request that adds labels."""


class Reply(StrEnum):
    """How an answer reaches the client."""

    WHOLE = "whole"
    DROP = "drop"
    """The connection is closed without a byte."""
    RESET = "reset"
    """The connection is reset without a byte."""
    HALF = "half"
    """The head promises a body, half of it follows, and the connection is closed."""
    DRIP = "drip"
    """A byte at a time."""
    SILENCE = "silence"
    """Nothing, for as long as the client waits."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One thing that goes wrong, and when.

    Attributes:
        method: only requests of this method; empty for any.
        path: a regular expression that is looked for in the path.
        operation: only requests that name this operation key; empty for any.
        skip: so many fitting requests pass first.
        times: it then acts on so many; 0 for ever.
        chance: it acts with this probability when it is due, by the plan's seed.
        before_ms: a pause before the request takes effect.
        takes_effect: whether it does; None means as the status says, which is not from 400 on.
        late_ms: it takes effect only so many milliseconds after that, whatever is answered.
        labels: only the first so many labels of the request are added.
        after_ms: a pause between the effect and the answer.
        reply: how the answer arrives.
        drip_ms: the pause between the bytes of a dripping answer.
        status: answered in place of the real one.
        headers: added to the answer, or put in place of what is there.
        body: answered in place of the real one.
    """

    method: str = "POST"
    path: str = WRITES
    operation: str = ""
    skip: int = 0
    times: int = 1
    chance: float = 1.0
    before_ms: int = 0
    takes_effect: bool | None = None
    late_ms: int | None = None
    labels: int | None = None
    after_ms: int = 0
    reply: Reply = Reply.WHOLE
    drip_ms: int = 20
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: str | None = None

    @property
    def lets_through(self) -> bool:
        """Whether the request takes effect, now or later."""
        if self.takes_effect is not None:
            return self.takes_effect
        return self.late_ms is not None or (self.status or 200) < 400

    def fits(self, method: str, path: str, operation: str) -> bool:
        """Whether it is about this request."""
        return (
            self.method in {"", method}
            and self.operation in {"", operation}
            and re.search(self.path, path) is not None
        )

    def to_json(self) -> dict[str, Any]:
        """The form in which a test sends it."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Fault:
        """Read what `to_json` gave.

        Raises:
            TypeError: there is no such field.
            ValueError: there is no such reply.
        """
        return cls(**{**value, "reply": Reply(value.get("reply", Reply.WHOLE))})


NO_FAULT: Final = Fault(method="", path="")


class Plan:
    """The faults that are set, and how many requests each has seen."""

    def __init__(self, faults: Sequence[Fault] = (), seed: int = 0) -> None:
        self._faults = tuple(faults)
        self._seen = [0] * len(self._faults)
        self._random = random.Random(seed)  # noqa: S311 - a test repeats it

    def next(self, method: str, path: str, operation: str) -> Fault:
        """Return what happens to the next request."""
        acting = NO_FAULT
        for index, fault in enumerate(self._faults):
            if not fault.fits(method, path, operation):
                continue
            self._seen[index] += 1
            if acting is NO_FAULT and self._due(fault, self._seen[index] - fault.skip):
                acting = fault
        return acting

    def _due(self, fault: Fault, turn: int) -> bool:
        if turn < 1 or (fault.times and turn > fault.times):
            return False
        return fault.chance >= 1 or self._random.random() < fault.chance


def fails_before(status: int = 500, **more: Any) -> Fault:  # noqa: ANN401 - any field
    """An error of the server, and nothing was done."""
    return Fault(status=status, takes_effect=False, **more)


def fails_after(status: int = 502, **more: Any) -> Fault:  # noqa: ANN401 - any field
    """An error of the server, though it was done."""
    return Fault(status=status, takes_effect=True, **more)


def dropped_before(reply: Reply = Reply.DROP, **more: Any) -> Fault:  # noqa: ANN401 - any field
    """The connection ends before anything was done."""
    return Fault(reply=reply, takes_effect=False, **more)


def dropped_after(reply: Reply = Reply.DROP, **more: Any) -> Fault:  # noqa: ANN401 - any field
    """It was done, and the connection ends before the answer."""
    return Fault(reply=reply, takes_effect=True, **more)


def late(late_ms: int, reply: Reply = Reply.DROP, **more: Any) -> Fault:  # noqa: ANN401 - any field
    """The connection ends now, and it is done so much later."""
    return Fault(reply=reply, late_ms=late_ms, **more)


def refused(status: int, message: str = "no", **more: Any) -> Fault:  # noqa: ANN401 - any field
    """A definite no."""
    return Fault(status=status, body=f'{{"message": "{message}"}}', **more)


def rate_limited(retry_after: str | None, **more: Any) -> Fault:  # noqa: ANN401 - any field
    """Too many requests; the header says how long to wait, if there is one."""
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    return Fault(status=429, headers=headers, **more)


def secondary_limit(**more: Any) -> Fault:  # noqa: ANN401 - any field
    """The rate limit that only a sentence tells from a lack of rights."""
    return refused(403, "You have exceeded a secondary rate limit.", **more)


def wrong_type(**more: Any) -> Fault:  # noqa: ANN401 - any field
    """It was done, and a page for people is answered."""
    return Fault(headers={"Content-Type": "text/html"}, body="<h1>Hello</h1>", **more)


def without_effect(**more: Any) -> Fault:  # noqa: ANN401 - any field
    """A success is answered and nothing was done."""
    return Fault(takes_effect=False, **more)


def partial(labels: int = 1, status: int = 500, **more: Any) -> Fault:  # noqa: ANN401 - any field
    """Only the first labels are added before the server fails."""
    return Fault(labels=labels, status=status, takes_effect=True, **more)
