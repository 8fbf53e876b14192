"""Checks `triage learn` and `triage weights`: figures, files, refusals and exit statuses."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Answer
from tests.cli.in_process import Typed
from tests.unit.learning.samples import as_lines, issues
from triage.models.learned_weights import read_weights


@pytest.fixture
def typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Typed:
    """Type commands in a folder with a file of issues."""
    (tmp_path / "issues.jsonl").write_bytes(as_lines(issues()))
    return Typed(tmp_path, monkeypatch, capsys)


def _learned(typed: Typed, *more: str | Path) -> Answer:
    return typed("learn", "issues.jsonl", "--output", "weights.json", *more)


def test_figures_as_json(typed: Typed, tmp_path: Path) -> None:
    """A test's figures have these names, and the curve starts where all issues are answered."""
    (tmp_path / "test.jsonl").write_bytes(
        as_lines([{"title": "How do I close the drawer?", "body": None, "label": "question"}])
    )
    more = ("--format", "json", "--report", "report.json")
    answer = _learned(typed, "--test", "test.jsonl", *more)
    assert 0 == answer.status
    document = json.loads((tmp_path / "report.json").read_bytes())
    printed = answer.json()
    assert ["macro_f1", "per_label", "coverage"] == list(printed)
    assert printed == {name: document[name] for name in printed}
    assert {("threshold", "coverage", "accuracy")} == {
        tuple(point) for point in printed["coverage"]
    }
    assert (1.0, "test", 1) == (
        document["macro_f1"],
        document["measured_on"],
        document["issues"],
    )
    assert {"precision": 1.0, "recall": 1.0, "f1": 1.0, "support": 1} == (
        document["per_label"]["question"]
    )
    assert {"threshold": 0.0, "coverage": 1.0, "accuracy": 1.0} == document["coverage"][0]
    assert {"bug", "feature", "question"} == set(document["confusion"])
    assert "cross-validation" == document["cross_validation"]["measured_on"]
    weights = read_weights((tmp_path / "weights.json").read_bytes())
    assert weights.digest() == document["weights_digest"]


def test_figures_for_people(typed: Typed) -> None:
    """Without a test they are those of cross-validation; what speaks for a label is shown."""
    answer = _learned(typed)
    assert 0 == answer.status
    lines = answer.out.splitlines()
    assert "measured by cross-validation, 24 issues" == lines[0]
    assert "macro F1 1.0000, accuracy 1.0000, all answered" == lines[1]
    (spoken,) = [line for line in lines if line.startswith("question: ")]
    assert "first: how do" in spoken
    assert "step" in answer.err


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b'{"title": "t", "label": "x"}\n{"title": 1}\n', "issues.jsonl: line 2: title: must be"),
        (b"", "issues.jsonl: has no issues"),
        (b"\xef\xbb\xbf", "issues.jsonl: has no issues"),
        (b"[]\r\n" * 7, "       lines that are wrong, in all: 7"),
        (b'{"title": "t", "label": "x"}\n', "issues.jsonl: has issues of one label only"),
    ],
)
def test_a_file_that_cannot_be_used(typed: Typed, tmp_path: Path, data: bytes, said: str) -> None:
    """It says what is wrong and what a line looks like, and shows no traceback."""
    (tmp_path / "issues.jsonl").write_bytes(data)
    answer = _learned(typed)
    assert (2, "") == (answer.status, answer.out)
    assert said in answer.err
    assert "hint: " in answer.err
    assert "Traceback" not in answer.err


def test_a_file_that_is_not_there_or_cannot_be_written(typed: Typed) -> None:
    """Both are said by name, and where nothing can be written nothing is learned first."""
    answer = typed("learn", "none.jsonl")
    assert (2, True) == (answer.status, "none.jsonl: cannot be read" in answer.err)
    for option in ("--output", "--report"):
        answer = typed("learn", "issues.jsonl", option, "none/file.json")
        said = (
            "error: none/file.json: cannot be written: there is no folder none\nhint: make it first"
        )
        assert (2, said) == (answer.status, answer.err.strip())
        answer = typed("learn", "issues.jsonl", option, ".")
        assert (2, True) == (answer.status, "it is a folder" in answer.err)
        assert "learning from" not in answer.err
    assert not (typed.home / "none").exists()


@pytest.mark.parametrize("option", ["--output", "--report"])
def test_a_place_that_takes_no_file_is_known_before_anything_is_learned(
    typed: Typed, option: str
) -> None:
    """Such as a disk that is read only; nobody learns for long in order to lose it."""
    answer = typed("learn", "issues.jsonl", option, "/proc/weights.json")
    assert (2, "") == (answer.status, answer.out)
    assert "error: /proc/weights.json: cannot be written: " in answer.err
    assert "learning from" not in answer.err


