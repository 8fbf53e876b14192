"""Thresholds that make an evaluation a gate."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.evaluation.judged import REVIEW, WRONG, a_judged
from triage.evaluation.fixture import FixtureError
from triage.evaluation.summary import Summary
from triage.evaluation.thresholds import check, from_options, read_thresholds

SUMMARY = Summary(
    "new",
    (a_judged("a", tokens=30), a_judged("b"), a_judged("c", **REVIEW), a_judged("d", **WRONG)),
)


@pytest.mark.parametrize(
    ("text", "is_minimum", "holds"),
    [
        ("right=0.5", True, True),
        ("right=0.51", True, False),
        ("case.wrong=0.25", False, True),
        ("wrong=0.24", False, False),
        ("abstained=0", False, False),
        ("labels.right=0.75", True, True),
        ("tokens=7.5", False, True),
        ("cost_micros=14", False, False),
        ("steps=2", False, True),
        ("security.wrong=1", False, False),
    ],
)
def test_a_threshold_is_held_against_its_number(text: str, is_minimum: bool, holds: bool) -> None:
    """A bound itself is kept; what no case says anything about keeps none."""
    given = from_options([text] * is_minimum, [text] * (not is_minimum))
    assert [holds] == [one.holds for one in check(given, SUMMARY)]


@pytest.mark.parametrize(
    "text", ["right", "right=", "right=x", "rigth=1", "right=nan", "right=1.1", "steps=-1", "=1"]
)
def test_what_is_no_threshold_is_refused(text: str) -> None:
    """A misspelt gate would let everything through."""
    with pytest.raises(FixtureError, match=r"a threshold is about|the threshold of"):
        list(from_options([text], []))


def test_a_file_holds_both_tables(tmp_path: Path) -> None:
    """Names of behaviours may be quoted or not."""
    file = tmp_path / "t.toml"
    file.write_text(
        "[thresholds.min]\nright = 0.5\nsecurity.right = 1\n[thresholds.max]\n'route.wrong' = 0\n",
        encoding="utf-8",
    )
    assert ["right >= 0.5", "security.right >= 1", "route.wrong <= 0"] == [
        str(one) for one in read_thresholds(file)
    ]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[thresholds]",
        "[thresholds]\nmin = 1",
        "[thresholds.mean]\nright = 1",
        "[thresholds.min]\nright = true",
        "[thresholds.max]\ntokens = 1" + "0" * 400,
        "no TOML",
        "a = " + "[" * 5_000,
        None,
    ],
)
def test_a_file_that_sets_no_bound_is_refused(tmp_path: Path, content: str | None) -> None:
    """A gate that is empty by mistake is a mistake, and is told with its file."""
    file = tmp_path / "t.toml"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    with pytest.raises(FixtureError, match=r"t\.toml: "):
        read_thresholds(file)
