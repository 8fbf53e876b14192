"""Keeps a query that comes before its run's next workflow task from spoiling the run.

Why it exists: a worker that does not know a run may be asked about it while a workflow task of it
waits. The SDK (temporalio 1.35.0) then hands the run what that task is about, too, but with the
time and the flags of the task before, and goes on with what came of it: a deadline that has passed
has not passed for the run, and the history does not replay. So such a query fails, which makes the
SDK forget the run, and the workflow task starts it afresh from its history.
"""

from __future__ import annotations

from typing import Any, Final

from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.worker import (
    UnsandboxedWorkflowRunner,
    WorkflowInstance,
    WorkflowInstanceDetails,
)
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from triage.patient_queries import ASK_AGAIN

_ASKS: Final = frozenset({"query_workflow", "remove_from_cache"})


class GuardedRunner(SandboxedWorkflowRunner):
    """The SDK's sandbox, for runs that no early query spoils."""

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        """Return a run that refuses what it is handed before its time."""
        return _Guarded(super().create_instance(det))


class BareRunner(UnsandboxedWorkflowRunner):
    """No sandbox, for runs that no early query spoils."""

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        """Return a run that refuses what it is handed before its time."""
        return _Guarded(super().create_instance(det))


class _Guarded(WorkflowInstance):
    """One run; the SDK asks nothing of it at the same time."""

    def __init__(self, run: WorkflowInstance) -> None:
        self._run = run
        self._replayed_at: int | None = None

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        """Let the run go on, unless what it is handed belongs to a task that has not begun."""
        if self._is_early(act):
            return _refused()
        if not _only_asks(act):
            self._replayed_at = act.timestamp.ToNanoseconds() if act.is_replaying else None
        return self._run.activate(act)

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


def _refused() -> WorkflowActivationCompletion:
    completion = WorkflowActivationCompletion()
    completion.failed.failure.message = ASK_AGAIN
    completion.failed.failure.application_failure_info.type = "AskAgain"
    return completion
