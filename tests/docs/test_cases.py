"""Holds docs/cases.md to the tests that it names, and the words of undo and outcomes to code."""

from __future__ import annotations

import ast
import re
from datetime import UTC, datetime
from functools import cache
from typing import Final

from tests.docs.pages import ROOT, page
from triage.cli.exposition import MAX_GROUPS, MAX_NAME_CHARS, OTHER
from triage.cli.outcomes_report import Report, gauges
from triage.trackers.outcomes import Became, Mark, Outcome
from triage.trackers.undo import Ending
from triage.trackers.undo_plan import Fate

PAGE: Final = page("docs/cases.md")
REFERENCE: Final = page("docs/reference.md")
NOW: Final = datetime(2026, 11, 1, tzinfo=UTC)
NAMED: Final = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
KINDS: Final = (
    "tests/unit/policy/test_codeowners.py",
    "tests/unit/policy/test_codeowners_patterns.py",
)


@cache
def _tests_in(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in tree.body if isinstance(node, functions))


def test_each_kind_names_tests_that_exist() -> None:
    """Every row has a test, and whoever looks one up finds it in the file that is named."""
    rows = [line for line in PAGE.text.splitlines() if line.startswith("| ") and "---" not in line]
    kinds = [row for row in rows if not row.startswith("| kind |")]
    assert [] == [row for row in kinds if not NAMED.search(row)]
    named = NAMED.findall(PAGE.text)
    assert [] == [f"{path}::{name}" for path, name in named if name not in _tests_in(path)]


def test_each_test_of_a_kind_stands_there() -> None:
    """A test that was written for a kind of CODEOWNERS is named with it."""
    named = {name for _, name in NAMED.findall(PAGE.text)}
    written = {x for path in KINDS for x in _tests_in(path) if x.startswith("test_kind_")}
    assert set() == written - named


def test_the_words_of_an_undo_are_the_code_s() -> None:
    """What may become of a label, and how an undo may end."""
    fates = {row[0] for row in REFERENCE.table("label", "when an undo leaves or takes it")}
    assert {fate.name.lower() for fate in Fate} == fates
    endings = {row[0] for row in REFERENCE.table("ending", "meaning")}
    assert {ending.value for ending in Ending} == endings


def test_the_words_of_outcomes_are_the_code_s() -> None:
    """What may have become of a label days later."""
    became = {row[0] for row in REFERENCE.table("became", "written", "only suggested")}
    assert {kind.value for kind in Became} == became


def test_the_metrics_of_outcomes_are_the_code_s() -> None:
    """Each metric that is printed stands on the page with its labels, and no other does."""
    mark = Mark(
        workflow_id="", tracker="", repository="", issue="", label="bug", component="", at=NOW
    )
    report = Report(NOW, [(mark, Outcome(Became.RETAINED, accepted=True))], 1, knows_runs=True)
    printed = {(gauge.name, ", ".join(gauge.samples[0][0])) for gauge in gauges(report)}
    table = REFERENCE.table("metric, a gauge each", "labels", "meaning")
    assert printed == {(row[0], row[1]) for row in table}
    assert f"Names are cut at {MAX_NAME_CHARS} characters. The {MAX_GROUPS} pairs" in REFERENCE.text
    assert f"`{OTHER}`" in REFERENCE.text
