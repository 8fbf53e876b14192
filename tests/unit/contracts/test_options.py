"""The options of a run: all optional, each exactly its own type, unknown ones refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from pydantic import JsonValue

from tests.unit.contracts.strategies import JSON_VALUES, PROPERTY, near_objects, short
from triage.contracts.base import MAX_NAME_CHARS, MAX_REQUEST_ID_CHARS, ContractError
from triage.contracts.options import (
    MAX_STEPS_LIMIT,
    MAX_WINDOW_SECONDS,
    MODES,
    Grounding,
    Mode,
    RunOptions,
    abbreviated_name,
    parse_options,
)

DIGEST = "recorded:" + "0" * 64
NOT_COUNTS: list[JsonValue] = [True, False, 1.0, 1.5, "3", "", [], {}, -1]
NOT_TEXT: list[JsonValue] = [True, 1, 1.5, [], {}, ""]
GOOD: dict[str, list[JsonValue]] = {
    "max_steps": [None, 0, 1, MAX_STEPS_LIMIT],
    "max_model_retries": [None, 0, MAX_STEPS_LIMIT],
    "model": [None, "rules", "recorded", DIGEST, "openai:gpt-4.1", "openai:org/model:7b", "a_b-c9"],
    "mode": [None, "shadow", "suggest", "approve"],
    "approval_window_seconds": [None, 0, 1, MAX_WINDOW_SECONDS],
    "permitted_effects": [None, [], ["apply_labels"], ["unheard_of"], ["e"] * 100],
    "approvals": [{}, {"op-1": 0}, {"op-1": 3, "": 6}, {"o" * MAX_NAME_CHARS: 2**53}],
    "grounding": [None, "cited", "entailed"],
    "continued_from": [None],
}
BAD: dict[str, list[JsonValue]] = {
    "max_steps": [*NOT_COUNTS, MAX_STEPS_LIMIT + 1, 10**400],
    "max_model_retries": [*NOT_COUNTS, MAX_STEPS_LIMIT + 1],
    "model": [*NOT_TEXT, "Rules", "rules ", "rules\n", "rules:", ":x", "9a", "a:b c", "a:\u00e9"],
    "mode": [*NOT_TEXT, "Shadow", "yolo", "approve "],
    "approval_window_seconds": [*NOT_COUNTS, MAX_WINDOW_SECONDS + 1],
    "permitted_effects": [True, 1, "apply_labels", {}, [""], [1], [None], [[]], ["e"] * 101],
    "approvals": [
        None,
        True,
        [],
        "op-1",
        {"op-1": True},
        {"op-1": None},
        {"op-1": "3"},
        {"op-1": 3.0},
        {"op-1": -1},
        {"op-1": 2**53 + 1},
        {"o" * (MAX_NAME_CHARS + 1): 3},
        {f"op-{number}": 3 for number in range(101)},
    ],
    "grounding": [*NOT_TEXT, "none", "CITED"],
    "budget": [None, True, 1, [], "x"],
    "context": [None, True, 1, [], "x"],
    "continued_from": [True, "", "triage-ISSUE-101", {}, 0],
}
BUDGETS = ("tokens", "cost_micros", "seconds", "evidence_bytes")
CONTEXT_TEXTS = {
    "tenant": MAX_NAME_CHARS,
    "tracker": MAX_NAME_CHARS,
    "repository": MAX_NAME_CHARS,
    "issue": MAX_REQUEST_ID_CHARS,
    "author": MAX_NAME_CHARS,
}


@pytest.mark.parametrize("value", [None, {}])
def test_no_options_are_the_defaults(value: JsonValue) -> None:
    """Null and an empty object both stand for a run that its policy alone decides."""
    options = parse_options(value)
    assert RunOptions() == options
    assert {} == options.approvals
    assert ("default", None, "local", None, None) == (
        options.context.tenant,
        options.context.tracker,
        options.context.repository,
        options.context.issue,
        options.context.author,
    )


@pytest.mark.parametrize("value", [True, 0, 1.5, "", "shadow", [], [{}]])
def test_only_an_object_or_null_holds_options(value: JsonValue) -> None:
    """Anything else in the place of options is refused."""
    with pytest.raises(ContractError, match=r"^options must be a JSON object$"):
        parse_options(value)


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name, values in GOOD.items() for value in values],
    ids=short,
)
def test_each_option_takes_its_own_values(name: str, value: JsonValue) -> None:
    """Every option alone is taken, keeps its value and leaves the others at their defaults."""
    options = parse_options({name: value}).model_dump(mode="json")
    assert {**RunOptions().model_dump(mode="json"), name: value} == options


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name, values in BAD.items() for value in values],
    ids=short,
)
def test_each_option_refuses_other_values(name: str, value: JsonValue) -> None:
    """A boolean is no number, a text no list, and nothing beyond a limit is cut to fit."""
    with pytest.raises(ContractError, match=rf"^options\.{name}"):
        parse_options({name: value})


@pytest.mark.parametrize("name", BUDGETS)
def test_each_budget_is_a_count_or_absent(name: str) -> None:
    """A budget is a whole number from zero up, or null; booleans and fractions are refused."""
    for good in (None, 0, 1, 2**53):
        assert good == getattr(parse_options({"budget": {name: good}}).budget, name)
    for bad in (*NOT_COUNTS, 2**53 + 1):
        with pytest.raises(ContractError, match=rf"^options\.budget\.{name}: "):
            parse_options({"budget": {name: bad}})


@pytest.mark.parametrize(("name", "limit"), CONTEXT_TEXTS.items())
def test_each_part_of_the_context_is_bounded_text(name: str, limit: int) -> None:
    """What admission says of an issue is text from one character up to its limit."""
    good = "x" * limit
    assert good == getattr(parse_options({"context": {name: good}}).context, name)
    for bad in (*NOT_TEXT, "x" * (limit + 1)):
        with pytest.raises(ContractError, match=rf"^options\.context\.{name}: "):
            parse_options({"context": {name: bad}})


@pytest.mark.parametrize(
    "value",
    [
        {"steps": 3},
        {"": 1},
        {"max_steps ": 3},
        {"Mode": "shadow"},
        {"propose_on_final": True},
        {"local_trust": True},
        {"budget": {"usd": 1}},
        {"context": {"local_trust": True}},
    ],
)
def test_unknown_options_are_refused(value: JsonValue) -> None:
    """A misspelt option, or one that a caller may not set, stops the run before it starts."""
    with pytest.raises(ContractError, match="unexpected field"):
        parse_options(value)


@pytest.mark.parametrize(
    ("mode", "effects", "window_seconds", "propose"),
    [
        (Mode.SHADOW, (), 0, False),
        (Mode.SUGGEST, ("apply_labels",), 0, False),
        (Mode.APPROVE, ("apply_labels",), 72 * 3600, True),
    ],
)
def test_modes_are_values_of_three_options(
    mode: Mode, effects: tuple[str, ...], window_seconds: int, propose: bool
) -> None:
    """Each mode stands for exactly the effects, window and proposal that the design lists."""
    values = MODES[mode]
    assert (effects, window_seconds, propose) == (
        values.permitted_effects,
        values.approval_window_seconds,
        values.propose_on_final,
    )
    assert set(Mode) == set(MODES)


def test_names_of_grounding_are_public() -> None:
    """People write these two words in options and rules."""
    assert ["cited", "entailed"] == [grounding.value for grounding in Grounding]


@PROPERTY
@given(near_objects(dict.fromkeys(GOOD, JSON_VALUES)))
def test_any_json_is_options_or_a_contract_error(value: JsonValue) -> None:
    """No JSON value makes the parser fail in another way, and what passes reads back the same."""
    try:
        options = parse_options(value)
    except ContractError:
        return
    assert options == parse_options(options.model_dump(mode="json"))


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("rules", "rules"),
        (f"recorded:sha256:{'ab' * 32}", f"recorded:{'ab' * 8}"),
        (f"learned:sha256:{'ab' * 32}:o/r", f"learned:{'ab' * 8}:o/r"),
        (f"openai:m@sha256:{'ab' * 32}", f"openai:m@sha256:{'ab' * 32}"),
        (f"x-own:recorded:sha256:{'ab' * 32}", f"x-own:recorded:sha256:{'ab' * 32}"),
        (f"recorded:sha256:{'ab' * 33}", f"recorded:sha256:{'ab' * 33}"),
    ],
)
def test_only_digests_of_ours_are_abbreviated(name: str, short: str) -> None:
    """A step names a script or weights by 16 digits; another provider's name stays whole."""
    assert short == abbreviated_name(name)
