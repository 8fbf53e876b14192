"""`triage learn`: teaches a classifier by labelled issues, and says how good it is."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pydantic import JsonValue

from triage.cli.errors import InputError, RefusedError
from triage.cli.inputs import STDIN, read_bytes
from triage.cli.output import Format, put, put_json, put_long, put_table, say
from triage.cli.writing import check_places, write
from triage.learning.learner import MIN_PER_LABEL, Learned, learn_from, measure
from triage.learning.report import Measured, heaviest, measured_json
from triage.learning.rows import Rows, RowsError, read_rows
from triage.learning.training import LearningUnavailable
from triage.models.classifier import Classifier
from triage.models.learned_weights import MAX_WEIGHTS_BYTES

MAX_ISSUES_BYTES: Final = 268_435_456
ROWS_HINT: Final = (
    'each line is an object such as {"title": "…", "body": "…", "label": "bug", "group": "…"}; '
    "body and group may be left out"
)
INSTALL: Final = "pip install 'bounded-triage[learn]', or make setup in a clone"
SHOWN_POINTS: Final = 5
"""Of the curve, every so many points are shown to people; JSON has all."""

Document = dict[str, JsonValue]


FIGURES: Final = ("macro_f1", "per_label", "coverage")
"""What is printed as JSON, and nothing beside it; a report has all."""


def learn(
    file: Path,
    test: Path | None,
    target: float,
    format_: Format,
    *,
    output: Path | None,
    report: Path | None,
) -> None:
    """Learn from a file and print what it is worth.

    Raises:
        InputError: a file cannot be read, holds no usable issues, or cannot be written.
        RefusedError: the library that training needs is not installed.
    """
    check_places((output, report), (file, test))
    if file == test == STDIN:
        raise InputError("standard input holds one file only", "name a file after --test")
    rows = _read(file)
    tests = None if test is None else _read(test)
    say(f"learning from {_counted(rows)}")
    try:
        learned = learn_from(rows, target, _Told())
    except RowsError as error:
        hint = f"give at least {MIN_PER_LABEL} issues of each label, of two labels or more"
        raise InputError(f"{_named(file)}: {error}", hint) from None
    except LearningUnavailable as error:
        raise RefusedError(str(error), INSTALL) from None
    document = _document(learned, rows, tests)
    if output is not None:
        _write_weights(output, learned.weights.body())
        document["weights_file"] = str(output)
    if report is not None:
        write(report, f"{json.dumps(document, indent=2)}\n".encode())
    if format_ is Format.JSON:
        put_json({name: document[name] for name in FIGURES})
    else:
        _print(document, learned)


class _Told:
    """Says how far training is, at each fifth."""

    def __init__(self) -> None:
        self._told = 0

    def __call__(self, done: int, total: int) -> None:
        """Take note that `done` of `total` steps are done."""
        if done * 5 // total > self._told:
            self._told = done * 5 // total
            say(f"step {done} of {total}")


def _read(path: Path) -> Rows:
    data = read_bytes(path, MAX_ISSUES_BYTES)
    try:
        return read_rows(data)
    except RowsError as error:
        first, *more = str(error).splitlines()
        raise InputError("\n".join([f"{_named(path)}: {first}", *more]), ROWS_HINT) from None


def _named(path: Path) -> str:
    return "standard input" if path == STDIN else str(path)


def _write_weights(path: Path, data: bytes) -> None:
    if len(data) > MAX_WEIGHTS_BYTES:
        raise InputError("what was learned is too large to be used", "give fewer groups or labels")
    write(path, data)


def _counted(rows: Rows) -> str:
    issues, labels = _number(len(rows.issues), "issue"), _number(len(rows.labels), "label")
    groups = f", {_number(len(rows.groups), 'group')}" if rows.groups else ""
    repeated = f"; {_number(rows.repeated, 'repetition')} left out" if rows.repeated else ""
    return f"{issues}, {labels}{groups}{repeated}"


def _number(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _document(learned: Learned, rows: Rows, tests: Rows | None) -> Document:
    """Return the figures on the test, if there is one, and those of cross-validation beside."""
    threshold = learned.weights.threshold
    crossed = Measured("cross-validation", learned.answers, rows.labels)
    training: Document = {
        "issues": len(rows.issues),
        "repeated": rows.repeated,
        "labels": list(rows.labels),
        "groups": learned.way,
        "macro_f1_of_each_way": {way: round(f1, 4) for way, f1 in learned.compared.items()},
        "target_accuracy": learned.weights.target_accuracy,
        "threshold": None if threshold is None else round(threshold, 4),
    }
    about: Document = {
        "training": training,
        "weights_digest": learned.weights.digest(),
        "top_features": heaviest(learned.weights),
    }
    if tests is None:
        return {**measured_json(crossed, threshold), **about}
    labels = tuple(sorted({*rows.labels, *tests.labels}))
    measured = Measured("test", measure(Classifier(learned.weights), tests), labels)
    known = {row.key for row in rows.issues}
    figures = measured_json(measured, threshold)
    figures["also_in_training"] = sum(row.key in known for row in tests.issues)
    return {**figures, "cross_validation": measured_json(crossed, threshold), **about}


def _print(document: Mapping[str, Any], learned: Learned) -> None:
    put(f"measured by {document['measured_on']}, {_number(document['issues'], 'issue')}")
    put(f"macro F1 {document['macro_f1']:.4f}, accuracy {document['accuracy']:.4f}, all answered")
    if document.get("also_in_training"):
        put(f"{document['also_in_training']} of them are among the issues that were learned from")
    put("")
    put_table(("LABEL", "PRECISION", "RECALL", "F1", "ISSUES"), _label_rows(document))
    put(
        "",
        "of an issue of the label in the row, how many were said to be of the one in the column:",
    )
    put_table(("LABEL", *document["confusion"]), _confusion_rows(document["confusion"]))
    if "per_group" in document:
        put("")
        put_table(("GROUP", "F1", "ACCURACY", "ISSUES"), _group_rows(document))
    put(
        "", "answered only where it is at least so sure, so many of all, and so many of them right:"
    )
    put_table(("THRESHOLD", "ANSWERED", "RIGHT"), _curve_rows(document["coverage"]))
    put("", *_abstains(document, learned))
    put_table(("LABEL", *document["confusion"]), _confusion_rows(document["confusion_answered"]))
    put("", "what speaks most for a label:")
    for label, features in document["top_features"].items():
        put_long(f"{label}: {', '.join(features)}")
    put("", f"weights {document['weights_digest']}")
    if "weights_file" in document:
        put(f"written to {document['weights_file']}; 'triage weights store' hands them to workers")


def _abstains(document: Mapping[str, Any], learned: Learned) -> Iterator[str]:
    target = learned.weights.target_accuracy
    if learned.weights.threshold is None:
        yield f"no threshold has {target:.0%} of the answers right, so it answers nothing"
        return
    chosen = document["abstain"]
    yield f"it abstains below {chosen['threshold']:.4f}, by cross-validation for {target:.0%},"
    yield f"it answers {chosen['coverage']:.1%}, and is right in {chosen['accuracy']:.1%} of these:"


def _label_rows(document: Mapping[str, Any]) -> Iterator[Sequence[str]]:
    for label, score in document["per_label"].items():
        figures = (f"{score[name]:.4f}" for name in ("precision", "recall", "f1"))
        yield (label, *figures, str(score["support"]))


def _confusion_rows(table: Mapping[str, Mapping[str, int]]) -> Iterator[Sequence[str]]:
    for label, said in table.items():
        yield (label, *map(str, said.values()))


def _group_rows(document: Mapping[str, Any]) -> Iterator[Sequence[str]]:
    for name, group in document["per_group"].items():
        yield (name, f"{group['macro_f1']:.4f}", f"{group['accuracy']:.4f}", str(group["issues"]))
    yield ("(mean)", f"{document['macro_f1_mean_of_groups']:.4f}", "-", "-")


def _curve_rows(points: Sequence[Mapping[str, float]]) -> Iterator[Sequence[str]]:
    for at, point in enumerate(points):
        if at % SHOWN_POINTS == 0 or at == len(points) - 1:
            coverage, accuracy = f"{point['coverage']:.1%}", f"{point['accuracy']:.1%}"
            yield (f"{point['threshold']:.4f}", coverage, accuracy)
