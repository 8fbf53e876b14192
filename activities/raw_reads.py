"""What a read tool's handler takes, returns and raises."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from triage.contracts.payloads import Target
from triage.policy.rules import Rules
from triage.trackers.base import Tracker


@dataclass(frozen=True, slots=True)
class RawRead:
    """What a handler found: the value and where it stands."""

    value: JsonValue
    source: str
    locator: str


class TransientReadError(Exception):
    """A read failed in a way that may pass; the tool's retry rule decides.

    Attributes:
        retry_after_seconds: the pause that the far end asked for, if it did.
    """

    def __init__(self, retry_after_seconds: float | None = None) -> None:
        super().__init__()
        self.retry_after_seconds = retry_after_seconds


@dataclass(frozen=True, slots=True)
class Far:
    """The run's own issue, and the tracker that has it."""

    tracker: Tracker
    target: Target

    @property
    def source(self) -> str:
        """How evidence names where it came from."""
        return f"{self.target.tracker}:{self.target.repository}"


ReadHandler = Callable[[Mapping[str, JsonValue], Rules], Awaitable[RawRead]]
TrackerReadHandler = Callable[[Mapping[str, JsonValue], Rules, Far], Awaitable[RawRead]]
