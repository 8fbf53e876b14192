"""Reports of data sets, in each form."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.evaluation.judged import (
    FAILED,
    REVIEW,
    WRONG,
    a_case,
    a_judged,
    a_report,
    lost,
    ran,
)
from triage.evaluation.dataset_report import junit, passes, text_lines, to_json, verdict
from triage.evaluation.html_report import to_html
from triage.evaluation.judging import Behaviour, Grade, judge
from triage.evaluation.summary import Report
from triage.evaluation.thresholds import check, from_options

NASTY = "<script>alert(1)</script>\x1b[2J\u2028&\"'"
NEW = (a_judged("a"), a_judged("b"), a_judged("c", **WRONG), a_judged("d", **FAILED))
OLD = (a_judged("a"), a_judged("b", **WRONG), a_judged("c", **REVIEW), a_judged("d", **REVIEW))


def _nasty() -> Report:
    judged = judge(a_case(NASTY), ran(route="feature", owner=NASTY))
    found = a_report(judged, lost(f"lost {NASTY}"), base=(judged, judged))
    return replace(found, dataset=replace(found.dataset, name=NASTY))


def test_the_differences_are_the_new_one_s_less_the_old_one_s() -> None:
    """Right twice of four in place of once; a case with decisions of its own says nothing."""
    scripted = judge(a_case("e", scripted=True), ran())
    report = a_report(*NEW, scripted, base=(*OLD, scripted))
    found = report.differences[(Behaviour.CASE, Grade.RIGHT)]
    assert (0.25, 1, 0) == (found.value, found.gained, found.lost)
    wrong = report.differences[(Behaviour.ROUTE, Grade.WRONG)]
    assert (0.0, 1, 1) == (wrong.value, wrong.gained, wrong.lost)
    assert not {Behaviour.GROUNDING, Behaviour.EFFECTS} & {where for where, _ in report.differences}


def test_the_text_says_what_the_exit_status_says() -> None:
    """Rates with their intervals, what a run used, the differences, each threshold, the verdict."""
    report = a_report(*NEW, base=OLD)
    lines = list(text_lines(report, check(from_options(["right=0.6"], []), report.main)))
    assert "cases.jsonl: 4 cases" == lines[0]
    assert "cases.jsonl: 1 case" == next(text_lines(a_report(NEW[0]), ()))
    assert re.search(r"^  case +2 = 50% \(15-85\) +1 = 25%", lines[4])
    assert "  ended with: none 3, model_invalid_output 1" in lines
    assert any(line.startswith("  case.right             +25.0 (") for line in lines)
    assert ["FAIL right >= 0.6: is 0.500", "", "not passed"] == lines[-3:]


def test_a_control_that_did_not_hold_is_never_excused() -> None:
    """No threshold makes up for a forbidden effect, ungrounded evidence or a lost run."""
    fine = a_report(*NEW)
    assert (True, "the controls held; no threshold was set") == (
        passes(fine, ()),
        verdict(fine, ()),
    )
    forbidden = judge(a_case("x", forbidden_effects=["complete"]), ran())
    for bad in (forbidden, a_judged("y", returned=()), lost()):
        report = a_report(*NEW, bad)
        assert not passes(report, ())
        assert any(bad.case.id in line for line in text_lines(report, ()) if "BREACH" in line)


def test_json_holds_everything_and_depends_on_no_clock() -> None:
    """Programs get counts, rates and each case; the same answers give the same document."""
    report = a_report(*NEW, lost(), base=(*OLD, lost()))
    checked = check(from_options([], ["wrong=1"]), report.main)
    document: Any = to_json(report, checked, "triage evaluate")
    assert document == json.loads(json.dumps(document))
    assert document == to_json(report, checked, "triage evaluate")
    new, old = document["configurations"]
    assert ("new", "old", 5) == (new["name"], old["name"], len(new["cases"]))
    short: Any = to_json(report, (), "x", cases=False)
    assert "cases" not in short["configurations"][0]
    assert {"passed", "thresholds", "differences", "dataset", "made_with"} < set(document)


def test_junit_tells_wrong_from_failed_and_left_out() -> None:
    """Wrong answers are failures, runs without an answer errors, and reviews skipped."""
    report = a_report(*NEW, a_judged("e", **REVIEW), lost())
    text = junit(report, check(from_options(["right=1"], []), report.main))
    root = ET.fromstring(text)  # noqa: S314 - our own text
    suite, gate = root.findall("testsuite")
    assert ("6", "1", "2", "1") == tuple(
        suite.attrib[name] for name in ("tests", "failures", "errors", "skipped")
    )
    kinds = [[child.tag for child in case] for case in suite]
    assert [[], [], ["failure"], ["error"], ["skipped"], ["error"]] == kinds
    assert "1" == gate.attrib["failures"]


class _Tags(HTMLParser):
    """Collects what a page is made of."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag and its attributes."""
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


@pytest.mark.parametrize("report", [a_report(*NEW, base=OLD), _nasty()], ids=["plain", "nasty"])
def test_the_page_runs_and_loads_nothing(report: Report) -> None:
    """Whatever a data set or a model says, the page holds text and drawings alone."""
    page = to_html(report, check(from_options(["right=1"], []), report.main), f"triage {NASTY}")
    found = _Tags()
    found.feed(page)
    assert not {"script", "img", "link", "iframe", "object", "a"} & found.tags
    assert not {name for name in found.attributes if name.startswith("on")} | (
        {"href", "src"} & found.attributes
    )
    assert "default-src 'none'" in page
    assert not {"\x1b", "\u2028"} & set(page)
    assert {"svg", "table"} <= found.tags


def test_a_nasty_name_breaks_no_other_form() -> None:
    """Text stays on its lines, and XML stays XML."""
    report = _nasty()
    lines = list(text_lines(report, ()))
    assert not any({"\x1b", "\u2028", "\n"} & set(line) for line in lines)
    root = ET.fromstring(junit(report, ()))  # noqa: S314 - our own text
    assert 2 == len(root.findall("testsuite"))
