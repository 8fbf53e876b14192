"""`triage outcomes --format prometheus` is what a scraper reads, whatever labels are called."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest

from tests.cli.in_process import Typed
from tests.cli.stored import in_store
from tests.cli.test_undoing import _applied
from triage.cli.exposition import MAX_GROUPS, MAX_NAME_CHARS, OTHER, lines
from triage.cli.outcomes_report import Report, gauges
from triage.cli.output import put
from triage.trackers.outcomes import Became, Mark, Outcome

WHEN: Final = datetime(2026, 11, 1, tzinfo=UTC)
Series = tuple[str, frozenset[tuple[str, str]]]

_NAME: Final = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_HELP: Final = re.compile(rf"# HELP ({_NAME}) [^\n\\]+")
_TYPE: Final = re.compile(rf"# TYPE ({_NAME}) gauge")
_LABEL: Final = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
_SAMPLE: Final = re.compile(rf"({_NAME})(?:\{{({_LABEL}(?:,{_LABEL})*)\}})? (-?[0-9.]+)")
_PAIR: Final = re.compile(rf"({_LABEL})")


def scraped(text: str) -> dict[Series, float]:
    """Read an exposition as strictly as its own rules are: help, type, then that metric's lines."""
    assert text.endswith("\n")
    found: dict[Series, float] = {}
    metric, seen = "", set()
    for line in text.splitlines():
        if (helped := _HELP.fullmatch(line)) is not None:
            metric = helped[1]
            assert metric not in seen, "a metric's lines stand together"
            seen.add(metric)
        elif (typed := _TYPE.fullmatch(line)) is not None:
            assert metric == typed[1]
        else:
            sample = _SAMPLE.fullmatch(line)
            assert sample is not None, line
            assert metric == sample[1]
            pairs = frozenset(_pair(one) for one in _PAIR.findall(sample[2] or ""))
            assert (metric, pairs) not in found, "a series has one sample"
            found[metric, pairs] = float(sample[3])
    return found


def _pair(label: str) -> tuple[str, str]:
    name, _, value = label.partition("=")
    signs = {"\\n": "\n", '\\"': '"', "\\\\": "\\"}
    return name, re.sub(r'\\[n"\\]', lambda found: signs[found[0]], value[1:-1])


def _series(name: str, **labels: str) -> Series:
    return f"triage_outcome_{name}", frozenset(labels.items())


def _report(*labels: str, became: Became = Became.RETAINED, cost: int = 0) -> Report:
    marks = [
        Mark(
            workflow_id="run-of-ann",
            tracker="github",
            repository="acme/secret",
            issue="4711",
            label=label,
            component="",
            at=WHEN,
        )
        for label in labels
    ]
    outcome = Outcome(became, accepted=became is Became.RETAINED)
    return Report(WHEN, [(mark, outcome) for mark in marks], cost, knows_runs=True)


def _told(report: Report, capsys: pytest.CaptureFixture[str]) -> dict[Series, float]:
    put(*lines(gauges(report)))
    return scraped(capsys.readouterr().out)


def test_a_scraper_reads_what_became_of_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of an applied write by ann's approval both labels are retained and accepted."""
    in_store(tmp_path, _applied)
    answer = Typed(tmp_path, monkeypatch, capsys)("outcomes", "--no-runs", "--format", "prometheus")
    found = scraped(answer.out)
    names = {"label": "bug", "component": "component:api"}
    assert (0, "") == (answer.status, answer.err)
    assert 1 == found[_series("labels", **names, origin="written", became="retained")]
    assert 0 == found[_series("labels", **names, origin="suggested", became="retained")]
    assert 1 == found[_series("accepted_labels", **names)]
    assert (0, 0) == (found[_series("runs_read")], found[_series("model_cost_micros")])
    assert "ann" not in answer.out


def test_nothing_but_labels_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """No run, repository, issue or person is in a series: they are many, and theirs to know."""
    put(*lines(gauges(_report("bug", "bug", cost=7))))
    told = capsys.readouterr().out
    assert [] == [word for word in ("ann", "acme", "4711", "github") if word in told]
    found = scraped(told)
    assert 2 == found[_series("accepted_labels", label="bug", component="")]
    assert 4 == found[_series("cost_per_accepted_label_micros")]
    assert WHEN.timestamp() == found[_series("since_timestamp_seconds")]


def test_without_an_accepted_label_there_is_no_cost_of_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A quotient of nothing is no number: it is left out, and all else is there."""
    found = _told(_report("bug", became=Became.REMOVED, cost=7), capsys)
    assert _series("cost_per_accepted_label_micros") not in found
    assert 7 == found[_series("model_cost_micros")]


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        ('say "hi"', 'say "hi"'),
        ("a\\b", "a\\b"),
        ('"} 1\ntriage_outcome_labels 9', '"} 1\\u{a}triage_outcome_labels 9'),
        ("\u202etxt", "\\u{202e}txt"),
        ("good first issue", "good first issue"),
        ("\u2714\ufe0e", "\u2714\ufe0e"),
        ("x" * 300, "x" * (MAX_NAME_CHARS - 1) + "\u2026"),
    ],
)
def test_no_name_leaves_its_quotes(
    label: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Quotes, backslashes, line breaks and marks that nobody sees are written out."""
    found = _told(_report(label), capsys)
    assert 1 == found[_series("accepted_labels", label=shown, component="")]


def test_there_are_only_so_many_series(capsys: pytest.CaptureFixture[str]) -> None:
    """Names beyond the bound are counted together, and the sum is what it was."""
    few = [f"label {n}" for n in range(MAX_GROUPS + 50)]
    found = _told(_report("common", "common", *few), capsys)
    accepted = {labels: n for (name, labels), n in found.items() if name.endswith("ted_labels")}
    assert MAX_GROUPS + 1 == len(accepted)
    assert len(few) + 2 == sum(accepted.values())
    assert 2 == found[_series("accepted_labels", label="common", component="")]
    assert 51 == found[_series("accepted_labels", label=OTHER, component=OTHER)]
