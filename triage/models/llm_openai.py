"""OpenAI, and every server that speaks its protocol: Ollama, vLLM, llama.cpp and others."""

from __future__ import annotations

from typing import Final

import httpx2
from openai import AsyncOpenAI
from pydantic_ai.models import Model
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

from triage.models.llm_protocols import SPOKEN
from triage.models.llm_setup import OPENAI
from triage.models.llm_wire import NO_KEY

_LOCAL: Final = OpenAIModelProfile(
    # Theirs would take the bounds out of the schema, which such servers follow to the letter.
    json_schema_transformer=None,
    supports_json_schema_output=True,
    openai_chat_supports_max_completion_tokens=False,
)


def model(name: str, base_url: str | None, client: httpx2.AsyncClient) -> Model:
    """Return the model, on a client that sends one request."""
    sdk = AsyncOpenAI(
        api_key=NO_KEY,
        base_url=base_url or SPOKEN[OPENAI].address,
        max_retries=0,
        http_client=client,
    )
    if base_url is None:
        return OpenAIChatModel(name, provider=OpenAIProvider(openai_client=sdk))
    provider = OpenAICompatibleProvider("own", openai_client=sdk)
    return OpenAIChatModel(name, provider=provider, profile=_LOCAL)
