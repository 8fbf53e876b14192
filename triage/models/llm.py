"""A model behind an API: one question, one request, and one named outcome.

Why it exists: providers differ in everything but this. Whatever one does, the loop gets a decision
as plain data, or the one name of what went wrong; and what it used, if it says so.
"""

from __future__ import annotations

import asyncio
import logging
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import httpx2
from pydantic_ai.direct import model_request
from pydantic_ai.exceptions import UsageExtractionFailedWarning
from pydantic_ai.messages import ModelRequest as Question
from pydantic_ai.messages import (
    ModelRequestPart,
    ModelResponse,
    SystemPromptPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings

from triage.contracts.canonical import canonical_json, digest_of
from triage.contracts.model_faults import ModelFault
from triage.contracts.payloads import DecideResult
from triage.models.base import ModelRequest, PaidAnswer, PaidModel
from triage.models.llm_answers import read_answer, tokens_of
from triage.models.llm_faults import fault_of, pause_of
from triage.models.llm_prompt import prompt_digest, system_text, user_text
from triage.models.llm_schema import schema_of
from triage.models.llm_setup import Endpoint, LlmSetup
from triage.models.llm_wire import Channel, opened
from triage.models.outcomes import failed
from triage.models.quotes import Quote, charge

TEMPERATURE: Final = 0.0
SEED: Final = 7
"""Both are asked for; not every model has them, and none promises the same answer for them."""

FORM: Final = "2"
"""Grows when data, schema or parameters are put to models in another way."""

BYTES_PER_TOKEN: Final = 2
"""Fewer than ASCII text has in common tokenisers, so hardly a call uses more than it reserved."""

_FRAME_TOKENS: Final = 200
_log = logging.getLogger(__name__)
# Their messages may hold what a provider said.
warnings.filterwarnings("ignore", category=UsageExtractionFailedWarning)
warnings.filterwarnings("ignore", message="Unexpected non-string value", category=UserWarning)


@dataclass(frozen=True, slots=True)
class Provider:
    """How one provider is spoken to."""

    headers: Callable[[str], dict[str, str]]
    model: Callable[[str, str | None, httpx2.AsyncClient], Model]


class LlmModel(PaidModel):
    """One model of one provider.

    Args:
        name: as options give it, such as ``openai:gpt-5-mini``.
        provider: how it is spoken to.
        setup: where, with which key, and within which bounds.
    """

    def __init__(self, name: str, provider: Provider, setup: LlmSetup) -> None:
        kind, _, self._model = name.partition(":")
        self._provider = provider
        self._endpoint: Endpoint = setup.endpoint(kind)
        self._price = setup.prices.of(kind, self._model)
        self._max_output_tokens = setup.max_output_tokens
        self.name = name
        self.prompt = prompt_digest()
        self.prices = setup.prices.name
        self.timeout = setup.timeout
        self.revision = self._revision()

    def _revision(self) -> str:
        """Say what shapes an answer beside name and prompt; another server is another model."""
        server = digest_of(self._endpoint.base_url or "").removeprefix("sha256:")[:8]
        at = f",server={server}" if self._endpoint.base_url else ""
        return f"{FORM},temperature={TEMPERATURE:g},seed={SEED}{at}"

    def quote(self, request: ModelRequest) -> Quote:
        """Return what this call may use at most."""
        schema = len(canonical_json(schema_of(request)))
        size = len(system_text()) + len(user_text(request)) + schema
        tokens = size // BYTES_PER_TOKEN + _FRAME_TOKENS
        return Quote(tokens, self._max_output_tokens, self._price)

    async def decide(self, request: ModelRequest) -> DecideResult:
        """Make a call that nothing is reserved for."""
        return (await self.ask(request, self.quote(request))).result

    async def ask(self, request: ModelRequest, quote: Quote) -> PaidAnswer:
        """Make one call; what went wrong is in the answer, and nothing else of it is kept."""
        key = self._endpoint.key
        headers = self._provider.headers(key.get_secret_value() if key else "")
        try:
            async with opened(headers) as (channel, client):
                return await self._asked(channel, client, request, quote)
        except Exception as error:  # noqa: BLE001 - whatever the libraries raise before they send
            _log.error("the model library failed: %s", type(error).__name__)
            return PaidAnswer(failed(ModelFault.PROTOCOL_ERROR))

    async def _asked(
        self, channel: Channel, client: httpx2.AsyncClient, request: ModelRequest, quote: Quote
    ) -> PaidAnswer:
        try:
            model = self._provider.model(self._model, self._endpoint.base_url, client)
            async with asyncio.timeout(self.timeout.total_seconds()):
                response = await _send(model, request, quote)
        except Exception as error:  # noqa: BLE001 - a library's errors are mapped, all of them
            fault = channel.stopped or fault_of(error)
            return PaidAnswer(failed(fault, pause_of(error)), was_sent=channel.was_sent)
        counted = tokens_of(response)
        used = charge(self._price, *counted) if counted else None
        return PaidAnswer(read_answer(response), used)


async def _send(model: Model, request: ModelRequest, quote: Quote) -> ModelResponse:
    parts: list[ModelRequestPart] = [
        SystemPromptPart(system_text()),
        UserPromptPart(user_text(request)),
    ]
    settings = ModelSettings(
        max_tokens=quote.output_tokens, temperature=TEMPERATURE, seed=SEED, thinking=False
    )
    return await model_request(
        model,
        [Question(parts=parts)],
        model_settings=settings,
        model_request_parameters=_parameters(model, request),
        instrument=False,
    )


def _parameters(model: Model, request: ModelRequest) -> ModelRequestParameters:
    """Ask for the schema where the provider can hold a model to one; the prompt says it anyway."""
    if not model.profile.get("supports_json_schema_output", False):
        return ModelRequestParameters(output_mode="text")
    shape = OutputObjectDefinition(json_schema=schema_of(request), name="envelope", strict=True)
    return ModelRequestParameters(output_mode="native", output_object=shape)
