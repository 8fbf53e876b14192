"""Holds docs/evaluation.md and the reports to the code, the sets and each other."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any, Final

from tests.attack.inputs import HARMLESS, MORE, corpus
from tests.attack.kinds import KINDS
from tests.attack.orders import ORDERS
from tests.docs.pages import ROOT, page
from triage.cli import evaluate_command
from triage.evaluation.dataset import KINDS as EFFECT_KINDS
from triage.evaluation.dataset import WORDS, Expected, Line, parse_dataset, read_dataset
from triage.evaluation.judging import Behaviour, Grade
from triage.evaluation.thresholds import MEANS

PAGE: Final = page("docs/evaluation.md")
REFERENCE: Final = page("docs/reference.md")
ATTACKS: Final = page("docs/reports/attack.md")
SETS: Final = ROOT / "fixtures"


def test_grades_and_behaviours_are_the_code_s() -> None:
    """Each has a row, in the code's order, and no other has."""
    assert list(Grade) == [row[0] for row in PAGE.table("grade", "meaning")]
    assert list(Behaviour) == [row[0] for row in PAGE.table("behaviour", "what is graded")]
    assert all(f"`{name}`" in PAGE.text for name in MEANS)


def test_the_sets_have_the_sizes_that_are_told() -> None:
    """Whoever reads how much a set is worth reads how large it is."""
    made_of = {row[0].strip("`"): row[1] for row in PAGE.table(*_SET_HEADINGS)}
    cases = read_dataset(SETS / "evaluation" / "issues.jsonl").cases
    scripted = sum(case.decisions is not None for case in cases)
    fixture = json.loads((SETS / "issue_triage_cases.json").read_bytes())
    sizes = {
        "fixtures/issue_triage_cases.json": [len(fixture["cases"])],
        "fixtures/evaluation/issues.jsonl": [len(cases), scripted],
        "fixtures/short_issues.jsonl": [_lines("short_issues.jsonl")],
        "fixtures/security/issue_attacks.jsonl": [_lines("security/issue_attacks.jsonl")],
    }
    assert sizes == {name: [int(n) for n in re.findall(r"\d+", made_of[name])] for name in made_of}
    played = f"plays {len(corpus())} attacks of a corpus, {len(MORE)} more for kinds that it lacks"
    assert f"{played}, and {len(HARMLESS)} odd but harmless issues" in " ".join(PAGE.text.split())


_SET_HEADINGS: Final = ("set", "made of", "it shows", "it does not show")


def _lines(name: str) -> int:
    return len((SETS / name).read_bytes().splitlines())


def test_what_was_found_is_what_the_report_says() -> None:
    """The numbers on the page are those of the JSON report that is checked in."""
    report: Any = json.loads((ROOT / "docs" / "reports" / "evaluation.json").read_bytes())
    found = report["configurations"][0]["behaviours"]
    case, security = found["case"], found["security"]
    text = " ".join(PAGE.text.split())
    assert (
        f"right {case['right']['count']} of {case['right']['total']},"
        f" wrong {case['wrong']['count']}, abstained {case['abstained']['count']};"
        f" of {security['right']['total']} security reports {security['right']['count']} right,"
        f" {security['wrong']['count']} wrong."
    ) in text
    assert report["passed"]
    html = (ROOT / "docs" / "reports" / "evaluation.html").read_text(encoding="utf-8")
    for part in (report["dataset"]["digest"], report["made_with"]["command"]):
        assert part in html


def test_each_kind_of_attack_has_its_row() -> None:
    """The kinds are the suite's, each with the number of orders that are of it."""
    orders = Counter(kind for order in ORDERS for kind in order.kinds)
    coded = [[str(number), words, str(orders[number])] for number, words in KINDS.items()]
    assert coded == PAGE.table("no", "kind", "orders")


def test_the_attack_report_is_of_this_suite() -> None:
    """Every order has a row, on both trackers, and there was no breach."""
    rows = ATTACKS.table("what the model does", "local", "github", "ended")
    assert {order.name for order in ORDERS} < {row[0] for row in rows}
    assert all(int(local) and int(github) for _, local, github, _ in rows)
    total = sum(int(row[1]) + int(row[2]) for row in rows)
    assert re.search(rf"^{total} runs of \d+ inputs, 0 breaches\.$", ATTACKS.text, re.MULTILINE)


def test_the_table_of_data_sets_names_each_key() -> None:
    """What a line may hold is all there, and the example is a line."""
    keys = [row[0] for row in REFERENCE.table("key", "what it holds")]
    top = [name for name in Line.model_fields if name != "expected"]
    nested = [f"expected.{name}" for name in Expected.model_fields]
    assert sorted([*top, *nested]) == sorted(keys)
    [effects] = [row[1] for row in REFERENCE.table("key", "what it holds") if "forbidden" in row[0]]
    assert {*WORDS, *(f"{kind}:NAME" for kind in EFFECT_KINDS)} == set(
        re.findall(r"`([^`]+)`", effects)
    )
    [example] = REFERENCE.blocks("jsonl")
    assert 1 == len(parse_dataset(example.body.encode()))


def test_the_table_of_options_names_each() -> None:
    """Every option of the command but the format has a row."""
    rows = REFERENCE.table("option of evaluate", "what it does")
    hints = evaluate_command.evaluate.__annotations__
    assert len(hints) - len({"file", "format_", "return"}) == len(rows)
