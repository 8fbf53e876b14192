"""What is known of each provider's protocol before its libraries are loaded, which are slow.

Why it exists: whether a provider answers can be asked without them, and under the same headers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from triage.models.llm_setup import ANTHROPIC, OPENAI

ANTHROPIC_VERSION: Final = "2023-06-01"


@dataclass(frozen=True, slots=True)
class Spoken:
    """How a provider is spoken to.

    Attributes:
        address: its own.
        models: where its models are listed, beneath its address or another one.
        headers: what a request proves its right with, by the key, and the protocol's version.
    """

    address: str
    models: str
    headers: Callable[[str], dict[str, str]]


def _openai(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"} if key else {}


def _anthropic(key: str) -> dict[str, str]:
    right = {"x-api-key": key} if key else {}
    return {"anthropic-version": ANTHROPIC_VERSION, **right}


SPOKEN: Final[Mapping[str, Spoken]] = {
    OPENAI: Spoken("https://api.openai.com/v1", "/models", _openai),
    ANTHROPIC: Spoken("https://api.anthropic.com", "/v1/models", _anthropic),
}
