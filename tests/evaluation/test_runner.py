"""Evaluating fixtures as real workflows."""

from __future__ import annotations

import asyncio
import json
import sys
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowExecutionStatus, WorkflowHandle

from tests.evaluation.cases import (
    EXPECTED,
    REQUEST,
    RESPONSE,
    case,
    final,
    fixture,
    read_owner,
    write_labels,
)
from tests.evaluation.differential import disagreements
from tests.evaluation.scripts import random_fixture
from triage.evaluation import runner
from triage.evaluation.fixture import FixtureError, parse_fixture
from triage.evaluation.report import Evaluation
from triage.evaluation.runner import evaluate_file, evaluate_on
from triage.evaluation.stack import Stack
from triage.resources import fixtures_path
from triage.settings import Settings

NINE_CASES = fixtures_path("issue_triage_cases.json")
SUMMARY = (
    "SYNTHETIC EDUCATIONAL EXAMPLE \u2014 orchestration fixture only\n"
    "cases=9\n"
    "passed=9\n"
    "completed=4\n"
    "review_required=2\n"
    "controlled_failures=3\n"
    "policy_blocks=1\n"
    "invalid_tool_calls=2\n"
    "bounded_retries=1\n"
    "max_step_failures=1\n"
    "unauthorized_side_effects=0"
)
BLOCKED = {
    "operation_id": "op-105",
    "tool": "apply_labels",
    "executed": False,
    "authorized": False,
    "reason": "approval_required",
}
DIFFERENTIAL_CASES = 200


async def _evaluate(stack: Stack, *cases: object) -> Evaluation:
    parsed = parse_fixture(fixture(*cases))
    return await evaluate_on(stack.client, parsed, stack.settings)


def _outcome(evaluation: Evaluation, position: int = 0) -> tuple[object, object]:
    actual = evaluation.records[position].actual
    return actual["status"], actual["failure"]


async def test_the_nine_cases_give_the_summary_and_the_same_answers_again(stack: Stack) -> None:
    """The fixture passes byte for byte, and running it twice on one server changes nothing."""
    parsed = parse_fixture(json.loads(NINE_CASES.read_bytes()))
    told: list[tuple[int, int]] = []
    first = await evaluate_on(
        stack.client, parsed, stack.settings, lambda done, total: told.append((done, total))
    )
    assert (SUMMARY, 0) == (first.text(), first.exit_status)
    assert [BLOCKED] == first.to_json()["mutations"]
    assert [(done, 9) for done in range(1, 10)] == told
    again = await evaluate_on(stack.client, parsed, stack.settings)
    assert first.to_json() == again.to_json()


async def test_an_approved_write_runs_once_in_each_case(stack: Stack) -> None:
    """Cases that share request, operation and version still have a ledger each."""
    script = [write_labels(["bug"]), final("mutation-receipt")]
    twins = [
        case(name, decisions=script, options={"approvals": {"op-1": 3}}) for name in ("a", "b")
    ]
    evaluation = await _evaluate(stack, *twins)
    assert ("completed", None) == _outcome(evaluation) == _outcome(evaluation, 1)
    assert ["approved", "approved"] == [item.reason for item in evaluation.mutations]
    assert all(item.executed and item.authorized for item in evaluation.mutations)


async def test_a_stale_approval_executes_nothing(stack: Stack) -> None:
    """An approval for version 3 does not hold at version 6."""
    script = [read_owner(), write_labels(["bug"])]
    evaluation = await _evaluate(stack, case(decisions=script, options={"approvals": {"op-1": 3}}))
    assert ("review_required", "approval_required") == _outcome(evaluation)
    assert [("approval_required", False)] == [(m.reason, m.executed) for m in evaluation.mutations]


async def test_a_policy_block_records_no_mutation(stack: Stack) -> None:
    """A write that policy forbids is not even a refused mutation."""
    options = {"permitted_effects": [], "approvals": {"op-1": 3}}
    evaluation = await _evaluate(stack, case(decisions=[write_labels(["bug"])], options=options))
    assert ("review_required", "policy_block") == _outcome(evaluation)
    assert () == evaluation.mutations


async def test_mutations_come_in_the_order_of_the_cases(stack: Stack) -> None:
    """However the runs overtake each other, the report is in the fixture's order."""
    cases = [
        case(f"case-{number}", decisions=[write_labels(["bug"], f"op-{number}")])
        for number in range(12)
    ]
    evaluation = await _evaluate(stack, *cases)
    assert [f"op-{number}" for number in range(12)] == [
        item.operation_id for item in evaluation.mutations
    ]


def _nested(levels: int) -> Any:  # noqa: ANN401 - any JSON
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("request_value", "request_id"),
    [
        (None, "invalid"),
        ([], "invalid"),
        ("text", "invalid"),
        ({}, "invalid"),
        ({**REQUEST, "request_id": None}, "None"),
        ({**REQUEST, "request_id": {"b": 1, "a": [True, 0.5]}}, "{'b': 1, 'a': [True, 0.5]}"),
        ({**REQUEST, "title": 1.7976931348623157e308}, "ISSUE-1"),
        ({**REQUEST, "title": " \t"}, "ISSUE-1"),
        ({**REQUEST, "body": None}, "ISSUE-1"),
        ({**REQUEST, "extra": {}}, "ISSUE-1"),
    ],
)
async def test_any_request_gets_a_response(
    stack: Stack, request_value: object, request_id: str
) -> None:
    """A request that is wrong on purpose ends as invalid input under the id that it claims."""
    evaluation = await _evaluate(stack, case(request=request_value))
    assert ("failed", "invalid_input") == _outcome(evaluation)
    assert request_id == evaluation.records[0].actual["request_id"]


