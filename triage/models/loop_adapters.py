"""The adapters of the evidence loop: a demo rule, and one that plays recorded decisions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from pydantic import JsonValue

from triage.contracts.canonical import digest_of
from triage.contracts.incident import Incident

DEMO_REFERENCE: Final = "latency"


class AdapterFailed(Exception):  # noqa: N818 - the name says what happened
    """An adapter raised; what it said is not kept, since it may hold anything."""


class LoopAdapter(Protocol):
    """Proposes the next action; stateless, so that a retried call answers alike."""

    name: str
    revision: str

    def decide(self, step: int, observed: Mapping[str, JsonValue]) -> JsonValue:
        """Return a decision as plain data.

        Raises:
            AdapterFailed: the adapter raised instead of deciding.
        """
        ...


class DemoAdapter:
    """Read the latency if nothing was observed, else finish. A rule, not a model."""

    name = "demo"
    revision = "1"

    def decide(self, step: int, observed: Mapping[str, JsonValue]) -> JsonValue:
        """Return the rule's decision."""
        del step
        if not observed:
            return {"action": "read", "argument": DEMO_REFERENCE}
        return {"action": "finish", "argument": None}


class RecordedAdapter:
    """Plays recorded decisions; the position is the step, so nothing is kept between calls."""

    name = "recorded"

    def __init__(self, decisions: tuple[JsonValue, ...]) -> None:
        self._decisions = decisions
        self.revision = digest_of(list(decisions)).removeprefix("sha256:")[:12]

    def decide(self, step: int, observed: Mapping[str, JsonValue]) -> JsonValue:
        """Return the recorded item of this step.

        Raises:
            AdapterFailed: the item stands for an adapter that raises, or there is none.
        """
        del observed
        if step > len(self._decisions):
            raise AdapterFailed
        item = self._decisions[step - 1]
        if isinstance(item, dict) and set(item) == {"error"}:
            raise AdapterFailed
        return item


def adapter_for(incident: Incident) -> LoopAdapter:
    """Return the adapter that an incident asks for."""
    return DemoAdapter() if incident.decisions is None else RecordedAdapter(incident.decisions)
