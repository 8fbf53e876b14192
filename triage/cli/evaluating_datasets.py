"""`triage evaluate DATASET.jsonl`: how well a model does, against thresholds and another one."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import typer

from triage.cli.errors import InputError
from triage.cli.output import Format, put, put_json, say
from triage.cli.running import run
from triage.cli.writing import check_places, write
from triage.evaluation.configuration import Configuration
from triage.evaluation.dataset import Dataset, DatasetError, read_dataset
from triage.evaluation.dataset_report import junit, text_lines, to_json
from triage.evaluation.dataset_report import passes as report_passes
from triage.evaluation.dataset_runner import evaluate_dataset
from triage.evaluation.fixture import shown
from triage.evaluation.html_report import to_html
from triage.evaluation.summary import Report, Summary
from triage.evaluation.thresholds import Threshold, check, from_options, read_thresholds
from triage.policy.rules_findings import RulesFileError
from triage.settings import Settings, load_settings

TENTHS: Final = 10
LINES_HINT: Final = (
    'each line is an object such as {"request": {…}, "expected": {"route": "bug"}}; '
    "docs/reference.md has all fields"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The options that only a data set takes."""

    model: str | None = None
    policy: Path | None = None
    compare: str | None = None
    minimum: tuple[str, ...] = ()
    maximum: tuple[str, ...] = ()
    thresholds: Path | None = None
    junit: Path | None = None
    report: Path | None = None
    jobs: int | None = None

    def configurations(self) -> tuple[Configuration, ...]:
        """Return what is evaluated, and what it is compared with, if anything."""
        main = Configuration.of(self.model, self.policy)
        return (main,) if self.compare is None else (main, main.other(self.compare))

    def bounds(self) -> tuple[Threshold, ...]:
        """Return all thresholds, those of the file first."""
        in_file = () if self.thresholds is None else read_thresholds(self.thresholds)
        return (*in_file, *from_options(self.minimum, self.maximum))

    def read(self) -> tuple[Path | None, ...]:
        """Return the files that are read beside the data set."""
        return (self.thresholds, *(one.rules for one in self.configurations()))

    def command(self, file: Path) -> str:
        """Return the command as a report names it: what shapes the answers, and no machine."""
        words = ["triage", "evaluate", _named(file)]
        for name, value in (("model", self.model), ("policy", self.policy)):
            words += [f"--{name}", _named(value)] if value else []
        if self.compare is not None:
            words += ["--compare", _named(self.compare)]
        words += [] if self.thresholds is None else ["--thresholds", _named(self.thresholds)]
        for name, texts in (("min", self.minimum), ("max", self.maximum)):
            words += [word for text in texts for word in (f"--{name}", text)]
        return shlex.join(words)


def _named(value: str | Path) -> str:
    """Return a name as it was given, but for the folder of an absolute path."""
    path = Path(value)
    return path.name if path.is_absolute() else path.as_posix()


class Tally:
    """Says how many cases are done, at most ten times."""

    def __init__(self, told: str = "") -> None:
        self._of = f" with {told}" if told else ""
        self._told = -1

    def __call__(self, done: int, total: int) -> None:
        """Take note that `done` of `total` cases are done."""
        tenth = done * TENTHS // max(total, 1)
        if tenth > self._told:
            self._told = tenth
            say(f"evaluated {done} of {total} cases{self._of}")


def evaluate(file: Path, wanted: Wanted, format_: Format) -> None:
    """Evaluate a data set.

    Raises:
        FixtureError: a file or a threshold cannot be used; nothing was started.
        InputError: a line is no case, rules cannot be used, or a report cannot be written there.
        typer.Exit: with 1, when it does not pass.
    """
    bounds, dataset, settings = wanted.bounds(), _read(file), load_settings()
    check_places((wanted.junit, wanted.report), (file, *wanted.read()))
    report = run(_evaluated(dataset, wanted, settings))
    checked, command = check(bounds, report.main), wanted.command(file)
    if wanted.junit is not None:
        write(wanted.junit, junit(report, checked).encode())
    if wanted.report is not None:
        write(wanted.report, to_html(report, checked, command).encode())
    if format_ is Format.JSON:
        put_json(to_json(report, checked, command))
    else:
        put(*text_lines(report, checked))
    if not report_passes(report, checked):
        raise typer.Exit(1)


def _read(file: Path) -> Dataset:
    try:
        return read_dataset(file)
    except DatasetError as error:
        raise InputError(str(error), LINES_HINT) from None


async def _evaluated(dataset: Dataset, wanted: Wanted, settings: Settings) -> Report:
    configurations = wanted.configurations()
    for one in configurations:
        await _check(one, settings)
    found = []
    for one in configurations:
        say(f"evaluating {dataset.name} with {one.name}")
        tally = Tally(one.name)
        judged = await evaluate_dataset(dataset, one, settings, tally, wanted.jobs)
        found.append(Summary(one.name, judged))
    return Report(dataset, tuple(found))


async def _check(one: Configuration, settings: Settings) -> None:
    try:
        await one.check(settings)
    except RulesFileError as error:
        name = "" if one.rules is None else f"{shown(one.rules)}: "
        hint = "'triage policy check' tells more of a rules file"
        raise InputError(f"{name}{str(error).removeprefix('the file: ')}", hint) from None
