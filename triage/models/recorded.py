"""The model that plays a script: the decisions of fixtures, tests and replays of an incident."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pydantic import JsonValue

from triage.contracts.canonical import digest_of
from triage.contracts.payloads import DecideOutcome, DecideResult
from triage.models.base import ModelRequest

TIMEOUT_MARK: Final[JsonValue] = {"error": "model_timeout"}
EXHAUSTED: Final = "recorded decisions exhausted"


class RecordedModel:
    """Answers step N with item N of its script, as it stands.

    Nothing is remembered between calls: the position comes from the run, so a retried activity
    and another worker give the same answer. An item equal to `TIMEOUT_MARK` is a timeout.

    Source: the production agent's RecordedModel.
    """

    def __init__(self, script: Sequence[JsonValue]) -> None:
        self._script = tuple(script)
        self.name = "recorded"
        self.revision = digest_of(list(script))

    async def decide(self, request: ModelRequest) -> DecideResult:
        """Return the item of this step; past the end of the script there is no decision."""
        if not 1 <= request.step <= len(self._script):
            return DecideResult(outcome=DecideOutcome.INVALID, detail=EXHAUSTED)
        item = self._script[request.step - 1]
        if item == TIMEOUT_MARK:
            return DecideResult(outcome=DecideOutcome.TIMEOUT)
        return DecideResult(outcome=DecideOutcome.DECISION, decision=item)
