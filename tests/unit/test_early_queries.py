"""A query that comes at the wrong moment does not spoil its run."""

from __future__ import annotations

from typing import Any, cast

import pytest
from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.client import OutboundInterceptor, QueryWorkflowInput, WorkflowQueryFailedError
from temporalio.worker import WorkflowInstance

from triage.early_queries import _Guarded
from triage.patient_queries import ASK_AGAIN, PatientQueries


class _Run:
    """Stands for a run of the SDK: it notes what it is handed."""

    def __init__(self) -> None:
        self.handed: list[list[str | None]] = []

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        self.handed.append([job.WhichOneof("variant") for job in act.jobs])
        completion = WorkflowActivationCompletion()
        completion.successful.SetInParent()
        return completion


def _activation(job: str, *, second: int, replaying: bool) -> WorkflowActivation:
    act = WorkflowActivation(is_replaying=replaying)
    act.timestamp.FromSeconds(second)
    getattr(act.jobs.add(), job).SetInParent()
    return act


def _answers(*acts: WorkflowActivation) -> tuple[list[str | None], _Run]:
    run = _Run()
    guarded = _Guarded(cast("WorkflowInstance", run))
    return [guarded.activate(act).WhichOneof("status") for act in acts], run


def test_what_comes_at_the_time_of_the_last_replayed_task_is_refused() -> None:
    """The events of a task that has not begun never reach the run."""
    statuses, run = _answers(
        _activation("initialize_workflow", second=1, replaying=True),
        _activation("signal_workflow", second=1, replaying=False),
    )
    assert ["successful", "failed"] == statuses
    assert [["initialize_workflow"]] == run.handed


@pytest.mark.parametrize(
    ("job", "second", "replaying"),
    [
        pytest.param("signal_workflow", 2, False, id="the next workflow task"),
        pytest.param("resolve_activity", 1, True, id="a marker that is replayed"),
        pytest.param("query_workflow", 1, False, id="a query with nothing waiting"),
        pytest.param("remove_from_cache", 1, False, id="being forgotten"),
    ],
)
def test_everything_else_reaches_the_run(job: str, second: int, replaying: bool) -> None:
    """No ordinary workflow task, replay, query or eviction is refused."""
    statuses, run = _answers(
        _activation("initialize_workflow", second=1, replaying=True),
        _activation(job, second=second, replaying=replaying),
    )
    assert ["successful", "successful"] == statuses
    assert [["initialize_workflow"], [job]] == run.handed


def test_a_run_that_was_never_replayed_is_never_refused() -> None:
    """A local activity answers within the time of its workflow task."""
    statuses, _ = _answers(
        _activation("initialize_workflow", second=1, replaying=False),
        _activation("resolve_activity", second=1, replaying=False),
    )
    assert ["successful", "successful"] == statuses


class _Busy(_Run):
    """A run that asks for a local activity, numbered 1, whenever it begins or gets a signal."""

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        completion = super().activate(act)
        if self.handed[-1] != ["query_workflow"] and self.handed[-1] != ["resolve_activity"]:
            completion.successful.commands.add().schedule_local_activity.seq = 1
        return completion


def _query(name: str) -> WorkflowActivation:
    act = _activation("query_workflow", second=1, replaying=False)
    act.jobs[0].query_workflow.query_id = name
    return act


def _result(seq: int, *, is_local: bool) -> WorkflowActivation:
    act = _activation("resolve_activity", second=1, replaying=False)
    act.jobs[0].resolve_activity.seq = seq
    act.jobs[0].resolve_activity.is_local = is_local
    return act


BEGIN = _activation("initialize_workflow", second=1, replaying=False)
UNASKED = [["initialize_workflow"], ["resolve_activity"]]


@pytest.mark.parametrize(
    ("query", "result", "handed"),
    [
        pytest.param("q1", None, UNASKED[:1], id="under way"),
        pytest.param("q1", _result(2, is_local=True), UNASKED, id="another one has ended"),
        pytest.param("q1", _result(1, is_local=False), UNASKED, id="another kind has ended"),
        pytest.param(
            "q1", _result(1, is_local=True), [*UNASKED, ["query_workflow"]], id="it has ended"
        ),
        pytest.param(
            "legacy_query", None, [*UNASKED[:1], ["query_workflow"]], id="it came on its own"
        ),
    ],
)
def test_no_question_is_answered_during_a_local_activity(
    query: str, result: WorkflowActivation | None, handed: list[list[str | None]]
) -> None:
    """A query of a workflow task is left to the server, and asks nothing of the run."""
    run = _Busy()
    guarded = _Guarded(cast("WorkflowInstance", run))
    acts = [BEGIN, *([result] if result else []), _query(query)]
    completions = [guarded.activate(act) for act in acts]
    assert ["successful"] * len(acts) == [done.WhichOneof("status") for done in completions]
    assert [] == [*completions[-1].successful.commands]
    assert handed == run.handed


def test_a_run_is_forgotten_during_a_local_activity() -> None:
    """An eviction is no query."""
    run = _Busy()
    guarded = _Guarded(cast("WorkflowInstance", run))
    for act in (BEGIN, _activation("remove_from_cache", second=1, replaying=False)):
        guarded.activate(act)
    assert [["initialize_workflow"], ["remove_from_cache"]] == run.handed


class _Answers(OutboundInterceptor):
    """The far end of a client: it gives the answers that it holds, one by one."""

    def __init__(self, answers: list[object]) -> None:
        self.answers = answers

    async def query_workflow(self, input: QueryWorkflowInput) -> object:  # noqa: A002 - the SDK's name
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


async def _ask(far_end: _Answers) -> object:
    return (
        await PatientQueries()
        .intercept_client(far_end)
        .query_workflow(
            QueryWorkflowInput(
                id="w",
                run_id=None,
                query="state",
                args=[],
                reject_condition=None,
                headers={},
                ret_type=None,
                rpc_metadata={},
                rpc_timeout=None,
                **cast("dict[str, Any]", {}),
            )
        )
    )


async def test_a_client_asks_again() -> None:
    """Nobody who asks through our own client sees such a refusal."""
    far_end = _Answers([WorkflowQueryFailedError(ASK_AGAIN), "the state"])
    assert "the state" == await _ask(far_end)


async def test_a_client_does_not_repeat_another_failure() -> None:
    """A query that the run itself cannot answer fails at once."""
    far_end = _Answers([WorkflowQueryFailedError("unknown query"), "never asked"])
    with pytest.raises(WorkflowQueryFailedError, match="unknown query"):
        await _ask(far_end)
    assert ["never asked"] == far_end.answers
