"""Reading fixture files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.evaluation.cases import EXPECTED, REQUEST, case, fixture
from triage.evaluation.fixture import (
    LABEL,
    FixtureError,
    parse_fixture,
    read_fixture,
    run_options,
)


def _expected(**changes: object) -> dict[str, Any]:
    return case(expected={**EXPECTED, **changes})


def _options(**options: object) -> dict[str, Any]:
    return case(options=options)


def test_a_case_without_options_has_the_defaults() -> None:
    """Three steps and one model retry are what a case gets that asks for nothing."""
    options = parse_fixture(fixture(case())).cases[0].options
    assert (3, 1, {}, None) == (
        options.max_steps,
        options.max_model_retries,
        options.approvals,
        options.permitted_effects,
    )


def test_options_reach_the_run() -> None:
    """All four options of a case are options of its run."""
    given = {
        "max_steps": 5,
        "max_model_retries": 0,
        "approvals": {"op-1": 6},
        "permitted_effects": [],
    }
    options = run_options(parse_fixture(fixture(_options(**given))).cases[0].options)
    assert given == options.model_dump(mode="json", include=set(given))


def test_an_approval_that_no_run_can_reach_is_left_out() -> None:
    """A version or a name that no run has is no error: such an approval never matches."""
    approvals = {"op-1": -1, "op-2": 3, "op-3": 10**30, "x" * 999: 3}
    [parsed] = parse_fixture(fixture(_options(approvals=approvals))).cases
    assert {"op-2": 3} == run_options(parsed.options).approvals


@pytest.mark.parametrize(
    "request_value", [None, 7, [], "text", {}, {**REQUEST, "extra": [None]}, REQUEST]
)
def test_a_request_is_taken_as_it_is(request_value: object) -> None:
    """A request may be any JSON value, wrong on purpose."""
    [parsed] = parse_fixture(fixture(case(request=request_value))).cases
    assert request_value == parsed.request


def test_keys_that_are_not_ours_are_left_alone() -> None:
    """A file may carry notes beside what is evaluated."""
    annotated = {**fixture(case(note="why", expected={**EXPECTED, "owner": "x"})), "made_by": "me"}
    assert ["case-1"] == [item.id for item in parse_fixture(annotated).cases]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "a fixture must be a JSON object"),
        ({"cases": []}, "fixture must carry the synthetic educational label"),
        ({"fixture": LABEL.lower(), "cases": []}, "must carry the synthetic educational label"),
        ({"fixture": LABEL}, "fixture.cases must be a list"),
        (fixture(None), "cases[0] must be an object"),
        (fixture({"id": "a"}), "cases[0] lacks 'request'"),
        (fixture({**case(), "id": 7}), "cases[0].id must be a non-empty string"),
        (fixture(case("")), "cases[0].id must be a non-empty string"),
        (fixture(case(decisions={})), "case 'case-1': decisions must be a list"),
        (fixture(case("a"), case("b"), case("a")), "case 'a': another case has the same id"),
        (fixture(case(expected=None)), "case 'case-1': expected must be an object"),
        (fixture(case(expected={})), "case 'case-1': expected.status: is missing"),
        (fixture(_expected(retries=True)), "expected.retries: must be a whole number"),
        (fixture(_expected(tool_sequence="x")), "expected.tool_sequence: "),
        (fixture(_expected(route=3)), "expected.route: "),
        (fixture(case(options=None)), "case 'case-1': options must be an object"),
        (
            fixture(_options(max_step=3)),
            "case 'case-1': unknown option 'max_step'; known: max_steps, ",
        ),
        (fixture(_options(max_steps=True)), "options.max_steps: must be a whole number"),
        (fixture(_options(max_steps=-1)), "options.max_steps: "),
        (fixture(_options(max_steps=10**6)), "options.max_steps: "),
        (fixture(_options(max_model_retries="1")), "options.max_model_retries: "),
        (fixture(_options(approvals={"op-1": "3"})), "options.approvals.*: "),
        (fixture(_options(approvals=["op-1"])), "options.approvals: "),
        (fixture(_options(permitted_effects="apply_labels")), "options.permitted_effects: "),
    ],
)
def test_a_wrong_shape_is_named(value: Any, message: str) -> None:  # noqa: ANN401 - any JSON
    """What is wrong with a fixture is said in one line that names case and field."""
    with pytest.raises(FixtureError) as caught:
        parse_fixture(value)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not valid JSON (line 1, column 1)"),
        (b"{\n  cases: 1}", "not valid JSON (line 2, column 3)"),
        (b'{"fixture": "\xff"}', "not valid JSON in UTF-8"),
        (b'{"a": 1, "a": 2}', "an object has the same key twice"),
        (b'{"a": NaN}', "NaN and infinity are not JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a": ' * 700 + b"1" + b"}" * 700, "nested too deeply"),
        (b"1" * 5_000, "not valid JSON in UTF-8"),
    ],
)
def test_what_is_not_json_is_an_error_of_one_line(
    tmp_path: Path, data: bytes, message: str
) -> None:
    """A file that is not one JSON document gives a clear error that names the file."""
    path = tmp_path / "cases.json"
    path.write_bytes(data)
    with pytest.raises(FixtureError) as caught:
        read_fixture(path)
    assert f"{path}: {message}" == str(caught.value)


def test_a_missing_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    """A file that is not there is said so, whatever its name holds."""
    with pytest.raises(FixtureError) as caught:
        read_fixture(tmp_path / "no\x1b\udcff.json")
    assert "no\\x1b\\udcff.json: cannot be read (No such file or directory)" in str(caught.value)


def test_a_folder_is_not_a_fixture(tmp_path: Path) -> None:
    """Naming a folder is a mistake with an answer, not a traceback."""
    with pytest.raises(FixtureError, match="Is a directory"):
        read_fixture(tmp_path)


def test_what_cannot_be_passed_on_is_replaced(tmp_path: Path) -> None:
    """Lone surrogates and numbers beyond a double do not stop an evaluation."""
    text = json.dumps(fixture(case("c\ud800", decisions=["\udfff", "\ud83d\ude00"])))
    path = tmp_path / "cases.json"
    path.write_text(text.replace('"decisions": [', '"decisions": [1e999, -1e999, '))
    [parsed] = read_fixture(path).cases
    assert "c\ufffd" == parsed.id
    assert ("\ufffd", "\U0001f600") == parsed.decisions[2:]
    assert [float, float] == [type(item) for item in parsed.decisions[:2]]
    json.dumps(parsed.decisions, allow_nan=False)
