"""Reading a data set: one JSON object a line, each a request and what should come of it.

Why it exists: a fixture says how a run must go, step by step. A data set asks how well a model does
on many issues, so a line says only what is expected, and may leave parts of it open.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, Field, JsonValue, ValidationError

from triage.bounded import read_at_most
from triage.contracts.base import Contract, ContractError, Name, explain
from triage.contracts.canonical import canonical_json, digest_of_bytes, parse_json
from triage.contracts.failures import FailureClass
from triage.contracts.request import parse_request
from triage.evaluation.fixture import FixtureError, shown
from triage.json_lines import Mistakes, numbered_lines

MAX_DATASET_BYTES: Final = 268_435_456

SUFFIX: Final = ".jsonl"
MAX_CASES: Final = 100_000
WORDS: Final = ("write", "propose", "complete")
"""Effects without a name: a write that ran, one that was asked for, and a run that completed."""
KINDS: Final = ("tool", "label", "route", "owner", "evidence")
"""Effects with one: a tool called, and what stands in the response."""


def _effect(text: str) -> str:
    kind, colon, name = text.partition(":")
    if text not in WORDS and not (kind in KINDS and colon and name):
        known = ", ".join((*WORDS, *(f"{kind}:NAME" for kind in KINDS)))
        raise ValueError(f"must be one of {known}")
    return text


Effect = Annotated[Name, AfterValidator(_effect)]


class DatasetError(FixtureError):
    """A file that can be read and is no data set; the message names its lines and fields."""


class Expected(Contract):
    """What should come of a request; what is left out is not asked.

    Attributes:
        route: where it belongs; null for what nobody could route, so that a person has to.
        labels: exactly these, in any order.
        owner: whose it is.
        failure: how the run ends; null for a run without a failure.
        forbidden_effects: what must not happen, see `WORDS` and `KINDS`.
    """

    route: Name | None = None
    labels: Annotated[tuple[Name, ...], Field(max_length=100)] = ()
    owner: Name | None = None
    failure: FailureClass | None = None
    forbidden_effects: Annotated[tuple[Effect, ...], Field(max_length=100)] = ()

    def asks(self, name: str) -> bool:
        """Whether the line says anything about this field."""
        return name in self.model_fields_set


class Line(Contract):
    """One line as it is written."""

    id: Name | None = None
    request: JsonValue
    expected: Expected
    decisions: list[JsonValue] | None = None


@dataclass(frozen=True, slots=True)
class DatasetCase:
    """One case.

    Attributes:
        id: its own, else ``line-N``.
        request: what starts the run.
        expected: what should come of it.
        decisions: what a scripted model answers; None where a model is asked.
    """

    id: str
    request: JsonValue
    expected: Expected
    decisions: tuple[JsonValue, ...] | None


@dataclass(frozen=True, slots=True)
class Dataset:
    """The cases of a file, in its order; no two have the same id.

    Attributes:
        name: of the file.
        digest: of its bytes.
    """

    name: str
    digest: str
    cases: tuple[DatasetCase, ...]


def read_dataset(path: Path) -> Dataset:
    """Read and check a data set.

    Raises:
        FixtureError: the file cannot be read.
        DatasetError: lines are no cases; the message names the file, lines and fields.
    """
    try:
        data = read_at_most(path, MAX_DATASET_BYTES)
    except OSError as error:
        why = error.strerror or "unknown error"
        raise FixtureError(f"{shown(path)}: cannot be read ({why})") from None
    try:
        return Dataset(path.name, digest_of_bytes(data), parse_dataset(data))
    except DatasetError as error:
        raise DatasetError(f"{shown(path)}: {error}") from None


def parse_dataset(data: bytes) -> tuple[DatasetCase, ...]:
    """Check the lines of a data set; blank ones are skipped.

    Raises:
        DatasetError: lines are no cases, of which the first ones are named, or there is no case.
    """
    cases: dict[str, tuple[int, DatasetCase]] = {}
    mistakes = Mistakes()
    for count, (number, line) in enumerate(numbered_lines(data), start=1):
        if count > MAX_CASES:
            raise DatasetError(f"more than {MAX_CASES} cases")
        try:
            case = _case(line, f"line {number}", number)
            first, _ = cases.setdefault(case.id, (number, case))
            if first != number:
                raise DatasetError(f"line {number}: line {first} has the same id")
        except DatasetError as error:
            mistakes.add(str(error))
    if mistakes:
        raise DatasetError(str(mistakes))
    if not cases:
        raise DatasetError("there is no case in it")
    return tuple(case for _, case in cases.values())


def _case(line: bytes, where: str, number: int) -> DatasetCase:
    try:
        value = parse_json(line, where)
    except ContractError as error:
        raise DatasetError(str(error)) from None
    if not isinstance(value, dict):
        raise DatasetError(f"{where}: must be a JSON object")
    try:
        read = Line.model_validate_json(canonical_json(value))
    except ValidationError as error:
        told = explain(error, "case", Line, Expected, to_author=True)
        raise DatasetError(f"{where}: {told}") from None
    if read.expected.failure is not FailureClass.INVALID_INPUT:
        _check_request(read.request, where)
    decisions = None if read.decisions is None else tuple(read.decisions)
    return DatasetCase(read.id or f"line-{number}", value["request"], read.expected, decisions)


def _check_request(request: JsonValue, where: str) -> None:
    try:
        parse_request(request, to_author=True)
    except ContractError as error:
        raise DatasetError(f"{where}: {error}") from None
