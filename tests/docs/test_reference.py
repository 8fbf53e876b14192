"""Holds the tables of docs/reference.md to the code, and its example to the reader of cases."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from tests.docs.pages import page
from triage.cli.errors import INTERNAL_STATUS, InputError, RefusedError, UnreachableError
from triage.cli.refusals import ADVICE
from triage.contracts.approval import REFUSAL_MEANING
from triage.contracts.options import (
    DEFAULT_REPOSITORY,
    DEFAULT_TENANT,
    MAX_STEPS_LIMIT,
    MAX_WINDOW_SECONDS,
    BudgetLimits,
    ContinuedFrom,
    IssueContext,
    Mode,
    RunOptions,
)
from triage.evaluation.fixture import LABEL, CaseOptions, Expected, parse_fixture
from triage.settings import Settings
from triage.settings_sources import variable

PAGE: Final = page("docs/reference.md")
NESTED: Final[dict[str, type[BaseModel]]] = {
    "budget": BudgetLimits,
    "context": IssueContext,
    "continued_from": ContinuedFrom,
}
COMPUTED: Final = {"database_url": "`triage.db` in `TRIAGE_HOME`"}


def test_the_table_of_settings_is_the_code_s() -> None:
    """Each setting stands there once, with the default that it has and what it is set to."""
    coded = [
        [variable(name), COMPUTED.get(name) or _default(field), field.description]
        for name, field in Settings.model_fields.items()
    ]
    assert coded == PAGE.table("variable", "default", "set it to")


def _default(field: FieldInfo) -> str:
    match field.default:
        case None:
            return ""
        case bool():
            return str(field.default).lower()
        case float():
            return f"{field.default:g}"
        case tuple():
            return ",".join(field.default)
        case _:
            return str(field.default)


def test_the_table_of_options_names_each() -> None:
    """Each option of a run stands there once, and none that does not exist."""
    rows = PAGE.table("option", "values", "without it")
    assert sorted(_names(RunOptions)) == sorted(row[0] for row in rows)


def _names(model: type[BaseModel]) -> Iterator[str]:
    for name in model.model_fields:
        nested = NESTED.get(name)
        yield from [name] if nested is None else (f"{name}.{sub}" for sub in nested.model_fields)


def test_bounds_and_defaults_of_options_are_the_code_s() -> None:
    """What the table of options gives as a bound, a value or a default is so."""
    rows = {row[0]: row[1:] for row in PAGE.table("option", "values", "without it")}
    for name in ("max_steps", "max_model_retries"):
        assert f"0 to {MAX_STEPS_LIMIT}" == rows[name][0]
    assert rows["approval_window_seconds"][0].startswith(f"0 to {MAX_WINDOW_SECONDS:,};")
    assert ", ".join(f"`{mode.value}`" for mode in Mode) == rows["mode"][0]
    defaults = (rows["context.tenant"][1], rows["context.repository"][1])
    assert (f"`{DEFAULT_TENANT}`", f"`{DEFAULT_REPOSITORY}`") == defaults


def test_the_table_of_refusals_is_the_code_s() -> None:
    """Whoever looks a refusal up here finds the words that the commands print."""
    coded = [[code.value, meaning, ADVICE[code]] for code, meaning in REFUSAL_MEANING.items()]
    assert coded == PAGE.table("code", "meaning", "what to do")


def test_the_table_of_exit_statuses_is_the_code_s() -> None:
    """Each status that an error can have has its line."""
    coded = ["0", *(str(kind.status) for kind in (RefusedError, InputError, UnreachableError))]
    rows = PAGE.table("status", "meaning")
    assert [*coded, str(INTERNAL_STATUS), "128 + N"] == [row[0] for row in rows]


def test_the_example_of_a_case_is_one() -> None:
    """The block that people copy from is read as a file of cases."""
    [block] = PAGE.blocks("json")
    [case] = parse_fixture(json.loads(block.body)).cases
    assert 3 == len(case.decisions)


def test_the_table_of_cases_names_each_field() -> None:
    """Each field of a case that is read stands there once, with the defaults that it has."""
    rows = dict(PAGE.table("field", "what it holds"))
    fields = ["id", "request", "decisions", "options"]
    fields += [f"options.{name}" for name in CaseOptions.model_fields]
    fields += [f"expected.{name}" for name in Expected.model_fields]
    assert ["fixture", *(f"cases[].{name}" for name in fields)] == list(rows)
    for name in ("max_steps", "max_model_retries"):
        default = CaseOptions.model_fields[name].default
        assert f"0 to {MAX_STEPS_LIMIT}, {default} by default" == rows[f"cases[].options.{name}"]
    assert LABEL in PAGE.text
