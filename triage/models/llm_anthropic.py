"""Anthropic's Messages API."""

from __future__ import annotations

import httpx2
from anthropic import AsyncAnthropic
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider

from triage.models.llm_protocols import SPOKEN
from triage.models.llm_setup import ANTHROPIC
from triage.models.llm_wire import NO_KEY


def model(name: str, base_url: str | None, client: httpx2.AsyncClient) -> Model:
    """Return the model, on a client that sends one request."""
    sdk = AsyncAnthropic(
        api_key=NO_KEY,
        base_url=base_url or SPOKEN[ANTHROPIC].address,
        max_retries=0,
        http_client=client,
    )
    return AnthropicModel(name, provider=AnthropicProvider(anthropic_client=sdk))
