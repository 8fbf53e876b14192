"""From the name of a model, as options and settings give it, to an adapter.

Why it exists: a model's name comes from outside, so it is looked up in one table and never
imported. A new kind of model is one entry of `KINDS`; one behind an API is a module that says how
it is spoken to, and its lines in `SPOKEN`, `_MODULES` and `KINDS`.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Final

from pydantic import JsonValue

from triage import extensions
from triage.models.base import ModelAdapter, PaidModel
from triage.models.classifier import Classifier
from triage.models.learned import LearnedModel
from triage.models.llm_protocols import SPOKEN
from triage.models.llm_setup import ANTHROPIC, OPENAI, LlmSetup
from triage.models.recorded import RecordedModel
from triage.models.rules import RulesModel

if TYPE_CHECKING:
    from triage.models.llm import Provider

LoadScript = Callable[[str], Awaitable[Sequence[JsonValue] | None]]
"""Returns the script that is stored under a ``sha256:…`` digest, or None if there is none."""

LoadClassifier = Callable[[str], Awaitable[Classifier | None]]
"""Returns the classifier whose weights are stored under a digest, or None if there is none."""

MAX_ECHO_CHARS: Final = 60
MAX_SELF_CHARS: Final = 200
"""Of a name or a revision that a model of an extension gives itself."""
MAX_CALL: Final = timedelta(minutes=10)
"""Of the time that a model which costs something gives itself: a step is not waited for longer."""
_DIGEST = re.compile(r"(?:sha256:)?([0-9a-f]{64}|[0-9a-f]{16})")
"""Whole as people write it, abbreviated as each step of a run does."""
_WEIGHTS = re.compile(rf"{_DIGEST.pattern}(?::(.+))?")


class UnknownModel(ValueError):  # noqa: N818 - the name says what happened
    """No model goes by this name; the message says which names there are."""


class MissingScript(UnknownModel):
    """The name is that of a recorded or learned model, but what it stands for is not stored."""


class BrokenModel(UnknownModel):
    """A model of an extension cannot be made, or says of itself what cannot be carried."""


class NoKey(UnknownModel):
    """The provider of this model cannot be asked: the message says which setting is missing."""


@dataclass(frozen=True, slots=True)
class Means:
    """What models are built with: where scripts and weights are, how providers are reached."""

    load_script: LoadScript
    llm: LlmSetup
    load_classifier: LoadClassifier


@dataclass(frozen=True, slots=True)
class ModelKind:
    """A kind of model: how its name is written and how it is built.

    `build` gets what follows the colon of the name, or an empty string without one.
    """

    usage: str
    build: Callable[[str, Means], Awaitable[ModelAdapter]]


async def _rules(argument: str, _means: Means) -> ModelAdapter:
    if argument:
        raise UnknownModel("model 'rules' takes no argument")
    return RulesModel()


async def _recorded(argument: str, means: Means) -> ModelAdapter:
    match = _DIGEST.fullmatch(argument)
    if match is None:
        raise UnknownModel("model 'recorded' needs the sha256 digest of its script")
    script = await means.load_script(f"sha256:{match[1]}")
    if script is None:
        raise MissingScript("no script is stored under the digest of this recorded model")
    return RecordedModel(script)


async def _learned(argument: str, means: Means) -> ModelAdapter:
    match = _WEIGHTS.fullmatch(argument)
    if match is None:
        raise UnknownModel("model 'learned' needs the sha256 digest of its weights")
    digest, group = match.groups(default="")
    classifier = await means.load_classifier(f"sha256:{digest}")
    if classifier is None:
        raise MissingScript(
            "no weights are stored under the digest of this learned model: triage weights store"
        )
    if group and group not in classifier.weights.groups:
        raise UnknownModel("these weights have nothing of this group's own: leave it out")
    return LearnedModel(classifier, group)


async def _no_classifier(_digest: str) -> None:
    """Find no weights."""


def _behind_api(provider: str) -> Callable[[str, Means], Awaitable[ModelAdapter]]:
    async def build(argument: str, means: Means) -> ModelAdapter:
        if not argument:
            raise UnknownModel(f"model '{provider}' needs the name of a model: {provider}:NAME")
        if not means.llm.endpoint(provider).is_usable:
            raise NoKey(
                f"model '{provider}' has no key here: set TRIAGE_MODEL_API_KEY if TRIAGE_MODEL is"
                f" one of its models, else TRIAGE_{provider.upper()}_API_KEY"
            )
        # The libraries are slow to load, and most workers never ask a provider.
        from triage.models.llm import LlmModel  # noqa: PLC0415 - see above

        return LlmModel(f"{provider}:{argument}", _provider(provider), means.llm)

    return build


def _provider(name: str) -> Provider:
    """Return how a provider is spoken to."""
    from triage.models.llm import Provider  # noqa: PLC0415 - slow to load

    return Provider(SPOKEN[name].headers, import_module(_MODULES[name]).model)


_MODULES: Final = {OPENAI: "triage.models.llm_openai", ANTHROPIC: "triage.models.llm_anthropic"}
"""The module that makes a provider's models."""

