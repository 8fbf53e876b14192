"""Anthropic's Messages API."""

from __future__ import annotations

from typing import Final

import httpx2
from anthropic import AsyncAnthropic
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider

from triage.models.llm_wire import NO_KEY

ADDRESS: Final = "https://api.anthropic.com"
VERSION: Final = "2023-06-01"


def headers(key: str) -> dict[str, str]:
    """Return what a request proves its right with, and the protocol's version."""
    right = {"x-api-key": key} if key else {}
    return {"anthropic-version": VERSION, **right}


def model(name: str, base_url: str | None, client: httpx2.AsyncClient) -> Model:
    """Return the model, on a client that sends one request."""
    sdk = AsyncAnthropic(
        api_key=NO_KEY, base_url=base_url or ADDRESS, max_retries=0, http_client=client
    )
    return AnthropicModel(name, provider=AnthropicProvider(anthropic_client=sdk))
