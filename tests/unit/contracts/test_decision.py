"""The decision contract: three exact shapes and nothing else."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from tests.unit.contracts.source_model import LABELS, ROUTES, accepts_decision
from tests.unit.contracts.strategies import (
    JSON_VALUES,
    KEYS,
    PROPERTY,
    TEXTS,
    near_objects,
    short,
    text_lists,
)
from triage.contracts.base import MAX_NAME_CHARS, ContractError
from triage.contracts.decision import (
    MAX_DECISION_BYTES,
    MAX_ITEMS,
    CallTool,
    Decision,
    FinalAnswer,
    RequestReview,
    parse_decision,
)

TOOL: dict[str, JsonValue] = {
    "call_id": "call-1",
    "name": "lookup_component_owner",
    "arguments": {"path": "backend/api.py"},
    "operation_id": None,
}
CALL: dict[str, JsonValue] = {"kind": "call_tool", "tool": TOOL}
REVIEW: dict[str, JsonValue] = {
    "kind": "request_review",
    "route": "security_review",
    "reason": "Not for a machine.",
    "evidence_ids": ["policy-security"],
}
FINAL: dict[str, JsonValue] = {
    "kind": "final",
    "route": "bug",
    "labels": ["component:api", "bug", "bug"],
    "owner": "backend-team",
    "evidence_ids": ["owners-api"],
    "reason": "The map says so.",
}
SHAPES = {"call_tool": CALL, "request_review": REVIEW, "final": FINAL}

NOT_TEXT: list[JsonValue] = [None, True, 0, 1.5, [], {}, ["x"], ""]
NOT_TEXTS: list[JsonValue] = [None, True, 0, "bug", {}, [None], [1], [""], ["bug", ""], [["bug"]]]
WRONG: list[tuple[str, str, list[JsonValue]]] = [
    ("call_tool", "tool", [None, True, 1, "tool", [], [TOOL], {}]),
    ("request_review", "route", [*NOT_TEXT, "Bug", "bug ", "unknown"]),
    ("request_review", "reason", NOT_TEXT),
    ("request_review", "evidence_ids", NOT_TEXTS),
    ("final", "route", [*NOT_TEXT, "security", "unknown"]),
    ("final", "labels", [*NOT_TEXTS, ["automerge"], ["bug", "component:API"]]),
    ("final", "owner", NOT_TEXT),
    ("final", "evidence_ids", NOT_TEXTS),
    ("final", "reason", NOT_TEXT),
]
WRONG_TOOL: list[tuple[str, list[JsonValue]]] = [
    ("call_id", NOT_TEXT),
    ("name", NOT_TEXT),
    ("arguments", [None, True, 1, "path", [], ["path"]]),
    ("operation_id", [True, 0, 1.5, [], {}]),
]

_texts = st.text(min_size=1, max_size=8)
_tool = near_objects(
    {
        "call_id": _texts,
        "name": _texts,
        "arguments": st.dictionaries(KEYS, JSON_VALUES, max_size=2),
        "operation_id": st.one_of(st.none(), TEXTS),
    }
)
_routes = st.sampled_from([*sorted(ROUTES), "unknown"])
_labels = text_lists(st.sampled_from([*sorted(LABELS), "automerge"]))
_evidence = text_lists(TEXTS)
DECISIONS = st.one_of(
    near_objects({"kind": st.just("call_tool"), "tool": _tool}),
    near_objects(
        {
            "kind": st.just("request_review"),
            "route": _routes,
            "reason": _texts,
            "evidence_ids": _evidence,
        }
    ),
    near_objects(
        {
            "kind": st.just("final"),
            "route": _routes,
            "labels": _labels,
            "owner": _texts,
            "evidence_ids": _evidence,
            "reason": _texts,
        }
    ),
)


def _parse(value: JsonValue) -> Decision:
    return parse_decision(value, routes=ROUTES, labels=LABELS)


def _accepts(value: JsonValue) -> bool:
    try:
        _parse(value)
    except ContractError:
        return False
    return True


def _with_tool(**changes: JsonValue) -> dict[str, JsonValue]:
    return {**CALL, "tool": {**TOOL, **changes}}


@pytest.mark.parametrize(
    ("value", "shape"), [(CALL, CallTool), (REVIEW, RequestReview), (FINAL, FinalAnswer)]
)
def test_each_kind_is_its_own_type(value: dict[str, JsonValue], shape: type[Decision]) -> None:
    """The three shapes are read as they are, with lists in their order and duplicates kept."""
    decision = _parse(value)
    assert type(decision) is shape
    assert value == decision.model_dump(mode="json")


@pytest.mark.parametrize(
    ("kind", "field"), [(kind, field) for kind in SHAPES for field in SHAPES[kind]]
)
def test_each_field_is_required(kind: str, field: str) -> None:
    """A decision without one of its fields is no decision."""
    value = {name: item for name, item in SHAPES[kind].items() if name != field}
    with pytest.raises(ContractError, match=rf"^decision\.{field}"):
        _parse(value)


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize(
    "field", ["extra", "", "confidence", "Kind", "tool", "owner", "labels", "route", "reason"]
)
def test_no_other_field_is_allowed(kind: str, field: str) -> None:
    """A decision with a field of another shape, or of none, is no decision."""
    if field not in SHAPES[kind]:
        with pytest.raises(ContractError, match="unexpected field"):
            _parse({**SHAPES[kind], field: None})


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [(kind, field, value) for kind, field, values in WRONG for value in values],
    ids=short,
)
def test_wrong_values_are_refused(kind: str, field: str, value: JsonValue) -> None:
    """A wrong type, an empty text, an unknown route or label is refused, and the field named."""
    with pytest.raises(ContractError, match=rf"^decision\.{field}"):
        _parse({**SHAPES[kind], field: value})


@pytest.mark.parametrize(
    ("field", "value"),
    [(field, value) for field, values in WRONG_TOOL for value in values],
    ids=short,
)
def test_wrong_tool_values_are_refused(field: str, value: JsonValue) -> None:
    """A tool call is as exact as the decision around it."""
    with pytest.raises(ContractError, match=rf"^decision\.tool\.{field}"):
        _parse(_with_tool(**{field: value}))


@pytest.mark.parametrize("field", TOOL)
def test_each_tool_field_is_required(field: str) -> None:
    """A tool call names all four fields, its operation id too where there is none."""
    tool = {name: item for name, item in TOOL.items() if name != field}
    with pytest.raises(ContractError, match=rf"^decision\.tool\.{field}: is missing$"):
        _parse({"kind": "call_tool", "tool": tool})


def test_no_other_tool_field_is_allowed() -> None:
    """A tool call cannot carry anything beside its four fields."""
    with pytest.raises(ContractError, match="unexpected field"):
        _parse(_with_tool(approved=True))


@pytest.mark.parametrize("operation_id", [None, "", "op-105"])
def test_operation_id_is_text_or_null(operation_id: str | None) -> None:
    """An operation id may be null or any text, as in the source; the gate judges it later."""
    decision = _parse(_with_tool(operation_id=operation_id))
    assert isinstance(decision, CallTool)
    assert operation_id == decision.tool.operation_id


@pytest.mark.parametrize(
    "value",
    [None, True, 1, "final", [], [CALL], {}, {"kind": None}, {"kind": ["final"]}, {"kind": 1}]
    + [{**FINAL, "kind": kind} for kind in ("", "Final", "finish", "final ", "CALL_TOOL")],
    ids=short,
)
def test_what_names_no_kind_is_no_decision(value: JsonValue) -> None:
    """Without one of the three kinds there is no decision."""
    with pytest.raises(
        ContractError, match=r"^decision\.kind must be one of call_tool, request_review, final$"
    ):
        _parse(value)


def test_empty_lists_are_a_matter_of_policy() -> None:
    """A decision may cite nothing and propose no label; grounding is checked after the shape."""
    decision = _parse({**FINAL, "labels": [], "evidence_ids": []})
    assert isinstance(decision, FinalAnswer)
    assert ((), ()) == (decision.labels, decision.evidence_ids)


@pytest.mark.parametrize(
    ("accepted", "value"),
    [
        (True, _with_tool(name="x" * MAX_NAME_CHARS)),
        (False, _with_tool(name="x" * (MAX_NAME_CHARS + 1))),
        (True, _with_tool(operation_id="x" * 200)),
        (False, _with_tool(operation_id="x" * 201)),
        (True, {**FINAL, "evidence_ids": ["e"] * MAX_ITEMS}),
        (False, {**FINAL, "evidence_ids": ["e"] * (MAX_ITEMS + 1)}),
        (True, {**REVIEW, "reason": "x" * (MAX_DECISION_BYTES - 200)}),
        (False, {**REVIEW, "reason": "x" * MAX_DECISION_BYTES}),
        (False, _with_tool(arguments={"path": "x" * MAX_DECISION_BYTES})),
    ],
    ids=short,
)
def test_sizes_are_bounded(accepted: bool, value: JsonValue) -> None:
    """Names, lists and the whole decision are taken up to their limits, and not beyond."""
    assert accepted is _accepts(value)


def test_the_whole_decision_may_have_just_its_limit() -> None:
    """The size limit counts canonical bytes: the last that fits is taken, the next is not."""
    empty = len('{"evidence_ids":[],"kind":"request_review","reason":"","route":"bug"}')
    base: dict[str, JsonValue] = {"kind": "request_review", "route": "bug", "evidence_ids": []}
    room = MAX_DECISION_BYTES - empty
    assert _accepts({**base, "reason": "x" * room})
    assert not _accepts({**base, "reason": "x" * (room + 1)})


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_json_cannot_hold_are_refused(number: float) -> None:
    """A decoded NaN or infinity is an invalid decision, never an error of the loop."""
    with pytest.raises(ContractError, match="NaN and infinity"):
        _parse(_with_tool(arguments={"path": number}))


def test_lone_surrogates_are_replaced() -> None:
    """Text that no UTF-8 document can hold does not reach the state."""
    decision = _parse({**REVIEW, "reason": "\ud800"})
    assert isinstance(decision, RequestReview)
    assert "\ufffd" == decision.reason


def test_routes_and_labels_are_those_of_the_run() -> None:
    """A decision is held to the pinned routes and labels, not to the built-in ones."""
    with pytest.raises(ContractError, match=r"^decision\.route is not a known route$"):
        parse_decision(FINAL, routes=frozenset({"other"}), labels=LABELS)
    with pytest.raises(ContractError, match=r"^decision\.labels"):
        parse_decision(FINAL, routes=ROUTES, labels=frozenset({"bug"}))


def test_accepts_what_the_source_accepts() -> None:
    """On random values within our limits, exactly those pass that pass the source's program."""
    seen: Counter[bool] = Counter()

    @PROPERTY
    @given(st.one_of(DECISIONS, JSON_VALUES))
    def agrees(value: JsonValue) -> None:
        expected = accepts_decision(value)
        seen[expected] += 1
        assert expected is _accepts(value)

    agrees()
    assert {True, False} == set(seen)
