"""Promises of the model factory: one table of kinds, and errors that say what exists."""

import asyncio
from collections.abc import Sequence

import pytest
from pydantic import JsonValue

from triage.contracts.canonical import digest_of
from triage.models.base import ModelAdapter
from triage.models.factory import (
    KINDS,
    MissingScript,
    UnknownModel,
    build_model,
    known_names,
)

SCRIPT: list[JsonValue] = [{"error": "model_timeout"}]
DIGEST = digest_of(SCRIPT)


async def _load(digest: str) -> Sequence[JsonValue] | None:
    return SCRIPT if digest == DIGEST else None


def _build(name: str) -> ModelAdapter:
    return asyncio.run(build_model(name, load_script=_load))


def test_rules_needs_nothing() -> None:
    """The default model is built from its name alone."""
    assert "rules" == _build("rules").name


@pytest.mark.parametrize("digest", [DIGEST, DIGEST.removeprefix("sha256:")])
def test_a_recorded_model_is_named_by_its_script(digest: str) -> None:
    """The digest is accepted as stored and without its prefix."""
    model = _build(f"recorded:{digest}")
    assert ("recorded", DIGEST) == (model.name, model.revision)


def test_a_script_that_is_not_stored_is_said_so() -> None:
    """A missing script is told apart from an unknown name, and is one as well."""
    with pytest.raises(MissingScript):
        _build(f"recorded:sha256:{'0' * 64}")
    assert issubclass(MissingScript, UnknownModel)


@pytest.mark.parametrize(
    "name",
    ["", "Rules", "rules:", "rules:x", "recorded", "recorded:", "recorded:sha256:12", "os.system"],
)
def test_any_other_name_is_refused(name: str) -> None:
    """Only names in the table build anything."""
    with pytest.raises(UnknownModel):
        _build(name)


def test_the_refusal_lists_what_there_is_and_quotes_little() -> None:
    """A person learns the names that work, and a hostile name cannot reach a terminal."""
    with pytest.raises(UnknownModel) as caught:
        _build("\x1b[31m" + "ü" * 10 + "x" * 5_000)
    message = str(caught.value)
    assert "known: rules, recorded:<digest>" in message
    assert message.isascii()
    assert message.isprintable()
    assert len(message) < 60 + 120


def test_help_names_every_kind() -> None:
    """A registered kind shows up in help and messages by itself."""
    assert [kind.usage for kind in KINDS.values()] == known_names().split(", ")
