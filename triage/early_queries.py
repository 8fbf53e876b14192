"""Keeps a query that comes at the wrong moment from spoiling its run.

Why it exists: a worker that does not know a run may be asked about it while a workflow task of it
waits. The SDK (temporalio 1.35.0) then hands the run what that task is about, too, but with the
time and the flags of the task before, and goes on with what came of it: a deadline that has passed
has not passed for the run, and the history does not replay. So such a query fails, which makes the
SDK forget the run, and the workflow task starts it afresh from its history.

A query may also come while a local activity of the run is under way. The SDK then completes the
workflow task as soon as the activity has ended, with its result recorded and the run not yet told.
A signal that comes just then reaches the run before the result does; in a replay the result is
there first. A run that minds the difference, as one does that is edited, cannot be replayed any
more, and no worker can go on with it. So such a query is left unanswered: the server asks it again
when the workflow task is over, which is as soon as the run has nothing local under way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.worker import (
    UnsandboxedWorkflowRunner,
    WorkflowInstance,
    WorkflowInstanceDetails,
)
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from triage.kept_runs import KeptRuns
from triage.patient_queries import ASK_AGAIN

_ON_ITS_OWN: Final = "legacy_query"
"""What the SDK calls a query that comes without a workflow task."""
_ASKS: Final = frozenset({"query_workflow", "remove_from_cache"})


@dataclass(frozen=True)
class GuardedRunner(SandboxedWorkflowRunner):
    """The SDK's sandbox, for runs that no early query spoils.

    Attributes:
        kept: what is told of them; None if nobody wants to know.
    """

    kept: KeptRuns | None = None

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        """Return a run that refuses what it is handed before its time."""
        return _Guarded(super().create_instance(det), self.kept)


class BareRunner(UnsandboxedWorkflowRunner):
    """No sandbox, for runs that no early query spoils."""

    def __init__(self, kept: KeptRuns | None = None) -> None:
        """Tell `kept` of them, if anybody."""
        self._kept = kept

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        """Return a run that refuses what it is handed before its time."""
        return _Guarded(super().create_instance(det), self._kept)


class _Guarded(WorkflowInstance):
    """One run; the SDK asks nothing of it at the same time."""

    def __init__(self, run: WorkflowInstance, kept: KeptRuns | None = None) -> None:
        self._run = run
        self._kept = kept
        self._replayed_at: int | None = None
        self._under_way: set[int] = set()

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        """Let the run go on, unless what it is handed belongs to a task that has not begun."""
        if self._is_early(act):
            return _refused()
        if self._under_way and _only_asks_within_a_task(act):
            return _nothing_said()
        if not _only_asks(act):
            self._replayed_at = act.timestamp.ToNanoseconds() if act.is_replaying else None
        completion = self._run.activate(act)
        self._follow_local_activities(act, completion)
        if self._kept is not None:
            self._tell(self._kept, act)
        return completion

    def _tell(self, kept: KeptRuns, act: WorkflowActivation) -> None:
        if any(job.HasField("remove_from_cache") for job in act.jobs):
            kept.gone(act.run_id)
        else:
            kept.used(act.run_id, is_busy=bool(self._under_way))

    def _follow_local_activities(
        self, act: WorkflowActivation, completion: WorkflowActivationCompletion
    ) -> None:
        """Keep the numbers of those that were asked for and have no result yet."""
        done = (job.resolve_activity for job in act.jobs if job.HasField("resolve_activity"))
        self._under_way.difference_update(result.seq for result in done if result.is_local)
        said = completion.successful.commands
        self._under_way.update(
            command.schedule_local_activity.seq
            for command in said
            if command.HasField("schedule_local_activity")
        )

    def _is_early(self, act: WorkflowActivation) -> bool:
        """Whether this is said to be new, and yet no time has passed since what was replayed.

        A workflow task that has begun has a beginning of its own, to the nanosecond.
        """
        is_new = not act.is_replaying and not _only_asks(act)
        return is_new and act.timestamp.ToNanoseconds() == self._replayed_at

    def get_serialization_context(self, command_info: Any) -> Any:  # noqa: ANN401 - the SDK's own
        """Answer as the run does, without going into its sandbox: this only says what it is."""
        return _inside(self._run).get_serialization_context(command_info)

    def get_external_store_context(self, command_info: Any) -> Any:  # noqa: ANN401 - the SDK's own
        """Answer as the run does, likewise."""
        return _inside(self._run).get_external_store_context(command_info)

    def get_info(self) -> Any:  # noqa: ANN401 - the SDK's own
        """Answer as the run does."""
        return self._run.get_info()

    def get_thread_id(self) -> int | None:
        """Answer as the run does."""
        return self._run.get_thread_id()


def _inside(run: Any) -> Any:  # noqa: ANN401 - the SDK has no name for it
    """Return what runs in the sandbox, where there is one; the SDK asks it for every payload."""
    sandboxed = getattr(run, "globals_and_locals", {}).get("__temporal_in_sandbox")
    return run if sandboxed is None else sandboxed.instance


def _only_asks(act: WorkflowActivation) -> bool:
    return all(job.WhichOneof("variant") in _ASKS for job in act.jobs)


def _only_asks_within_a_task(act: WorkflowActivation) -> bool:
    """Whether this is nothing but queries that came along with a workflow task."""
    return bool(act.jobs) and all(
        job.HasField("query_workflow") and job.query_workflow.query_id != _ON_ITS_OWN
        for job in act.jobs
    )


def _nothing_said() -> WorkflowActivationCompletion:
    completion = WorkflowActivationCompletion()
    completion.successful.SetInParent()
    return completion


def _refused() -> WorkflowActivationCompletion:
    completion = WorkflowActivationCompletion()
    completion.failed.failure.message = ASK_AGAIN
    completion.failed.failure.application_failure_info.type = "AskAgain"
    return completion
