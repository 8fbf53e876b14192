"""Reading a fixture: a file of cases, each with a request, recorded decisions and expectations.

The file is held to its shape, and everything that a case *feeds in* is left alone: a request or a
decision may be any JSON value, wrong on purpose. What no program can pass on (lone surrogates,
numbers beyond a double) is replaced, so that such a file is evaluated and not crashed on.

Source: the production agent's fixture file.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from sys import float_info
from typing import Final, NoReturn, TypeVar

from pydantic import ConfigDict, Field, JsonValue, ValidationError

from triage.bounded import read_at_most
from triage.contracts.base import MAX_NAME_CHARS, Contract, Name, clamp, explain
from triage.contracts.canonical import canonical_json, clean_text
from triage.contracts.options import MAX_STEPS_LIMIT, Count, RunOptions

LABEL: Final = "SYNTHETIC EDUCATIONAL EXAMPLE — orchestration fixture only"
MAX_FILE_BYTES: Final = 16_777_216
DEFAULT_MAX_STEPS: Final = 3
DEFAULT_MAX_MODEL_RETRIES: Final = 1

# The call of step N is pending at version 3 N, at most.
_VERSIONS: Final = range(3 * MAX_STEPS_LIMIT + 1)
_SHOWN_PATH_CHARS: Final = 200
_SHOWN_ID_CHARS: Final = 60

Model = TypeVar("Model", bound=Contract)


class FixtureError(ValueError):
    """The file cannot be evaluated; the message is one line for the person who wrote it."""


class CaseOptions(Contract):
    """What a case may set of its run; unknown options are refused.

    `approvals` maps an operation id to the state version that it is approved at.
    """

    max_steps: Count = DEFAULT_MAX_STEPS
    max_model_retries: Count = DEFAULT_MAX_MODEL_RETRIES
    approvals: dict[str, int] = Field(default_factory=dict, max_length=100)
    permitted_effects: tuple[Name, ...] | None = None


class Expected(Contract):
    """The five fields of a response that a case is graded by; others are not looked at."""

    model_config = ConfigDict(extra="ignore")

    status: str
    route: str | None
    failure: str | None
    tool_sequence: tuple[str, ...]
    retries: int


@dataclass(frozen=True, slots=True)
class Case:
    """One recorded run and what should come of it."""

    id: str
    request: JsonValue
    decisions: tuple[JsonValue, ...]
    expected: Expected
    options: CaseOptions


@dataclass(frozen=True, slots=True)
class Fixture:
    """The cases of a file, in its order; no two have the same id."""

    cases: tuple[Case, ...]


def read_fixture(path: Path) -> Fixture:
    """Read and check a fixture file.

    Raises:
        FixtureError: the file cannot be read or is not a fixture; the message names the file, the
            case and the field.
    """
    value = read_document(path)
    try:
        return parse_fixture(value)
    except FixtureError as error:
        raise FixtureError(f"{shown(path)}: {error}") from None


def parse_fixture(value: JsonValue) -> Fixture:
    """Check a decoded fixture.

    Raises:
        FixtureError: it does not have the shape of a fixture.
    """
    if not isinstance(value, dict):
        raise FixtureError("a fixture must be a JSON object")
    if value.get("fixture") != LABEL:
        raise FixtureError(
            f'fixture must carry the synthetic educational label: "fixture": "{LABEL}"'
        )
    items = value.get("cases")
    if not isinstance(items, list):
        raise FixtureError("fixture.cases must be a list")
    cases = tuple(_case(item, position) for position, item in enumerate(items))
    twice = [name for name, count in Counter(case.id for case in cases).items() if count > 1]
    if twice:
        raise FixtureError(f"case {_quoted(twice[0])}: another case has the same id")
    return Fixture(cases=cases)


def read_document(path: Path) -> JsonValue:
    """Read one JSON file whose strings and numbers are safe to pass on.

    Raises:
        FixtureError: the file cannot be read, or is not one JSON document.
    """
    try:
        return _tidy(
            json.loads(
                read_at_most(path, MAX_FILE_BYTES),
                object_pairs_hook=_unique,
                parse_constant=_constant,
            )
        )
    except OSError as error:
        why = error.strerror or "unknown error"
        raise FixtureError(f"{shown(path)}: cannot be read ({why})") from None
    except RecursionError:
        raise FixtureError(f"{shown(path)}: nested too deeply") from None
    except FixtureError as error:
        raise FixtureError(f"{shown(path)}: {error}") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise FixtureError(f"{shown(path)}: not valid JSON ({where})") from None
    except ValueError:
        raise FixtureError(f"{shown(path)}: not valid JSON in UTF-8") from None


def shown(path: Path) -> str:
    """Return a path as it may stand in a message: short and printable, whatever its bytes."""
    text = str(path)
    return printable(text if len(text) <= _SHOWN_PATH_CHARS else f"…{text[-_SHOWN_PATH_CHARS:]}")


def printable(text: str) -> str:
    """Return `text` with every character that a terminal might act on written as an escape."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _case(item: JsonValue, position: int) -> Case:
    where = f"cases[{position}]"
    if not isinstance(item, dict):
        raise FixtureError(f"{where} must be an object")
    missing = [name for name in ("id", "request", "decisions", "expected") if name not in item]
    if missing:
        raise FixtureError(f"{where} lacks {missing[0]!r}")
    name, decisions = item["id"], item["decisions"]
    if not isinstance(name, str) or not name:
        raise FixtureError(f"{where}.id must be a non-empty string")
    where = f"case {_quoted(name)}"
    if not isinstance(decisions, list):
        raise FixtureError(f"{where}: decisions must be a list")
    return Case(
        id=name,
        request=item["request"],
        decisions=tuple(decisions),
        expected=_checked(Expected, item["expected"], f"{where}: expected"),
        options=_options(item.get("options", {}), where),
    )


