"""Holds docs/reliability.md to the tests that it names, and to the cases that they play."""

from __future__ import annotations

import ast
import json
import re
from functools import cache
from typing import Final

from tests.docs.pages import ROOT, page
from tests.reliability import test_deadlines as deadlines
from tests.reliability import test_negative_cases as cases

PAGE: Final = page("docs/reliability.md")
IN_SCOPE: Final = [1, 2, *range(4, 18), 20]
NAMED: Final = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
NUMBERED: Final = re.compile(r"test_fault_(\d\d)_")


@cache
def _tests_in(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in tree.body if isinstance(node, functions))


def _rows() -> dict[int, str]:
    """The cell of tests of each numbered fault."""
    rows = PAGE.table("no", "fault", "expected", "seen", "tests")
    return {int(number): tests for number, *_, tests in rows}


def test_each_named_test_exists() -> None:
    """Whoever looks a test up finds it in the file that is named."""
    named = NAMED.findall(PAGE.text)
    missing = [f"{path}::{name}" for path, name in named if name not in _tests_in(path)]
    assert [] == missing
    files = re.findall(r"`(tests/[\w/]+\.py)", PAGE.text)
    assert [] == [path for path in files if not (ROOT / path).is_file()]


def test_each_fault_has_a_row_and_tests() -> None:
    """Every fault of admission, decisions, approvals and writes is there, in order, with a test."""
    rows = _rows()
    assert IN_SCOPE == list(rows)
    assert [] == [number for number, tests in rows.items() if not NAMED.search(tests)]


def test_each_test_with_a_number_stands_in_its_row() -> None:
    """A test that was written for a fault is named with it, and with no other."""
    written = {
        (int(found[1]), name)
        for path in (ROOT / "tests" / "reliability").glob("test_*.py")
        for name in _tests_in(path.relative_to(ROOT).as_posix())
        if (found := NUMBERED.match(name))
    }
    listed = {
        (number, name)
        for number, tests in _rows().items()
        for _, name in NAMED.findall(tests)
        if NUMBERED.match(name)
    }
    assert written == listed


def test_each_attack_has_its_answer() -> None:
    """All cases of the list are there, and the codes are those that their tests expect."""
    answers = {row[0]: row[1] for row in PAGE.table("case", "answer")}
    listed = [case["case"] for case in json.loads(cases.CASES.read_text(encoding="utf-8"))]
    assert sorted(listed) == sorted(answers)
    codes = {case: ", ".join(sorted(expected)) for case, (_, expected) in cases.REFUSED.items()}
    assert codes == {case: answers[case] for case in codes}
    functions = re.findall(r"`(test_\w+)`", PAGE.text)
    assert _tests_in("tests/reliability/test_negative_cases.py").issuperset(functions)


def test_each_deadline_has_its_hour() -> None:
    """The hours are those at which the tests move the clock."""
    head = PAGE.text[PAGE.text.index("| an approval |") :].splitlines()[0]
    hours = [
        f"{name} ({span.total_seconds() / 3600:.0f} h)"
        for name, span in deadlines.DEADLINES.items()
    ]
    assert [] == [words for words in hours if words not in head]
