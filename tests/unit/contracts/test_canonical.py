"""Canonical JSON, digests and the strict reader."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from tests.unit.contracts.strategies import JSON_VALUES, PROPERTY, json_values
from triage.contracts.base import ContractError
from triage.contracts.canonical import (
    MAX_DEPTH,
    canonical_json,
    clean,
    clean_text,
    digest_of,
    digest_of_bytes,
    parse_json,
    short_hash,
)

# Digests are stored and signed, so the canonical form may never drift.
PINNED: list[tuple[JsonValue, bytes, str]] = [
    (
        {},
        b"{}",
        "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
    ),
    (
        {"b": [1, True, None], "a": "é"},
        rb'{"a":"\u00e9","b":[1,true,null]}',
        "sha256:fd794d605169756a311c518616825d158b8601f9ff8ff687f57bf810dcf7017f",
    ),
    (
        ["apply_labels", {"tracker": "local", "issue": "ISSUE-105"}, ["bug"]],
        b'["apply_labels",{"issue":"ISSUE-105","tracker":"local"},["bug"]]',
        "sha256:e2818ea6715fed0fb90f22738ba4b4fe910ee58a585ff33a8223d4f0c7df9586",
    ),
    (
        ["\ud800", 1.5, 10**20, "\x00"],
        rb'["\ud800",1.5,100000000000000000000,"\u0000"]',
        "sha256:645052fb52a881ac3cf78f27e4cadcac7e3cc8dede6dd2d590c3b7a62d8f7399",
    ),
]
REFUSED = {
    "empty": b"",
    "blank": b"  ",
    "cut short": b'{"a": 1',
    "two documents": b"{} {}",
    "single quotes": b"{'a': 1}",
    "trailing comma": b"[1,]",
    "comment": b"[1] // x",
    "raw control character": b'"\x00"',
    "duplicate key": b'{"a": 1, "a": 1}',
    "duplicate key inside": b'[{"a": {"b": 1, "c": 2, "b": 3}}]',
    "duplicate key by escape": rb'{"a": 1, "\u0061": 2}',
    "keys that only lone surrogates tell apart": rb'{"\ud800": 1, "\ud801": 2}',
    "NaN": b"[NaN]",
    "Infinity": b"Infinity",
    "-Infinity": b'{"a": -Infinity}',
    "a number beyond the floats": b"[1e999]",
    "a number below the floats": b"-1e999",
    "a number too long to read": b"1" * 5_000,
    "not UTF-8": b'"\xff"',
    "an overlong encoding": b'"\xc0\x80"',
    "an encoded surrogate": b'"\xed\xa0\x80"',
    "UTF-16": '{"a": 1}'.encode("utf-16"),
    "UTF-16 without a mark": '{"a": 1}'.encode("utf-16-le"),
    "UTF-32": '{"a": 1}'.encode("utf-32"),
    "two byte order marks": b"\xef\xbb\xbf" * 2 + b"1",
}
READ: dict[str, tuple[bytes, JsonValue]] = {
    "blanks around": (b" \r\n\t1 ", 1),
    "a byte order mark": (b'\xef\xbb\xbf{"a":1}', {"a": 1}),
    "an escaped NUL": (rb'"\u0000"', "\x00"),
    "an escaped pair": (rb'"\ud83d\ude00"', "😀"),
    "an escaped lone high surrogate": (rb'"a\ud800b"', "a\ufffdb"),
    "an escaped lone low surrogate": (rb'["\udc00"]', ["\ufffd"]),
    "a surrogate in a key": (rb'{"\ud800": 1}', {"\ufffd": 1}),
    "an integer beyond 64 bits": (b"1" + b"0" * 400, 10**400),
    "raw UTF-8": ('"é😀"'.encode(), "é😀"),
    "a tiny number": (b"1e-999", 0.0),
}


@pytest.mark.parametrize(("value", "data", "digest"), PINNED)
def test_canonical_form_and_digest_are_pinned(value: JsonValue, data: bytes, digest: str) -> None:
    """A document keeps its canonical bytes and its digest for ever."""
    assert data == canonical_json(value)
    assert digest == digest_of(value)
    assert digest == digest_of_bytes(data)


@PROPERTY
@given(JSON_VALUES)
def test_canonical_json_reads_back_as_the_same_value(value: JsonValue) -> None:
    """Reading a canonical document gives the value that was written, and writing it its bytes."""
    data = canonical_json(value)
    again = json.loads(data)
    assert value == again
    assert data == canonical_json(again)
    assert data.isascii()


@PROPERTY
@given(st.dictionaries(st.text(max_size=5), JSON_VALUES, max_size=6), st.randoms())
def test_key_order_does_not_matter(value: dict[str, JsonValue], shuffler: random.Random) -> None:
    """Two objects that differ only in the order of their keys have one digest."""
    keys = list(value)
    shuffler.shuffle(keys)
    assert digest_of(value) == digest_of({key: value[key] for key in keys})


def test_types_stay_apart() -> None:
    """A number, its text, a boolean and null never share a digest, equal as Python finds them."""
    values: list[JsonValue] = [1, 1.0, True, "1", None, "null", [], {}, "", 0, False, [1], ["1"]]
    assert len(values) == len({digest_of(value) for value in values})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), [float("nan")]])
def test_what_json_cannot_hold_has_no_canonical_form(value: JsonValue) -> None:
    """NaN and the infinities are refused, so no digest stands for them."""
    with pytest.raises(ValueError, match="JSON"):
        canonical_json(value)


@pytest.mark.parametrize("data", REFUSED.values(), ids=REFUSED)
def test_strict_reader_refuses(data: bytes) -> None:
    """Whatever two JSON readers could read differently is refused, as a contract error."""
    with pytest.raises(ContractError, match=r"^the document"):
        parse_json(data, "the document")


@pytest.mark.parametrize(("data", "value"), READ.values(), ids=READ)
def test_strict_reader_accepts(data: bytes, value: JsonValue) -> None:
    """Odd but unambiguous documents are read, with lone surrogates replaced."""
    assert value == parse_json(data, "the document")


@PROPERTY
@given(json_values(st.text(max_size=12)))
def test_strict_reader_reads_what_was_written(value: JsonValue) -> None:
    """A document without lone surrogates survives the strict reader, spaced or not."""
    assert value == parse_json(canonical_json(value), "it")
    assert value == parse_json(json.dumps(value, indent=1, ensure_ascii=False).encode(), "it")


@PROPERTY
@given(st.binary(max_size=40), JSON_VALUES, st.integers(0, 60))
def test_strict_reader_never_fails_otherwise(junk: bytes, value: JsonValue, at: int) -> None:
    """Any bytes are a JSON value that has a canonical form, or a contract error."""
    data = canonical_json(value)
    for candidate in (junk, data[:at] + junk + data[at:], data[:at]):
        try:
            read = parse_json(candidate, "it")
        except ContractError:
            continue
        canonical_json(read)


@pytest.mark.parametrize("brackets", [b"[]", b"{}"])
def test_nesting_is_bounded(brackets: bytes) -> None:
    """Forty levels are read, and any more is refused, however deep."""
    opening, closing = (b"[", b"]") if brackets == b"[]" else (b'{"a":', b"}")
    assert parse_json(opening * MAX_DEPTH + b"1" + closing * MAX_DEPTH, "it")
    for depth in (MAX_DEPTH + 1, 10_000, 200_000):
        with pytest.raises(ContractError, match=r"^it: nested deeper than 40 levels$"):
            parse_json(opening * depth + b"1" + closing * depth, "it")


def test_clean_bounds_nesting_of_values() -> None:
    """A value that was decoded elsewhere is held to the same depth."""
    value: JsonValue = 1
    for _ in range(MAX_DEPTH):
        value = [value]
    assert value == clean(value, "it")
    with pytest.raises(ContractError, match="nested deeper"):
        clean([value], "it")


@pytest.mark.parametrize(
    "value",
    [float("nan"), [float("inf")], {"a": -float("inf")}, dict.fromkeys(("\ud800", "\udfff"), 1)],
)
def test_clean_refuses_what_has_no_canonical_form(value: JsonValue) -> None:
    """A value decoded elsewhere cannot smuggle in what the strict reader refuses."""
    with pytest.raises(ContractError, match=r"^it: "):
        clean(value, "it")


@PROPERTY
@given(JSON_VALUES)
def test_clean_is_final(value: JsonValue) -> None:
    """A cleaned value is UTF-8 throughout, and cleaning it again changes nothing."""
    cleaned = clean(value, "it")
    assert cleaned == clean(cleaned, "it")
    json.dumps(cleaned, ensure_ascii=False).encode("utf-8")


@PROPERTY
@given(st.text(st.characters(codec=None, exclude_categories=()), max_size=30))
def test_clean_text_changes_surrogates_only(text: str) -> None:
    """Text without surrogates stays as it is; any other becomes valid UTF-8."""
    cleaned = clean_text(text)
    cleaned.encode("utf-8")
    if not any("\ud800" <= character <= "\udfff" for character in text):
        assert text == cleaned


def test_clean_text_joins_pairs() -> None:
    """Two surrogates that form a pair become the one character that they mean."""
    assert "a😀b\ufffd" == clean_text("a\ud83d\ude00b\udc00")


def test_short_hash_keeps_parts_apart() -> None:
    """A key over several strings changes when text moves from one to the next."""
    keys = {
        short_hash("ab", "c"),
        short_hash("a", "bc"),
        short_hash("abc"),
        short_hash("ab", "c", ""),
        short_hash('ab","c'),
    }
    assert 5 == len(keys)
    assert all(len(key) == 32 and set(key) <= set("0123456789abcdef") for key in keys)


def test_short_hash_is_pinned() -> None:
    """Keys are stored, so the same parts give the same key for ever."""
    assert "5f2b2beed15c489cb7a51ed18d2b13c7" == short_hash("default", "triage-ISSUE-101", "run")
