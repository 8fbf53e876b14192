"""YAML of any kind is read as texts with lines, or refused in words; it never becomes anything."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.contracts.strategies import PROPERTY
from triage.automation.nodes import (
    MAX_ALIASES,
    MAX_DEPTH,
    MAX_FILE_BYTES,
    MAX_NODES,
    Listed,
    NotYamlError,
    Table,
    Text,
    read_yaml,
    texts,
)

BOMB = "a: &a [x]\n" + "".join(
    f"{chr(97 + n)}: &{chr(97 + n)} [{', '.join([f'*{chr(96 + n)}'] * 9)}]\n" for n in range(1, 9)
)


def test_values_stay_the_words_that_they_are() -> None:
    """What a loader would make a boolean, a date or an object of is text, with its line."""
    [document] = read_yaml(b"on: [yes, 2001-01-01]\nx: !!python/object:os.system rm\n")
    assert isinstance(document, Table)
    assert (
        Listed((Text("yes", 1), Text("2001-01-01", 1)), 1),
        Text("rm", 2),
    ) == (document.get("on"), document.get("x"))


def test_blocks_know_that_they_begin_below() -> None:
    """The text of a block stands under its key."""
    [document] = read_yaml(b"a:\n  b: |\n    one\n    two\n")
    assert [Text("one\ntwo\n", 2, is_block=True)] == list(texts(document))


def test_aliases_and_documents_are_followed() -> None:
    """What an alias stands for is there, with the line where it is written."""
    documents = read_yaml(b"a: &x [one]\nb: *x\n---\n? [odd, key]\n: two\n")
    assert [["one", "one"], ["two"]] == [[t.value for t in texts(d)] for d in documents]
    assert isinstance(documents[1], Table)
    assert Text("", 4) == documents[1].pairs[0][0]


REFUSED = {
    "no YAML": (b"a: [", 1),
    "a tab": (b"a:\n\tb: 1", 2),
    "no text": (b"\xff\xfe\x00", 0),
    "a control character": (b"a: \x07", 0),
    "an unknown alias": (b"a: *b", 1),
    "an alias of itself": (b"a: &a [*a]", 1),
    "a bomb": (BOMB.encode(), 6),
    "too large": (b"#" * (MAX_FILE_BYTES + 1), 0),
    "too deep": (b"[" * (MAX_DEPTH + 1), 1),
    "too many entries": (b"- x\n" * (MAX_NODES + 1), None),
    "too many aliases": (b"a: &a x\nb: [" + b"*a ," * (MAX_ALIASES + 1) + b"]", 2),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_person_does_not_write_is_refused(name: str) -> None:
    """Broken, endless or entangled input is an error in our words, with a line if there is one."""
    data, line = REFUSED[name]
    with pytest.raises(NotYamlError) as error:
        read_yaml(data)
    assert line in {error.value.line, None}


@PROPERTY
@given(st.binary(max_size=200) | st.text("ab:-[]{}&*!|>'\"#,\n ", max_size=80).map(str.encode))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    """No input leads to another error."""
    try:
        documents = read_yaml(data)
    except NotYamlError as error:
        assert error.line >= 0  # noqa: PT017 - either way is right
        return
    assert all(text.line >= 1 for document in documents for text in texts(document))
