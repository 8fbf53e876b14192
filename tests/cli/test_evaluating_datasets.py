"""Checks `triage evaluate` around data sets; what is found is checked in tests/evaluation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import FIXTURES
from tests.cli.in_process import Typed
from tests.evaluation.judged import WRONG, a_case, ran
from triage.cli import evaluating_datasets
from triage.evaluation.configuration import Configuration
from triage.evaluation.dataset import Dataset
from triage.evaluation.judging import Judged, judge

LINE = {
    "request": {
        "request_id": "ISSUE-1",
        "title": "A title",
        "body": "A body",
        "source": "test",
        "changed_paths": [],
    },
    "expected": {"route": "bug"},
}


@pytest.fixture
def typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Typed:
    """Commands in a folder with a data set of two lines, `set.jsonl`."""
    lines = "".join(f"{json.dumps(LINE)}\n" for _ in range(2))
    (tmp_path / "set.jsonl").write_text(lines, encoding="utf-8")
    (tmp_path / "bad.jsonl").write_text(f"{lines}{{}}\n[]\n", encoding="utf-8")
    (tmp_path / "bad.toml").write_text("[policy]\na = = 1\n", encoding="utf-8")
    (tmp_path / "odd.toml").write_bytes(b"\xff\xfe")
    return Typed(tmp_path, monkeypatch, capsys)


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> list[Configuration]:
    """Answers in place of runs: the second case is wrong; what was asked with is returned."""
    asked: list[Configuration] = []

    async def evaluated(
        _dataset: Dataset, configuration: Configuration, *_others: object
    ) -> tuple[Judged, ...]:
        asked.append(configuration)
        return judge(a_case("one"), ran()), judge(a_case("two"), ran(**WRONG))

    monkeypatch.setattr(evaluating_datasets, "evaluate_dataset", evaluated)
    return asked


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["none.jsonl"], "none.jsonl: cannot be read"),
        (["bad.jsonl"], "bad.jsonl: line 3: case.request: is missing"),
        (["bad.jsonl"], "       line 4: must be a JSON object\nhint: each line is an object"),
        (["set.jsonl", "--min", "rigth=1"], "a threshold is about one of right"),
        (["set.jsonl", "--thresholds", "none.toml"], "none.toml: cannot be read"),
        (["set.jsonl", "--thresholds", "bad.toml"], "bad.toml: is not TOML at line 2, column 5"),
        (["set.jsonl", "--thresholds", "odd.toml"], "odd.toml: is not UTF-8 text"),
        (["set.jsonl", "--policy", "bad.toml"], "bad.toml: line 2: the file: is not TOML"),
        (["set.jsonl", "--compare", "odd.toml"], "odd.toml: is not UTF-8 text; save it as UTF-8"),
        (["set.jsonl", "--report", "none/report.html"], "written: there is no folder none"),
        (["set.jsonl", "--junit", "set.jsonl"], "set.jsonl: cannot be written: this command reads"),
        (["set.jsonl", "--junit", "."], ".: cannot be written: it is a folder"),
        (["set.jsonl", "--model", "nope"], "unknown model 'nope'"),
        (["set.jsonl", "--model", "openai:x"], "has no key here"),
        (["set.jsonl", "--compare", "none.toml"], "none.toml: no such file"),
        ([str(FIXTURES / "issue_triage_cases.json"), "--min", "right=1"], "only a data set"),
    ],
)
def test_a_mistake_is_told_before_anything_is_started(
    typed: Typed, answered: list[Configuration], arguments: list[str], told: str
) -> None:
    """Wrong input is status 2 and one line that says what, and nothing was run for it."""
    answer = typed("evaluate", *arguments)
    assert (2, "") == (answer.status, answer.out)
    assert told in answer.err
    assert "Traceback" not in answer.err
    assert [] == answered


@pytest.mark.parametrize(("bound", "status"), [("right=0.5", 0), ("right=0.6", 1)])
def test_a_threshold_makes_the_exit_status(
    typed: Typed, answered: list[Configuration], bound: str, status: int
) -> None:
    """One of two cases is right: that is enough for one gate, and not for the other."""
    answer = typed("evaluate", "set.jsonl", "--min", bound)
    assert status == answer.status
    assert ["passed", "not passed"][status] == answer.out.splitlines()[-1]


def test_each_report_is_written(typed: Typed, answered: list[Configuration]) -> None:
    """JSON on standard output alone, JUnit and HTML in files, under the other rules as well."""
    (typed.home / "strict.toml").write_text("[policy]\nmax_steps = 2\n", encoding="utf-8")
    reports = ["--junit", "j.xml", "--report", "r.html", "--compare", "strict.toml"]
    answer = typed("evaluate", "set.jsonl", *reports, "--format", "json")
    assert 0 == answer.status, answer.err
    document, names = answer.json(), ["rules", "rules under strict.toml"]
    assert names == [one["name"] for one in document["configurations"]]
    assert names == [one.name for one in answered]
    assert "triage evaluate set.jsonl --compare strict.toml" == document["made_with"]["command"]
    assert "<testsuites>" in (typed.home / "j.xml").read_text(encoding="utf-8")
    assert "less rules under strict.toml" in (typed.home / "r.html").read_text(encoding="utf-8")