def _options(value: JsonValue, where: str) -> CaseOptions:
    if not isinstance(value, dict):
        raise FixtureError(f"{where}: options must be an object")
    unknown = [name for name in value if name not in CaseOptions.model_fields]
    if unknown:
        known = ", ".join(CaseOptions.model_fields)
        raise FixtureError(f"{where}: unknown option {_quoted(unknown[0])}; known: {known}")
    return _checked(CaseOptions, value, f"{where}: options")


def run_options(options: CaseOptions) -> RunOptions:
    """Return the options that a case's run starts with; model and context are still to be set.

    An approval that no run can ever match, at such a version or of such a name, is left out.
    """
    return RunOptions(
        max_steps=options.max_steps,
        max_model_retries=options.max_model_retries,
        permitted_effects=options.permitted_effects,
        approvals={name: at for name, at in options.approvals.items() if _can_match(name, at)},
    )


def _can_match(name: str, version: int) -> bool:
    return version in _VERSIONS and len(name) <= MAX_NAME_CHARS


def _checked(model: type[Model], value: JsonValue, what: str) -> Model:
    """Validate as strict JSON; the message names the field and quotes no value."""
    if not isinstance(value, dict):
        raise FixtureError(f"{what} must be an object")
    try:
        return model.model_validate_json(canonical_json(value))
    except ValidationError as error:
        raise FixtureError(explain(error, what, model, to_author=True)) from None


def _quoted(name: str) -> str:
    return printable(repr(clamp(name, _SHOWN_ID_CHARS)))


def _tidy(value: JsonValue) -> JsonValue:
    match value:
        case str():
            return clean_text(value)
        case float():
            return value if math.isfinite(value) else math.copysign(float_info.max, value)
        case list():
            return [_tidy(item) for item in value]
        case dict():
            return {clean_text(key): _tidy(item) for key, item in value.items()}
        case _:
            return value


def _unique(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise FixtureError("an object has the same key twice")
    return result


def _constant(_: str) -> NoReturn:
    raise FixtureError("NaN and infinity are not JSON")
