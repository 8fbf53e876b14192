"""What a data set is run with: a model and, where they are not the built-in ones, rules."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from triage.evaluation import lending
from triage.evaluation.fixture import printable, shown
from triage.models.classifier import Classifier
from triage.models.factory import build_model
from triage.models.llm_setup import PROVIDERS, LlmSetup
from triage.policy.rules import Rules
from triage.policy.tools import BUILTIN_TOOLS
from triage.rules_place import RulesPlace
from triage.settings import Settings

DEFAULT_MODEL: Final = "rules"
RULES_SUFFIX: Final = ".toml"
KEPT: Final = (
    "model",
    "model_base_url",
    "model_api_key",
    "openai_api_key",
    "anthropic_api_key",
    "model_timeout_seconds",
    "model_max_tokens",
    "model_prices",
)
"""The settings that say how models are reached; of the others nothing changes an answer."""


class ConfigurationError(ValueError):
    """A data set cannot be run with this; the message says why."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """What the cases of a data set are run with.

    Attributes:
        model: whom every case without decisions of its own is asked of.
        rules: a rules file; None for the built-in rules.
    """

    model: str = DEFAULT_MODEL
    rules: Path | None = None

    @classmethod
    def of(cls, model: str | None, rules: Path | None) -> Self:
        """Return a configuration; without a model it is that which needs no key."""
        return cls(model or DEFAULT_MODEL, None if rules is None else rules.absolute())

    def other(self, name_or_rules: str) -> Configuration:
        """Return this configuration with another model, or other rules if a rules file is named."""
        if name_or_rules.endswith(RULES_SUFFIX):
            return Configuration(self.model, Path(name_or_rules).absolute())
        return Configuration(name_or_rules, self.rules)

    @property
    def name(self) -> str:
        """How reports name it: without the folder of the rules, which is one machine's."""
        rules = "" if self.rules is None else f" under {self.rules.name}"
        return printable(f"{self.model}{rules}")

    @property
    def asks_a_provider(self) -> bool:
        """Whether each decision is a call over the network, or of a model on this machine."""
        return self.model.partition(":")[0] in PROVIDERS

    async def check(self, settings: Settings) -> None:
        """See before anything is started that the model and the rules are there.

        Raises:
            UnknownModel: no model goes by the name, or it cannot be asked.
            RulesFileError: the rules cannot be used.
            ConfigurationError: it names recorded decisions, which are in the data set or nowhere,
                or weights that are not stored.
            StorageError: the database that has weights cannot be used.
        """
        if self.model.partition(":")[0] == "recorded":
            raise ConfigurationError(
                "recorded decisions come from the data set: name another model"
            )
        if self.rules is not None and not self.rules.is_file():
            raise ConfigurationError(f"{shown(self.rules)}: no such file")
        rules, lent = self.written(), await self.lent(settings)

        async def classifier(digest: str) -> Classifier | None:
            return lending.classifier_of(lent.get(digest))

        for model in self._models(rules):
            await build_model(
                model,
                load_script=_no_script,
                llm=LlmSetup.of(settings),
                load_classifier=classifier,
            )
        if rules and rules.second_opinion and await classifier(rules.second_opinion) is None:
            raise ConfigurationError("the weights of the rules' second opinion are not stored")

    def written(self) -> Rules | None:
        """Return the rules that are named.

        Raises:
            RulesFileError: they cannot be used.
        """
        return None if self.rules is None else RulesPlace(self.rules).read(BUILTIN_TOOLS).rules

    async def lent(self, settings: Settings) -> dict[str, bytes]:
        """Return the weights that it needs, from the user's database.

        Raises:
            StorageError: that cannot be used.
        """
        rules = self.written()
        return await lending.lend(settings, lending.wanted(self._models(rules), rules))

    def _models(self, rules: Rules | None) -> tuple[str, ...]:
        return (self.model, *(rules.fallback_models if rules else ()))

    def kept(self, settings: Settings) -> dict[str, object]:
        """Return the settings that its worker needs beside those that every evaluation has."""
        return {**{name: getattr(settings, name) for name in KEPT}, "policy": self.rules}


async def _no_script(_digest: str) -> None:
    return None
