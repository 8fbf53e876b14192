"""Normalisers: a tool's result becomes bounded evidence with an id, or a tool error."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest
from hypothesis import given
from pydantic import JsonValue

from tests.unit.contracts.strategies import JSON_VALUES, PROPERTY, near_objects, short
from triage.contracts.base import MAX_NAME_CHARS
from triage.contracts.canonical import canonical_json, clean
from triage.policy.tools import (
    BUILTIN_TOOLS,
    FACT_NAMES,
    MAX_LIST_ITEMS,
    MAX_RESULT_BYTES,
    Normaliser,
    NormalResult,
    ToolResultError,
    normalise_by_digest,
    normalise_issue,
    normalise_lookup,
    normalised,
)

LOOKUP: dict[str, JsonValue] = {
    "evidence_id": "owners-api",
    "owner": "backend-team",
    "allowed_labels": ["bug"],
    "policy_id": "P-1",
}


def test_a_lookup_keeps_its_own_evidence_id() -> None:
    """The source's ids stay what decisions cite; facts are the few fields that are checked."""
    assert NormalResult(
        evidence_id="owners-api",
        facts={"owner": "backend-team", "allowed_labels": ["bug"]},
        content={"owner": "backend-team", "allowed_labels": ["bug"], "policy_id": "P-1"},
    ) == normalise_lookup("lookup_component_owner", LOOKUP)


@pytest.mark.parametrize(
    ("wanted", "facts"),
    [
        (True, {"route": "feature", "review": True}),
        ("yes", {"route": "feature", "review": True}),
        (False, {"route": "feature"}),
        (None, {"route": "feature"}),
    ],
)
def test_a_policy_that_wants_a_person_says_so_in_its_facts(
    wanted: JsonValue, facts: dict[str, JsonValue]
) -> None:
    """A run is told of it whatever way it is said, and of nothing where it is not."""
    value: JsonValue = {"evidence_id": "p", "route": "feature", "review_required": wanted}
    assert facts == normalise_lookup("search_triage_policy", value).facts


def test_an_issue_that_was_read_says_which_paths_it_names() -> None:
    """They are a fact, and no text of the issue is."""
    value: JsonValue = {
        "title": "In src/a.py",
        "body": "and b/c.md <!-- d/e.py -->",
        "state": "open",
    }
    found = normalise_issue("read_issue", value)
    assert {"paths": ["src/a.py", "b/c.md"]} == found.facts
    assert {} == normalise_issue("read_issue", {"title": "It crashes", "body": ""}).facts
    assert found.evidence_id == normalise_by_digest("read_issue", value).evidence_id


@pytest.mark.parametrize("evidence_id", [None, "", 1, True, [], {}, "x" * (MAX_NAME_CHARS + 1)])
def test_a_lookup_without_a_usable_evidence_id_is_an_error(evidence_id: JsonValue) -> None:
    """Evidence that no decision could cite is a tool error."""
    with pytest.raises(ToolResultError, match="no usable evidence id"):
        normalise_lookup("t", {**LOOKUP, "evidence_id": evidence_id})


def test_a_lookup_must_name_its_evidence() -> None:
    """A result that names no evidence id at all is a tool error."""
    with pytest.raises(ToolResultError, match="no usable evidence id"):
        normalise_lookup("t", {"owner": "backend-team"})


@pytest.mark.parametrize("value", [None, True, 1, "owners-api", [], [LOOKUP]], ids=short)
def test_only_an_object_is_a_result(value: JsonValue) -> None:
    """Both normalisers refuse what is not an object."""
    for normalise in (normalise_lookup, normalise_by_digest):
        with pytest.raises(ToolResultError, match="did not return an object"):
            normalise("t", value)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_what_json_cannot_hold_is_a_tool_error(number: float) -> None:
    """A NaN from a tool is that tool's error, with no other exception in the way."""
    for normalise in (normalise_lookup, normalise_by_digest):
        with pytest.raises(ToolResultError, match="NaN"):
            normalise("t", {**LOOKUP, "score": number})


def test_other_tools_are_cited_by_digest() -> None:
    """The same content has the same id, and other content or another tool another one."""
    first = normalise_by_digest("read_note", {"text": "a"})
    assert first.evidence_id == normalise_by_digest("read_note", {"text": "a"}).evidence_id
    assert first.evidence_id != normalise_by_digest("read_note", {"text": "b"}).evidence_id
    assert first.evidence_id != normalise_by_digest("read_page", {"text": "a"}).evidence_id
    name, digest = first.evidence_id.rsplit("-", 1)
    assert ("read_note", 16) == (name, len(digest))
    assert set(digest) <= set("0123456789abcdef")


