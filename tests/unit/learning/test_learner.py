"""Promises of learning: honest, the same for the same issues, and of use to the scorer as it is."""

from __future__ import annotations

import sys
from collections import Counter

import pytest

from tests.unit.learning.samples import issues, rows_of
from triage.learning.learner import FOLDS, OWN, SHARED, Learned, _folds, learn_from, measure
from triage.learning.rows import Rows, RowsError
from triage.learning.training import LearningUnavailable
from triage.models.classifier import Classifier
from triage.models.learned_weights import read_weights

STEPS: list[tuple[int, int]] = []


def _learned(rows: Rows, target: float = 0.9) -> Learned:
    STEPS.clear()
    return learn_from(rows, target, lambda done, total: STEPS.append((done, total)))


@pytest.fixture(scope="module")
def learned() -> Learned:
    """Learn from three labels that are easy to tell apart."""
    return _learned(rows_of(issues()))


def test_what_is_easy_is_learned(learned: Learned) -> None:
    """New issues of each kind are known, and issues held out were known as well."""
    classifier = Classifier(learned.weights)
    assert "bug" == classifier.guess("The drawer crashes with an exception", "").label
    assert "feature" == classifier.guess("Please add support for a drawer", "").label
    assert "question" == classifier.guess("How do I use the drawer?", "").label
    assert {True} == {answer.truth == answer.said for answer in learned.answers}
    assert learned.weights.threshold is not None


def test_weights_survive_their_file(learned: Learned) -> None:
    """What is read back says exactly the same of every issue."""
    again = Classifier(read_weights(learned.weights.body()))
    rows = rows_of(issues())
    assert measure(Classifier(learned.weights), rows) == measure(again, rows)
    assert learned.weights.digest() == again.digest


def test_the_same_issues_teach_the_same(learned: Learned) -> None:
    """In another order, and with repetitions, the digest is the same."""
    found = list(issues())
    assert learned.weights == _learned(rows_of(reversed(found), found[:4])).weights
    assert [(step, FOLDS + 1) for step in range(1, FOLDS + 2)] == STEPS


def test_two_labels_are_enough() -> None:
    """The library learns one number for two labels; both are known all the same."""
    classifier = Classifier(_learned(rows_of(issues(("bug", "question")))).weights)
    assert "bug" == classifier.guess("The drawer crashes with an exception", "").label
    assert "question" == classifier.guess("How do I use the drawer?", "").label


def test_what_cannot_be_told_apart_is_not_answered() -> None:
    """Labels without any sign of them have no threshold, and held-out issues say so."""
    same = [
        {"title": f"{word} {number}", "body": "", "label": label}
        for number, label in enumerate(("bug", "feature") * 10)
        for word in ("alpha", "beta")
    ]
    learned = _learned(rows_of(same), target=1.0)
    assert learned.weights.threshold is None
    assert not Classifier(learned.weights).is_sure(Classifier(learned.weights).guess("alpha", ""))


def test_groups_learn_of_their_own_where_that_is_better() -> None:
    """The same words mean different things in two repositories."""
    other = {"bug": "question", "feature": "feature", "question": "bug"}
    swapped = [{**row, "label": other[row["label"]]} for row in issues(group="acme/web")]
    rows = rows_of(issues(group="acme/api"), swapped)
    learned = _learned(rows)
    assert OWN == learned.way
    assert learned.compared[OWN] > learned.compared[SHARED]
    classifier = Classifier(learned.weights)
    title = "The drawer crashes with an exception"
    assert "bug" == classifier.guess(title, "", "acme/api").label
    assert "question" == classifier.guess(title, "", "acme/web").label
    assert learned.weights.alone is not None


def test_one_group_shares_with_nobody() -> None:
    """Where all issues come from one repository, there is one way to learn."""
    learned = _learned(rows_of(issues(group="acme/api")))
    assert {SHARED} == set(learned.compared)
    assert {} == learned.weights.groups
    assert learned.weights.alone is None


def test_equal_texts_are_held_out_together() -> None:
    """Nothing is asked of an issue that was learned from under another label."""
    found = list(issues())
    rows = rows_of(found, [{**row, "label": "other"} for row in found])
    folds: dict[str, set[int]] = {}
    for row, fold in zip(rows.issues, _folds(rows.issues), strict=True):
        folds.setdefault(row.key, set()).add(fold)
    assert {1} == {len(of_one_text) for of_one_text in folds.values()}
    assert set(range(FOLDS)) == set().union(*folds.values())


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (rows_of(issues(("bug",))), "issues of one label only"),
        (
            rows_of(issues(), [{"title": "t", "label": f"l{one}\n"} for one in range(7)]),
            r'issues: "l0\\u\{a\}", .*, "l4\\u\{a\}", and 2 more$',
        ),
        (
            rows_of(issues(), [{"title": "t", "label": "rare"}]),
            'fewer than 5 different issues: "rare"$',
        ),
    ],
)
def test_too_little_teaches_nothing(rows: Rows, said: str) -> None:
    """One label, or a label with next to no issues, is refused with what is wrong."""
    with pytest.raises(RowsError, match=said):
        _learned(rows)


def test_without_the_library_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scoring needs no library; learning names the one that it needs."""
    monkeypatch.setitem(sys.modules, "sklearn.linear_model", None)
    with pytest.raises(LearningUnavailable, match="scikit-learn"):
        _learned(rows_of(issues()))


def test_issues_of_many_small_groups_are_held_out_evenly() -> None:
    """Issues without text, each of a group of its own, teach little; they are no crash."""
    rows = rows_of({"title": "", "label": f"l{n % 2}", "group": f"g{n}"} for n in range(10))
    assert dict.fromkeys(range(FOLDS), 2) == Counter(_folds(rows.issues))
    assert 10 == len(_learned(rows).answers)


def test_a_label_that_is_held_out_as_a_whole_is_refused_in_words() -> None:
    """Where all texts of a label are another label's, and in one fold, nothing tells it apart."""
    rows = rows_of({"title": f"issue {n}", "label": "a"} for n in range(25))
    first = [row for row, fold in zip(rows.issues, _folds(rows.issues), strict=True) if not fold]
    with pytest.raises(RowsError, match="the texts of another"):
        _learned(rows_of(map(vars, rows.issues), [{**vars(row), "label": "b"} for row in first]))
