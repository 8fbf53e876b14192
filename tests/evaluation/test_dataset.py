"""Reading data sets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.evaluation.cases import REQUEST
from triage.evaluation.dataset import DatasetError, parse_dataset, read_dataset
from triage.evaluation.fixture import FixtureError
from triage.resources import fixtures_path


def _line(**changes: Any) -> str:  # noqa: ANN401 - any JSON
    return json.dumps({"request": REQUEST, "expected": {"route": "bug"}, **changes})


def test_a_case_without_a_name_is_named_after_its_line() -> None:
    """Blank lines are skipped and counted, so a name leads to the line in an editor."""
    data = f"\ufeff{_line()}\r\n\n{_line(id='named')}\n".encode()
    assert ["line-1", "named"] == [case.id for case in parse_dataset(data)]


def test_what_is_left_out_is_not_asked() -> None:
    """A null is an expectation, and a missing field is none."""
    [case] = parse_dataset(_line(expected={"route": None}).encode())
    asked = [case.expected.asks(name) for name in ("route", "labels", "owner", "failure")]
    assert [True, False, False, False] == asked
    assert None is case.decisions


def test_a_line_separator_in_a_text_ends_no_line() -> None:
    """What other readers split at may stand in an issue's text."""
    request = {**REQUEST, "body": "one\u2028two\x85three"}
    data = json.dumps({"request": request, "expected": {}}, ensure_ascii=False).encode()
    [case] = parse_dataset(data)
    assert request == case.request


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n", "there is no case in it"),
        (f"{_line()}\n{{", "line 2 is not valid JSON"),
        ("[]", "line 1: must be a JSON object"),
        (_line(extra=1), 'line 1: case."extra": unexpected field'),
        (_line(expected={"route": 1}), "line 1: case.expected.route: must be text"),
        (
            _line(expected={"rout": "bug"}),
            '.expected."rout": unexpected field (did you mean route?)',
        ),
        (
            _line(request={**REQUEST, "titel": ""}),
            '"titel": unexpected field (did you mean title?)',
        ),
        (_line(**{f"\n{'x' * 99}": 1}), f'line 1: case."\\u{{a}}{"x" * 58}…": unexpected field'),
        (_line(expected={"forbidden_effects": ["labels"]}), "forbidden_effects.0: must be one of"),
        (_line(request={}), "line 1: request.request_id: is missing"),
        (_line(request={**REQUEST, "title": " "}), "line 1: request.title: must not be blank"),
        (f"{_line(id='a')}\n{_line(id='a')}", "line 2: line 1 has the same id"),
        ("\ufeff", "there is no case in it"),
        ('{"request": 1, "request": 2}', "line 1: an object has the same key twice"),
    ],
)
def test_a_mistake_is_told_with_its_line(text: str, message: str) -> None:
    """Whoever wrote a data set by hand finds the line and the field."""
    with pytest.raises(FixtureError) as told:
        parse_dataset(text.encode())
    assert message in str(told.value)


def test_all_mistakes_are_told_at_once() -> None:
    """Five lines are named, those with an id that is taken among them, and how many are wrong."""
    good = _line(id="a")
    with pytest.raises(DatasetError) as told:
        parse_dataset("\r\n".join([good, "[]", "", good, *["{"] * 6]).encode())
    lines = str(told.value).splitlines()
    assert ["line 2: must be a JSON object", "line 4: line 1 has the same id"] == lines[:2]
    assert "line 7 is not valid JSON" == lines[4]
    assert "lines that are wrong, in all: 8" == lines[5]
    assert 6 == len(lines)


def test_a_bad_request_may_be_what_a_case_is_about() -> None:
    """A case that expects `invalid_input` may hold any request."""
    [case] = parse_dataset(_line(request=7, expected={"failure": "invalid_input"}).encode())
    assert 7 == case.request


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """One line says which file and why."""
    with pytest.raises(FixtureError, match=r"none\.jsonl: cannot be read"):
        read_dataset(tmp_path / "none.jsonl")


def test_the_set_that_is_checked_in_covers_what_it_says() -> None:
    """All routes, owners and a person are expected somewhere, and many scripts are in it."""
    cases = read_dataset(fixtures_path("evaluation", "issues.jsonl")).cases
    routes = {case.expected.route for case in cases if case.expected.asks("route")}
    owners = {case.expected.owner for case in cases if case.expected.asks("owner")}
    assert {"bug", "documentation", "feature", "security_review", None} == routes
    assert {"backend-team", "frontend-team", "docs-team", "product-team"} == owners
    texts = [str(case.request) for case in cases]
    for sign in ("ü", "è", "á", "存", "ん", "ё", "ت", "💥", "\\x1b"):
        assert any(sign in text for text in texts), sign
