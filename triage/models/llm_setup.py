"""How models behind an API are reached: addresses, keys, prices and bounds, from the settings.

Why it exists: a key must go to the provider that it is of and nowhere else. So whose address and
key are whose is decided here, once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, Self

from pydantic import SecretStr

from triage.models.prices import Prices, load_prices
from triage.settings import Settings

OPENAI: Final = "openai"
ANTHROPIC: Final = "anthropic"
PROVIDERS: Final = (OPENAI, ANTHROPIC)


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """Where a provider is asked, and with which key.

    Attributes:
        base_url: another address than the provider's own; None for that.
        key: None where there is none.
    """

    base_url: str | None = None
    key: SecretStr | None = None

    @property
    def is_usable(self) -> bool:
        """Whether it can be asked: a server of one's own may need no key."""
        return self.key is not None or self.base_url is not None


@dataclass(frozen=True, kw_only=True)
class LlmSetup:
    """What all models behind an API have in common.

    Attributes:
        endpoints: by provider.
        timeout: of one call, from the connection to the last byte.
        max_output_tokens: of one answer.
    """

    endpoints: Mapping[str, Endpoint] = field(default_factory=dict)
    prices: Prices = field(default_factory=load_prices)
    timeout: timedelta = timedelta(seconds=60)
    max_output_tokens: int = 2_048

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Take it from the settings.

        Raises:
            PricesError: the file of prices cannot be used.
        """
        return cls(
            endpoints={name: endpoint_of(settings, name) for name in PROVIDERS},
            prices=load_prices(settings.model_prices),
            timeout=timedelta(seconds=settings.model_timeout_seconds),
            max_output_tokens=settings.model_max_tokens,
        )

    def endpoint(self, provider: str) -> Endpoint:
        """Return where a provider is asked."""
        return self.endpoints.get(provider, Endpoint())


def main_provider(settings: Settings) -> str:
    """Return whose the model's address and key are: of `TRIAGE_MODEL`, else OpenAI's protocol."""
    named = settings.model.partition(":")[0]
    return named if named in PROVIDERS else OPENAI


def own_key(settings: Settings, provider: str) -> SecretStr | None:
    """Return the key that is the provider's by its name."""
    return settings.openai_api_key if provider == OPENAI else settings.anthropic_api_key


def endpoint_of(settings: Settings, provider: str) -> Endpoint:
    """Return where the settings have a provider asked."""
    if provider != main_provider(settings):
        return Endpoint(key=own_key(settings, provider))
    base_url, key = settings.model_base_url, settings.model_api_key
    # A provider's own key does not go to another address.
    return Endpoint(base_url=base_url, key=key if key or base_url else own_key(settings, provider))
