"""The request contract: exactly five fields, non-blank strings, bounded sizes."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue, ValidationError

from tests.unit.contracts.source_model import accepts_request
from tests.unit.contracts.strategies import (
    JSON_VALUES,
    PROPERTY,
    TEXTS,
    near_objects,
    short,
    text_lists,
)
from triage.contracts.base import (
    MAX_BODY_CHARS,
    MAX_PATH_CHARS,
    MAX_PATHS,
    MAX_REQUEST_ID_CHARS,
    MAX_TITLE_CHARS,
    ContractError,
)
from triage.contracts.canonical import canonical_json, parse_json
from triage.contracts.request import claimed_request_id, parse_request, run_id_of

VALID: dict[str, JsonValue] = {
    "request_id": "ISSUE-101",
    "title": "Saving fails",
    "body": "The create endpoint answers 500.",
    "changed_paths": ["backend/api.py"],
    "source": "test",
}
TEXT_FIELDS = {
    "request_id": MAX_REQUEST_ID_CHARS,
    "title": MAX_TITLE_CHARS,
    "body": MAX_BODY_CHARS,
    "source": MAX_REQUEST_ID_CHARS,
}
FIELDS = {
    **dict.fromkeys(TEXT_FIELDS, st.text(min_size=1, max_size=12)),
    "changed_paths": text_lists(TEXTS),
}
NOT_TEXT: list[JsonValue] = [None, True, 0, 1.5, [], ["x"], {}, {"text": "x"}]
BLANK = ["", " ", "\t\r\n", "\u00a0", "\u2003\u2028", "\x1f"]
NOT_PATHS: list[JsonValue] = [
    None,
    "backend/api.py",
    {},
    {"0": "a"},
    True,
    1,
    [""],
    ["a", ""],
    [None],
    [1],
    [True],
    [["a"]],
    ["a", {}],
]


def _with(**changes: JsonValue) -> dict[str, JsonValue]:
    return {**VALID, **changes}


def _accepts(value: JsonValue) -> bool:
    try:
        parse_request(value)
    except ContractError:
        return False
    return True


def test_a_valid_request_keeps_its_values() -> None:
    """Nothing is trimmed, folded or reordered; paths keep their order and duplicates."""
    value = _with(title="  Ä \x00 ", changed_paths=["b", "a", "b", " "])
    assert value == parse_request(value).model_dump(mode="json")


def test_a_request_is_frozen() -> None:
    """A request cannot change after it was checked."""
    request = parse_request(VALID)
    with pytest.raises(ValidationError, match="frozen"):
        request.title = "other"  # type: ignore[misc]  # the promise is that this fails


@pytest.mark.parametrize("field", VALID)
def test_each_field_is_required(field: str) -> None:
    """A request without one of its five fields is refused, and the field is named."""
    value = {name: item for name, item in VALID.items() if name != field}
    with pytest.raises(ContractError, match=rf"^request\.{field}: is missing$"):
        parse_request(value)


@pytest.mark.parametrize("field", ["extra", "", "run_id", "Title", "title ", "REQUEST_ID"])
def test_no_other_field_is_allowed(field: str) -> None:
    """A request with any sixth field is refused."""
    with pytest.raises(ContractError, match="unexpected field"):
        parse_request(_with(**{field: "x"}))


@pytest.mark.parametrize("value", [None, True, 1, 1.5, "", "text", [], [VALID], [[]]])
def test_only_an_object_is_a_request(value: JsonValue) -> None:
    """Anything but a JSON object is refused."""
    with pytest.raises(ContractError, match=r"^request must be a JSON object$"):
        parse_request(value)


@pytest.mark.parametrize("field", TEXT_FIELDS)
@pytest.mark.parametrize("value", NOT_TEXT, ids=short)
def test_text_fields_take_only_text(field: str, value: JsonValue) -> None:
    """A number, boolean, list or object never stands in for text."""
    with pytest.raises(ContractError, match=rf"^request\.{field}: "):
        parse_request(_with(**{field: value}))


@pytest.mark.parametrize("field", TEXT_FIELDS)
@pytest.mark.parametrize("value", BLANK, ids=short)
def test_text_fields_are_not_blank(field: str, value: str) -> None:
    """Text that only looks like something, of any white space, is refused."""
    with pytest.raises(ContractError, match=rf"^request\.{field}: .*must not be blank$"):
        parse_request(_with(**{field: value}))


@pytest.mark.parametrize(("field", "limit"), TEXT_FIELDS.items())
def test_text_fields_are_bounded(field: str, limit: int) -> None:
    """A text of exactly its limit is taken, and one more character is refused."""
    parse_request(_with(**{field: "x" * limit}))
    with pytest.raises(
        ContractError, match=rf"^request\.{field}: .* at most {limit:,} characters$"
    ):
        parse_request(_with(**{field: "x" * (limit + 1)}))


@pytest.mark.parametrize("value", NOT_PATHS, ids=short)
def test_changed_paths_is_a_list_of_non_empty_texts(value: JsonValue) -> None:
    """A wrong list, or one wrong item in it, is refused."""
    with pytest.raises(ContractError, match=r"^request\.changed_paths"):
        parse_request(_with(changed_paths=value))


@pytest.mark.parametrize(
    ("paths", "accepted"),
    [
        ([], True),
        (["a"] * MAX_PATHS, True),
        (["a"] * (MAX_PATHS + 1), False),
        (["x" * MAX_PATH_CHARS], True),
        (["x" * (MAX_PATH_CHARS + 1)], False),
    ],
    ids=["none", "most", "one too many", "longest", "too long"],
)
def test_changed_paths_are_bounded(paths: list[JsonValue], accepted: bool) -> None:
    """As many and as long paths as the limits say are taken, and none beyond."""
    assert accepted is _accepts(_with(changed_paths=paths))


def test_a_body_of_one_mebibyte_survives() -> None:
    """The largest body goes through bytes and back unharmed, whatever it is written in."""
    for character in ("x", "é", "😀", "\x00"):
        body = character * MAX_BODY_CHARS
        data = canonical_json(_with(body=body))
        assert body == parse_request(parse_json(data, "request")).body


def test_lone_surrogates_are_replaced() -> None:
    """Text that no UTF-8 document can hold is accepted with U+FFFD in its place."""
    request = parse_request(_with(title="a\ud800", changed_paths=["\udfff"]))
    assert ("a\ufffd", ("\ufffd",)) == (request.title, request.changed_paths)


def test_accepts_what_the_source_accepts() -> None:
    """On random values within our limits, exactly those pass that pass the source's program."""
    seen: Counter[bool] = Counter()

    @PROPERTY
    @given(st.one_of(near_objects(FIELDS), JSON_VALUES))
    def agrees(value: JsonValue) -> None:
        expected = accepts_request(value)
        seen[expected] += 1
        assert expected is _accepts(value)

    agrees()
    assert {True, False} == set(seen)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"request_id": "ISSUE-1"}, "ISSUE-1"),
        ({"request_id": ""}, ""),
        ({"request_id": None}, "None"),
        ({"request_id": True}, "True"),
        ({"request_id": 7}, "7"),
        ({"request_id": 1.50}, "1.5"),
        ({"request_id": [1, "a", None]}, "[1, 'a', None]"),
        ({"request_id": {"a": {}}}, "{'a': {}}"),
        ({"request_id": "x" * 300}, "x" * MAX_REQUEST_ID_CHARS),
        ({}, "invalid"),
        ({"id": "ISSUE-1"}, "invalid"),
        ([], "invalid"),
        (["request_id"], "invalid"),
        ("request_id", "invalid"),
        (None, "invalid"),
    ],
    ids=short,
)
def test_claimed_request_id(value: JsonValue, expected: str) -> None:
    """Refused input still answers under the id that it gave, as text, or under ``invalid``."""
    assert expected == claimed_request_id(value)


def test_run_id_follows_from_the_request_id() -> None:
    """The run id is deterministic."""
    assert "run-ISSUE-101" == run_id_of("ISSUE-101")