@pytest.mark.parametrize("normalise", [normalise_lookup, normalise_by_digest])
def test_results_are_size_capped(normalise: Normaliser) -> None:
    """A result of exactly the cap is kept whole, and one byte more is a tool error, not a cut."""
    room = MAX_RESULT_BYTES - len(canonical_json({"text": ""}))
    full: dict[str, JsonValue] = {"evidence_id": "e", "text": "x" * room}
    assert room == len(str(normalise("t", full).content["text"]))
    with pytest.raises(ToolResultError, match=f"more than {MAX_RESULT_BYTES} bytes"):
        normalise("t", {**full, "text": "x" * (room + 1)})


@PROPERTY
@given(near_objects(dict.fromkeys(("evidence_id", *FACT_NAMES), JSON_VALUES)))
def test_any_result_is_bounded_evidence_or_a_tool_error(value: dict[str, JsonValue]) -> None:
    """Whatever a tool returns, evidence is canonical, bounded and free of lone surrogates."""
    for normalise in (normalise_lookup, normalise_by_digest):
        try:
            result = normalise("t", value)
        except ToolResultError:
            continue
        data = canonical_json(result.content)
        assert len(data) <= MAX_RESULT_BYTES
        assert result.content == clean(result.content, "it")
        assert 0 < len(result.evidence_id) <= MAX_NAME_CHARS
        assert set(result.facts) == set(FACT_NAMES) & set(result.content)


@pytest.mark.parametrize(
    "fact",
    [
        {"owner": {"name": "x"}},
        {"owner": ""},
        {"route": 5},
        {"owner": "x" * (MAX_NAME_CHARS + 1)},
        {"allowed_labels": ["bug"] * (MAX_LIST_ITEMS + 1)},
        {"allowed_labels": [["bug"]]},
    ],
)
def test_facts_are_names_or_short_lists_of_names(fact: dict[str, JsonValue]) -> None:
    """What enters a run's history from a tool is bounded, or the result is a tool error."""
    with pytest.raises(ToolResultError, match="must be names"):
        normalise_by_digest("t", fact)


def _raising(_tool: str, _value: JsonValue) -> NormalResult:
    raise ZeroDivisionError


FOREIGN: dict[str, Normaliser] = {
    "raises": _raising,
    "gives nothing": lambda _tool, _value: cast("NormalResult", None),
    "no id": lambda _tool, _value: NormalResult("", {}, {}),
    "a long id": lambda _tool, _value: NormalResult("x" * (MAX_NAME_CHARS + 1), {}, {}),
    "an id of two lines": lambda _tool, _value: NormalResult("a\nb", {}, {}),
    "large facts": lambda _tool, _value: NormalResult("a", {"owner": "x" * MAX_RESULT_BYTES}, {}),
    "large content": lambda _tool, _value: NormalResult("a", {}, {"b": "x" * MAX_RESULT_BYTES}),
    "no JSON": lambda _tool, _value: NormalResult("a", {}, {"b": float("nan")}),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_normaliser_of_somebody_else_s_is_held_to_the_same_bounds(name: str) -> None:
    """What no history could hold, or no decision cite, is a tool error by its name."""
    spec = replace(next(iter(BUILTIN_TOOLS)), normalise=FOREIGN[name])
    with pytest.raises(ToolResultError, match=r"the normaliser|NaN"):
        normalised(spec, {"a": 1})


def test_a_good_normaliser_of_somebody_else_s_is_followed() -> None:
    """Its id, facts and content are the evidence."""
    good = NormalResult("mine-1", {"owner": "a-team"}, {"a": 1})
    spec = replace(next(iter(BUILTIN_TOOLS)), normalise=lambda _tool, _value: good)
    assert good == normalised(spec, {"a": 1})


def test_builtin_tools_keep_the_sources_ids() -> None:
    """The source document's three tools use its evidence ids."""
    by_id = [spec.name for spec in BUILTIN_TOOLS if spec.normalise is normalise_lookup]
    assert ["lookup_component_owner", "search_triage_policy", "apply_labels"] == by_id
