"""Checks that people are told what is wrong in our words, whatever the validator's own are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, get_args

import pytest
from pydantic import JsonValue, ValidationError
from pydantic_core.core_schema import ErrorType

from triage.contracts import wording
from triage.contracts.approval import Review
from triage.contracts.base import MAX_PROBLEMS, Contract, ContractError, explain
from triage.contracts.canonical import canonical_json
from triage.contracts.incident import Incident
from triage.contracts.options import RunOptions, parse_options
from triage.contracts.request import TriageRequest, parse_request

MODELS: Final = (TriageRequest, RunOptions, Review, Incident)
TEXTS: Final[tuple[JsonValue, ...]] = ("", " ", "x", "x" * 10_000)
NUMBERS: Final[tuple[JsonValue, ...]] = (None, True, 1, -1, 1.5, 2**60)
LISTS: Final[tuple[list[JsonValue], ...]] = ([], [""], [1], ["a"] * 4_000)
OBJECTS: Final[tuple[dict[str, JsonValue], ...]] = ({}, {"a": 1}, {"a": {"b": 1}})
JUNK: Final[tuple[JsonValue, ...]] = (*TEXTS, *NUMBERS, *LISTS, *OBJECTS)
THEIRS: Final = re.compile(
    r"Input|Field required|Value error|[Ss]tring|valid|instance|should|\d+ more"
)


def _told(model: type[Contract]) -> Iterator[str]:
    """Yield what is said about each junk value in each field."""
    for field in model.model_fields:
        for value in JUNK:
            try:
                model.model_validate_json(canonical_json({field: value}))
            except ValidationError as error:
                yield explain(error, "it", model)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_no_wording_of_the_validator_shows(model: type[Contract]) -> None:
    """Whatever is wrong has words of ours, and none of theirs."""
    told = {line for message in _told(model) for line in message.split("; ")}
    assert told
    assert [] == [line for line in told if THEIRS.search(line) or wording._OTHERWISE in line]


def test_the_kinds_are_real() -> None:
    """No line of the table is for a kind of problem that does not exist."""
    # Raised by pydantic's own validator of paths, which is not among the core's.
    added = {"path_type"}
    assert set() == set(wording._WORDS) - set(get_args(ErrorType)) - added


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_steps": True}, "options.max_steps: must be a whole number"),
        ({"max_steps": 101}, "options.max_steps: must be at most 100"),
        ({"mode": "reckless"}, "options.mode: must be shadow, suggest or approve"),
        ({"model": "GPT"}, "options.model: does not have the form that it must have"),
        ({"context": {"issue": ""}}, "options.context.issue: must not be empty"),
        ({"budget": 3}, "options.budget: must be an object"),
        ({"other": 1}, "options.*: unexpected field"),
    ],
    ids=str,
)
def test_what_is_wrong_is_said_plainly(options: JsonValue, message: str) -> None:
    """A message names the field and what it must be."""
    with pytest.raises(ContractError) as caught:
        parse_options(options)
    assert message == str(caught.value)


def test_every_problem_is_named() -> None:
    """Whoever left out several fields is told of each of them, in one line."""
    with pytest.raises(ContractError) as caught:
        parse_request({"request_id": "R-1", "title": " "})
    assert (
        "request.title: must not be blank; request.body: is missing; "
        "request.changed_paths: is missing; request.source: is missing"
    ) == str(caught.value)


def test_of_many_problems_the_first_are_named() -> None:
    """A file that is wrong throughout does not fill the screen."""
    paths: list[JsonValue] = [""] * 2_000
    texts = {"request_id": "R", "title": "T", "body": "B", "source": "S"}
    with pytest.raises(ContractError) as caught:
        parse_request({**texts, "changed_paths": paths})
    named = str(caught.value).split("; ")
    assert (MAX_PROBLEMS + 1, "problems in all: 2000") == (len(named), named[-1])
    assert "request.changed_paths.0: must not be empty" == named[0]