def test_nothing_is_left_of_having_tried_a_place(typed: Typed) -> None:
    """What is in a file stays in it, and none is made before there is something to write."""
    (typed.home / "old.json").write_text("kept")
    few = typed.home / "few.jsonl"
    few.write_text('{"title": "One", "label": "bug"}')
    answer = typed("learn", few, "--output", "new.json", "--report", "old.json")
    assert 2 == answer.status
    assert not (typed.home / "new.json").exists()
    assert "kept" == (typed.home / "old.json").read_text()


def test_no_file_is_written_over_by_a_slip(typed: Typed) -> None:
    """Neither the issues that are learned from nor what was just learned; a device takes both."""
    issues_, again = (typed.home / "issues.jsonl").read_bytes(), typed.home / "again"
    again.symlink_to("issues.jsonl")
    (typed.home / "hard").hardlink_to(typed.home / "issues.jsonl")
    own = ["--output", "w.json", "--report", "./w.json"]
    for more in (["--output", "again"], ["--output", "hard"], own):
        answer = typed("learn", "issues.jsonl", *more)
        assert (2, True) == (answer.status, "already\nhint: name another file" in answer.err)
    assert issues_ == (typed.home / "issues.jsonl").read_bytes()
    assert 0 == typed("learn", "again", "--output", "/dev/null", "--report", "/dev/null").status
    answer = typed("learn", "issues.jsonl", "--report", "x" * 300)
    assert (2, True) == (answer.status, "File name too long" in answer.err)


def test_standard_input_is_read_once(typed: Typed) -> None:
    """It cannot be the test as well, and is called by its name."""
    answer = typed("learn", "-", "--test", "-")
    assert (2, True) == (answer.status, "standard input holds one file only" in answer.err)


def test_without_the_library(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever installed triage alone is told what to install."""
    monkeypatch.setitem(sys.modules, "sklearn.linear_model", None)
    answer = _learned(typed)
    assert 1 == answer.status
    assert "pip install 'bounded-triage[learn]'" in answer.err


def test_weights_are_shown_and_stored(typed: Typed, tmp_path: Path) -> None:
    """They go into a database that is there, under their digest; again changes nothing."""
    _learned(typed)
    weights = read_weights((tmp_path / "weights.json").read_bytes())
    assert (
        weights.digest()
        == typed("weights", "show", "weights.json", "--format", "json").json()["digest"]
    )
    shown = typed("weights", "show", "weights.json").out
    assert weights.digest() in shown
    assert max(map(len, shown.splitlines()[1:])) <= 80
    assert "\nquestion\n  first: " in shown
    answer = typed("weights", "store", "weights.json")
    assert (1, True) == (answer.status, "there is no database" in answer.err)
    typed("writes", "stop", "--create", "--reason", "makes a database")
    for _ in range(2):
        answer = typed("weights", "store", "weights.json", "--format", "json")
        assert 0 == answer.status, answer.err
        assert f"learned:{weights.digest()}" == answer.json()["model"]
    assert (
        f"TRIAGE_MODEL=learned:{weights.digest()}" in typed("weights", "store", "weights.json").out
    )


def test_what_is_stored_is_shown_by_its_digest(typed: Typed) -> None:
    """As doctor prints it, or as a run names its model; what is not there is said."""
    _learned(typed)
    digest = typed("weights", "show", "weights.json", "--format", "json").json()["digest"]
    answer = typed("weights", "show", digest)
    assert (1, True) == (answer.status, "there is no database" in answer.err)
    typed("writes", "stop", "--create", "--reason", "makes a database")
    answer = typed("weights", "show", digest)
    assert (1, True) == (answer.status, f"{digest}: no such weights are stored" in answer.err)
    assert "hint: 'triage weights store FILE' stores them" in answer.err
    typed("weights", "store", "weights.json")
    shown = typed("weights", "show", "weights.json")
    for name in (digest, f"learned:{digest}", f"learned:{digest}:acme/api", digest[:23]):
        assert shown == typed("weights", "show", name)
    for name in ("sha256:12", "learned:none", "nowhere.json"):
        answer = typed("weights", "show", name)
        assert (2, "") == (answer.status, answer.out)
        assert f"error: {name}: " in answer.err


@pytest.mark.parametrize(
    "data", [b"", b"\x80\x04K\x01.", b"{}", json.dumps({"labels": 1}).encode()]
)
def test_what_are_no_weights_is_refused(typed: Typed, tmp_path: Path, data: bytes) -> None:
    """Nothing else is stored, whatever it is."""
    (tmp_path / "weights.json").write_bytes(data)
    for command in ("store", "show"):
        answer = typed("weights", command, "weights.json")
        assert (2, "") == (answer.status, answer.out)
        assert "error: weights.json: weights" in answer.err
        assert "hint: 'triage learn --output FILE' makes such a file" in answer.err