KINDS: Final[dict[str, ModelKind]] = {
    "rules": ModelKind("rules", _rules),
    "recorded": ModelKind("recorded:<digest>", _recorded),
    "learned": ModelKind("learned:<digest>[:GROUP]", _learned),
    OPENAI: ModelKind("openai:NAME", _behind_api(OPENAI)),
    ANTHROPIC: ModelKind("anthropic:NAME", _behind_api(ANTHROPIC)),
}


def preload(llm: LlmSetup) -> None:
    """Load what the models that can be asked are spoken to with.

    That takes seconds, in which nothing else happens: so a worker does it before it begins.
    """
    for provider in _MODULES:
        if llm.endpoint(provider).is_usable:
            _provider(provider)


def kinds() -> dict[str, ModelKind]:
    """Return every kind of model by the name before the colon, those of extensions included."""
    added = {
        name: ModelKind(name, _added(name, make)) for name, make in extensions.models().items()
    }
    return {**KINDS, **added}


def _added(
    name: str, make: Callable[[str], ModelAdapter]
) -> Callable[[str, Means], Awaitable[ModelAdapter]]:
    async def build(argument: str, _means: Means) -> ModelAdapter:
        try:
            adapter = make(argument)
            problem = _problem_of(adapter)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - an exit of a maker included
            # What a foreign maker raises may quote anything.
            kind = type(error).__name__
            raise BrokenModel(f"model '{name}' cannot be made ({kind})") from None
        if problem:
            raise BrokenModel(f"model '{name}' {problem}")
        return adapter

    return build


def _problem_of(adapter: ModelAdapter) -> str:
    """Say what a model has of itself that no run can be held to; empty if it is usable."""
    if not _is_told(adapter):
        return "has no name and revision that can be written down"
    if isinstance(adapter, PaidModel) and not _is_time(adapter.timeout):
        return "gives a call no time, or more than ten minutes"
    return ""


def _is_told(adapter: ModelAdapter) -> bool:
    """Return whether what a model says of itself can stand in the history of every run."""
    paid = (adapter.prices, adapter.prompt) if isinstance(adapter, PaidModel) else ()
    words: tuple[object, ...] = (adapter.name, adapter.revision, *paid)
    decide: object = adapter.decide
    return all(words[:2]) and callable(decide) and all(map(_is_short, words))


def _is_time(value: object) -> bool:
    return isinstance(value, timedelta) and timedelta() < value <= MAX_CALL


def _is_short(value: object) -> bool:
    return isinstance(value, str) and len(value) <= MAX_SELF_CHARS and value.isprintable()


def known_names() -> str:
    """Return how the names of all models are written, for messages and help."""
    return ", ".join(kind.usage for kind in kinds().values())


async def build_model(
    name: str,
    *,
    load_script: LoadScript,
    llm: LlmSetup | None = None,
    load_classifier: LoadClassifier = _no_classifier,
) -> ModelAdapter:
    """Build the adapter that `name` stands for.

    Args:
        name: a kind such as ``rules``, or a kind and its argument, ``recorded:sha256:…``.
        load_script: finds the script of a recorded model.
        llm: how providers are reached; without it none can be asked.
        load_classifier: finds the classifier of a learned model.

    Raises:
        UnknownModel: the message lists the names that exist and quotes at most
            `MAX_ECHO_CHARS` printable ASCII characters of `name`.
        MissingScript: what a recorded or learned model stands for is not stored.
        NoKey: the provider's key is not set.
    """
    kind_name, colon, argument = name.partition(":")
    kind = kinds().get(kind_name)
    if kind is None or (colon and not argument):
        raise UnknownModel(f"unknown model '{_printable(name)}'; known: {known_names()}")
    return await kind.build(argument, Means(load_script, llm or LlmSetup(), load_classifier))


def _printable(name: str) -> str:
    shown = name[:MAX_ECHO_CHARS]
    return "".join(c if c.isascii() and c.isprintable() else "?" for c in shown)