@pytest.mark.parametrize("item", [None, [], {"kind": []}, _nested(39), _nested(200), 1e308])
async def test_any_decision_is_judged_in_its_turn(stack: Stack, item: object) -> None:
    """What is no decision is invalid output at its own step, and no earlier."""
    evaluation = await _evaluate(stack, case(decisions=[read_owner(), item]))
    assert ("failed", "model_invalid_output") == _outcome(evaluation)
    assert 2 == evaluation.records[0].actual["steps"]


async def test_a_case_that_fails_is_named(stack: Stack) -> None:
    """A wrong expectation is a FAIL line and exit status 1, and the other cases stand."""
    wrong = case("wrong", expected={**EXPECTED, "route": "feature"})
    evaluation = await _evaluate(stack, case("right"), wrong)
    assert "FAIL wrong: route: expected 'feature', got 'bug'" == evaluation.text().split("\n")[11]
    assert (1, 12) == (evaluation.exit_status, len(evaluation.text().split("\n")))


@pytest.fixture
def deserted(stack: Stack) -> Stack:
    """Where no worker polls, so that runs stay open, and no other test's runs are listed."""
    queue = f"nobody-polls-{uuid.uuid4().hex}"
    return replace(stack, settings=stack.settings.model_copy(update={"task_queue": queue}))


async def test_a_case_that_does_not_end_fails_and_never_hangs(
    deserted: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that nobody works on is a failed case with a clear text."""
    monkeypatch.setattr(runner, "CASE_SECONDS", 1)
    evaluation = await _evaluate(deserted, case())
    assert ("the run gave no response: it did not end within 1 s",) == (
        evaluation.records[0].failures
    )
    assert 1 == evaluation.exit_status


async def test_a_run_that_the_platform_ends_is_a_failed_case(deserted: Stack) -> None:
    """What is not an outcome of the domain is said to be none, and graded as nothing else."""
    evaluation = asyncio.create_task(_evaluate(deserted, case()))
    [run] = await _running(deserted, 1)
    await run.terminate()
    [record] = (await evaluation).records
    assert (
        "the run gave no response: it failed on the platform (TerminatedError)",
    ) == record.failures
    assert set(RESPONSE) == set(record.actual)
    assert record.actual["status"] is None


async def test_runs_that_nobody_waits_for_are_ended(deserted: Stack) -> None:
    """An interrupted evaluation leaves no open run on a server that others use."""
    evaluation = asyncio.create_task(_evaluate(deserted, case("a"), case("b"), case("c")))
    runs = await _running(deserted, 3)
    evaluation.cancel()
    with pytest.raises(asyncio.CancelledError):
        await evaluation
    ended = [(await run.describe()).status for run in runs]
    assert [WorkflowExecutionStatus.TERMINATED] * 3 == ended


async def _running(stack: Stack, count: int) -> list[WorkflowHandle[Any, Any]]:
    """Wait until the server lists `count` open runs of this evaluation."""
    query = f"TaskQueue = '{stack.settings.task_queue}' AND ExecutionStatus = 'Running'"
    async with asyncio.timeout(90):
        while True:
            found = [run async for run in stack.client.list_workflows(query)]
            if len(found) == count:
                return [stack.client.get_workflow_handle(run.id) for run in found]
            await asyncio.sleep(0.05)


async def test_a_request_beyond_the_servers_limit_fails_its_case_alone(stack: Stack) -> None:
    """What the server refuses to take is said of that case; the others run."""
    huge = case("huge", request={**REQUEST, "body": "x" * 3_000_000})
    evaluation = await _evaluate(stack, huge, case("small"))
    [failure] = evaluation.records[0].failures
    assert "the server refused the request, which may be too large" in failure
    assert () == evaluation.records[1].failures


@pytest.mark.slow
async def test_random_scripts_agree_with_an_independent_model(stack: Stack) -> None:
    """Real runs and the simple model of the loop agree in every field, and in the mutations."""
    random = json.loads(json.dumps(random_fixture(20260, DIFFERENTIAL_CASES)))
    evaluation = await evaluate_on(stack.client, parse_fixture(random), stack.settings)
    assert [] == disagreements(random, evaluation)
    assert {"approved", "approval_required"} == {item.reason for item in evaluation.mutations}


async def test_a_bad_file_starts_nothing(settings: Settings, tmp_path: Path) -> None:
    """A mistake in the file is told before a server is started."""
    path = tmp_path / "cases.json"
    path.write_text("{}", encoding="utf-8")
    with pytest.raises(FixtureError, match="educational label"):
        await evaluate_file(path, settings)


async def test_a_configured_server_is_shared_and_left_clean(
    stack: Stack, settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """On a server of the user's the evaluation brings its own queue, worker and database."""
    monkeypatch.setenv("TEMPORAL_ADDRESS", stack.client.service_client.config.target_host)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    evaluation = await evaluate_file(NINE_CASES, settings)
    assert SUMMARY == evaluation.text()
    assert [] == _names(tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="children are listed under /proc")
async def test_an_interrupted_evaluation_leaves_nothing_running(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Ctrl-C ends server, worker and runs, and removes the data."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    path = tmp_path / "cases.json"
    path.write_text(json.dumps(random_fixture(1, 200)), encoding="utf-8")
    before = _children()

    def interrupt(_done: int, _total: int) -> None:
        task.cancel()

    task = asyncio.create_task(evaluate_file(path, settings, interrupt))
    with pytest.raises(asyncio.CancelledError):
        await task
    assert before == _children()
    assert [path.name] == _names(tmp_path)


def _names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def _children() -> set[str]:
    return {
        child
        for thread in Path("/proc/self/task").iterdir()
        for child in (thread / "children").read_text(encoding="ascii").split()
    }
