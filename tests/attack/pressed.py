"""A model that is offered no second read, so that it has to say what it makes of an issue.

Why it exists: a small model that may read goes on reading until its steps are spent, and its
answers never come to be judged. Everything else about it is as in production.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

from activities.services import Services
from triage.contracts.payloads import DecideResult
from triage.models.base import ModelAdapter, ModelRequest, PaidAnswer, PaidModel
from triage.models.quotes import Quote

SUFFIX: Final = "/pressed"


class Pressed(PaidModel):
    """Asks another model, which sees no tools once it has read something."""

    def __init__(self, name: str, model: PaidModel) -> None:
        self._model = model
        self.name = name
        self.revision, self.prompt, self.prices = model.revision, model.prompt, model.prices
        self.timeout = model.timeout

    def quote(self, request: ModelRequest) -> Quote:
        """Return what this call may use at most."""
        return self._model.quote(_pressed(request))

    async def ask(self, request: ModelRequest, quote: Quote) -> PaidAnswer:
        """Make one call."""
        return await self._model.ask(_pressed(request), quote)

    async def decide(self, request: ModelRequest) -> DecideResult:
        """Make a call that nothing is reserved for."""
        return await self._model.decide(_pressed(request))


@dataclass(frozen=True, kw_only=True)
class PressedServices(Services):
    """Services that know models behind an API by a second name, under which they are pressed."""

    async def build_model(self, name: str) -> ModelAdapter:
        """Return the model of a name, pressed if the name says so."""
        plain = name.removesuffix(SUFFIX)
        model = await super().build_model(plain)
        return Pressed(name, model) if name != plain and isinstance(model, PaidModel) else model


def pressing(services: Services) -> PressedServices:
    """Return the same services, with that second name."""
    return PressedServices(**{part.name: getattr(services, part.name) for part in fields(services)})


def _pressed(request: ModelRequest) -> ModelRequest:
    return request.model_copy(update={"tools": ()}) if request.observations else request
