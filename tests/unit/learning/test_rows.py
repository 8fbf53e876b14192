"""Promises of the reader of labelled issues: it names each mistake by line and quotes nothing."""

from __future__ import annotations

import pytest

from tests.unit.learning.samples import as_lines, issues
from triage.learning import rows as reader
from triage.learning.rows import RowsError, read_rows
from triage.models.learned_weights import MAX_GROUPS, MAX_LABELS

GOOD = {"title": "t", "body": "b", "label": "bug"}


def _refusal(data: bytes) -> str:
    with pytest.raises(RowsError) as caught:
        read_rows(data)
    return str(caught.value)


def test_a_body_may_be_missing_or_null_and_other_keys_are_left_alone() -> None:
    """Exports have bodies that are null and keys that mean nothing here."""
    found = read_rows(
        as_lines(
            [
                {"title": "a", "label": "x"},
                {"title": "b", "label": "x", "body": None, "group": None, "id": [1, {}]},
                {"title": "", "label": "y", "body": "c", "group": "acme/api"},
            ]
        )
    )
    assert ("x", "y") == found.labels
    assert ("acme/api",) == found.groups
    assert {"", "c"} == {row.body or "" for row in found.issues}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"{", "it is not valid JSON"),
        (b"[]", "is no JSON object"),
        (b"\xff\xfe", "it is not valid JSON"),
        (b'{"title": "SECRET", "body": "b"}', "label: is missing"),
        (b'{"title": null, "label": "SECRET"}', "title: must be text"),
        (b'{"title": "t", "label": ""}', "label: must not be empty"),
        (b'{"title": "t", "label": 3}', "label: must be text"),
        (b'{"title": "t", "label": "x", "body": ["SECRET"]}', "body: must be text"),
        (b'{"title": "t", "title": "t", "label": "x"}', "same key twice"),
        (b"[" * 100_000, "it"),
    ],
)
def test_a_line_that_is_wrong_is_named(line: bytes, said: str) -> None:
    """The number of the line and what is wrong with it, never what it holds."""
    message = _refusal(as_lines([GOOD]) + b"\n" + line + b"\n")
    assert message.startswith("line 3: ")
    assert said in message
    assert "SECRET" not in message


def test_many_mistakes_are_counted() -> None:
    """Five lines are named, and how many are wrong in all."""
    message = _refusal(b"[]\n" * 12)
    assert [
        *(f"line {n}: is no JSON object" for n in range(1, 6)),
        "lines that are wrong, in all: 12",
    ] == (message.splitlines())


def test_what_is_no_file_of_issues_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty file, a file without end and one with a label for each issue say so."""
    assert "has no issues" == _refusal(b"\n \n")
    many = [{**GOOD, "label": f"l{n}"} for n in range(MAX_LABELS + 1)]
    assert "has more than 50 labels" == _refusal(as_lines(many))
    groups = [{**GOOD, "group": f"g{n}"} for n in range(MAX_GROUPS + 1)]
    assert "has more than 200 groups" == _refusal(as_lines(groups))
    monkeypatch.setattr(reader, "MAX_ROWS", 2)
    assert "has more than 2 issues" == _refusal(as_lines([GOOD] * 3))
    monkeypatch.setattr(reader, "MAX_LINE_BYTES", 50)
    assert "line 1: has more than 50 bytes" == _refusal(as_lines([{**GOOD, "body": "b" * 50}]))


def test_repetitions_count_once_and_order_does_not_matter() -> None:
    """The same issues in another order, some of them twice, are the same issues."""
    found = list(issues())
    again = read_rows(as_lines([*reversed(found), *found[:3]]))
    assert read_rows(as_lines(found)).issues == again.issues
    assert 3 == again.repeated


def test_a_lone_surrogate_is_text_like_any_other() -> None:
    """What no UTF-8 text can hold is replaced, so that everything after can be written."""
    row = read_rows(b'{"title": "\\ud800", "label": "\\udfff"}').issues[0]
    assert ("\ufffd", "\ufffd") == (row.title, row.label)
