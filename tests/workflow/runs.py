"""One run of IssueTriage as a test sees it: its answer, its state, and how to talk to it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Self, TypeVar

from pydantic import JsonValue
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import WorkflowExecutionStatus, WorkflowHandle, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from triage.contracts.approval import ReviewAnswer
from triage.contracts.response import Status, TriageResponse
from triage.contracts.state import MutationRecord, PendingView, StateView

SECONDS: Final = 90.0
"""How long anything may take before a test gives up on it: far longer than it ever needs."""

Found = TypeVar("Found")
Change = JsonValue | None


async def eventually(
    look: Callable[[], Awaitable[Found | None]], seconds: float = SECONDS
) -> Found:
    """Look again and again until there is something to see."""
    async with asyncio.timeout(seconds):
        while True:
            found = await look()
            if found:
                return found
            # There is no event to wait for: the run is asked, as a person would ask it.
            await asyncio.sleep(0.01)


@dataclass(frozen=True)
class Run:
    """A started run; `handle` is the SDK's own."""

    handle: WorkflowHandle[Any, TriageResponse]

    @property
    def id(self) -> str:
        """The workflow id, which is also the repository of the run's issue."""
        return self.handle.id

    async def response(self, seconds: float = SECONDS) -> TriageResponse:
        """Return what the run answers, or say what its workflow tasks failed on."""
        try:
            async with asyncio.timeout(seconds):
                return await self.handle.result()
        except TimeoutError:
            raise AssertionError(f"the run does not end: {await self.task_failures()}") from None

    async def state(self) -> StateView:
        """Ask for the full state."""
        found: StateView = await self.handle.query("state", result_type=StateView)
        return found

    async def pending(self) -> PendingView | None:
        """Ask for the pending operation."""
        found: PendingView | None = await self.handle.query(
            "pending", result_type=_optional(PendingView)
        )
        return found

    async def mutations(self) -> list[MutationRecord]:
        """Ask for the record of writes."""
        found: list[MutationRecord] = await self.handle.query(
            "mutations", result_type=list[MutationRecord]
        )
        return found

    async def operation_states(self) -> list[tuple[str | None, int, str]]:
        """Return the operations of the run: id, version and what became of each."""
        return [(o.operation_id, o.version, o.state) for o in (await self.state()).operations]

    async def mutation_facts(self) -> list[tuple[str | None, bool, bool, str]]:
        """Return the mutations of the run: id, executed, authorised and the reason."""
        found = await self.mutations()
        return [(r.operation_id, r.executed, r.authorized, r.reason) for r in found]

    async def refusal_codes(self) -> list[str]:
        """Return the codes of the reviews that were refused and kept."""
        return [refusal.code for refusal in (await self.state()).refusals]

    async def waiting(self) -> PendingView:
        """Return the pending operation once the run waits for a person."""
        return await eventually(self.pending)

    async def waiting_at(self, version: int) -> PendingView:
        """Return the pending operation once the run waits at this version."""

        async def look() -> PendingView | None:
            pending = await self.pending()
            return pending if pending and pending.version == version else None

        return await eventually(look)

    async def reaches(self, check: Callable[[StateView], bool]) -> StateView:
        """Return the state once it is as `check` wants it."""

        async def look() -> StateView | None:
            state = await self.state()
            return state if check(state) else None

        return await eventually(look)

    async def signal(self, name: str, *values: Any) -> Self:  # noqa: ANN401 - any message at all
        """Send a signal with any number of arguments."""
        await self.handle.signal(name, args=values)
        return self

    async def review(self, verdict: str, **changes: Any) -> ReviewAnswer:  # noqa: ANN401 - any value
        """Send the `review` update for what is pending now, with some fields changed."""
        pending = await self.waiting()
        return await self.update({**envelope(pending), "verdict": verdict, **changes})

    async def update(self, *values: Any) -> ReviewAnswer:  # noqa: ANN401 - any message at all
        """Send the `review` update as it is."""
        async with asyncio.timeout(SECONDS):
            answer: ReviewAnswer = await self.handle.execute_update(
                "review", args=values, result_type=ReviewAnswer
            )
            return answer

    async def events(self) -> list[HistoryEvent]:
        """Return the history so far."""
        return list((await self.handle.fetch_history()).events)

    async def task_failures(self) -> list[str]:
        """Return why workflow tasks failed in our code: it should never be for a message.

        The server also ends a task by itself, without a failure, when much arrives meanwhile.
        """
        events = await self.events()
        attributes = [event.workflow_task_failed_event_attributes for event in events]
        return [failed.failure.message for failed in attributes if failed.HasField("failure")]

    async def is_running(self) -> bool:
        """Whether the server says that the run has not ended."""
        return (await self.handle.describe()).status is WorkflowExecutionStatus.RUNNING


async def refusal_of(answer: Awaitable[object]) -> str | None:
    """Return the code with which an update was refused, or None if it was not."""
    try:
        await answer
    except WorkflowUpdateFailedError as error:
        return error.cause.type if isinstance(error.cause, ApplicationError) else str(error.cause)
    return None


def envelope(pending: PendingView, **changes: Change) -> dict[str, JsonValue]:
    """A maintainer's envelope for exactly what is pending, with some fields changed."""
    return {
        "operation_id": pending.operation_id,
        "version": pending.version,
        "approver": "maintainer",
        "digest": pending.digest,
        **changes,
    }


def outcome(response: TriageResponse) -> tuple[Status, str | None]:
    """The two fields that say how a run ended."""
    return response.status, response.failure.value if response.failure else None


def _optional(model: type[Found]) -> Any:  # noqa: ANN401 - a union is no type
    return model | None
