"""From the name of a model, as options and settings give it, to an adapter.

Why it exists: a model's name comes from outside, so it is looked up in one table and never
imported. A new kind of model is one entry of `KINDS`.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from triage.models.base import ModelAdapter
from triage.models.recorded import RecordedModel
from triage.models.rules import RulesModel

LoadScript = Callable[[str], Awaitable[Sequence[JsonValue] | None]]
"""Returns the script that is stored under a ``sha256:…`` digest, or None if there is none."""

MAX_ECHO_CHARS: Final = 60
_DIGEST = re.compile(r"(?:sha256:)?([0-9a-f]{64})")


class UnknownModel(ValueError):  # noqa: N818 - the name says what happened
    """No model goes by this name; the message says which names there are."""


class MissingScript(UnknownModel):
    """The name is that of a recorded model, but its script is not stored."""


@dataclass(frozen=True, slots=True)
class ModelKind:
    """A kind of model: how its name is written and how it is built.

    `build` gets what follows the colon of the name, or an empty string without one.
    """

    usage: str
    build: Callable[[str, LoadScript], Awaitable[ModelAdapter]]


async def _rules(argument: str, _load_script: LoadScript) -> ModelAdapter:
    if argument:
        raise UnknownModel("model 'rules' takes no argument")
    return RulesModel()


async def _recorded(argument: str, load_script: LoadScript) -> ModelAdapter:
    match = _DIGEST.fullmatch(argument)
    if match is None:
        raise UnknownModel("model 'recorded' needs the sha256 digest of its script")
    script = await load_script(f"sha256:{match[1]}")
    if script is None:
        raise MissingScript("no script is stored under the digest of this recorded model")
    return RecordedModel(script)


KINDS: Final[dict[str, ModelKind]] = {
    "rules": ModelKind("rules", _rules),
    "recorded": ModelKind("recorded:<digest>", _recorded),
}


def known_names() -> str:
    """Return how the names of all models are written, for messages and help."""
    return ", ".join(kind.usage for kind in KINDS.values())


async def build_model(name: str, *, load_script: LoadScript) -> ModelAdapter:
    """Build the adapter that `name` stands for.

    Args:
        name: a kind such as ``rules``, or a kind and its argument, ``recorded:sha256:…``.
        load_script: finds the script of a recorded model.

    Raises:
        UnknownModel: the message lists the names that exist and quotes at most
            `MAX_ECHO_CHARS` printable ASCII characters of `name`.
        MissingScript: the script of a recorded model is not stored.
    """
    kind_name, colon, argument = name.partition(":")
    kind = KINDS.get(kind_name)
    if kind is None or (colon and not argument):
        raise UnknownModel(f"unknown model '{_printable(name)}'; known: {known_names()}")
    return await kind.build(argument, load_script)


def _printable(name: str) -> str:
    shown = name[:MAX_ECHO_CHARS]
    return "".join(c if c.isascii() and c.isprintable() else "?" for c in shown)
