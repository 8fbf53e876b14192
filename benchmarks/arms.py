"""The arms of a measurement: how a run of each is started, approved and seen to its end.

Another framework is measured beside the floor by an arm of its own: ``--peer MODULE:NAME`` names
a function that is called with a `Plan` and a folder and gives, as an asynchronous context manager,
an object with the members of `Arm`. Its module and what that needs are installed by whoever asks
for it; nothing of the kind is a dependency here. `benchmarks/peers` has some, which
`make bench-peers` installs apart and plays.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from pydantic import JsonValue
from temporalio.client import WorkflowHandle

from benchmarks.floor import QUEUE, Floor
from benchmarks.plan import Shape
from benchmarks.stacks import Stack
from tests.workflow.decisions import a_request, final, lookup
from triage.contracts.canonical import canonical_json
from triage.contracts.names import ISSUE_TRIAGE
from triage.contracts.response import Status, TriageResponse
from triage.contracts.search_attributes import TRIAGE_WAITING_SINCE
from triage.storage.documents import SHARED, DocumentKind, DocumentStore
from triage.storage.engine import Store

Handle = WorkflowHandle[Any, Any]

FLOOR: Final = "floor"
FLOOR_AGAIN: Final = "floor again"
PRODUCT: Final = "product"
REPOSITORY: Final = "benchmarks"
"""Where the issues are; each run is about one of its own."""
_TASK_EVENTS: Final = 3
_ACTIVITY_EVENTS: Final = 6
_APPROVAL: Final[dict[str, JsonValue]] = {
    "operation_id": "op-6",
    "version": 6,
    "approver": "maintainer",
}
"""What a run of two steps waits for."""


def peers_of(arms: Iterable[str]) -> list[str]:
    """Return the names of some arms that stand for neither the floor nor the product."""
    return [arm for arm in arms if arm not in (FLOOR, FLOOR_AGAIN, PRODUCT)]


class WrongEnd(Exception):  # noqa: N818 - names what was found
    """A run did not end as it has to, so what it cost says nothing."""


class Arm(Protocol):
    """What is measured; all arms play the same shapes at the same time."""

    @property
    def name(self) -> str:
        """As the report calls it."""

    @property
    def stack(self) -> Stack:
        """The processes whose time and memory it costs."""

    async def prepare(self, shape: Shape) -> None:
        """Make ready for runs of a shape; nothing of it is measured."""

    async def start(self, shape: Shape, run_id: str) -> Handle:
        """Start a run."""

    async def is_waiting(self, shape: Shape, run: Handle) -> bool:
        """Whether a run waits for a person, by one question to the server."""

    async def approve(self, run: Handle) -> None:
        """Approve what a run waits for."""

    async def finish(self, run: Handle) -> None:
        """Wait for a run's end.

        Raises:
            WrongEnd: it is another one than it should be.
        """


@dataclass(frozen=True, slots=True)
class FloorArm:
    """The bare workflow."""

    stack: Stack
    name: str = FLOOR

    async def prepare(self, shape: Shape) -> None:
        """Do nothing."""

    async def start(self, shape: Shape, run_id: str) -> Handle:
        """Start as many empty activities as the product's run has real ones."""
        return await self.stack.client.start_workflow(
            Floor.run, args=[shape.activities, shape.waits], id=run_id, task_queue=QUEUE
        )

    async def is_waiting(self, shape: Shape, run: Handle) -> bool:
        """Whether the activities are done and the workflow task after them, too."""
        described = await run.describe()
        before = 1 + _TASK_EVENTS + _ACTIVITY_EVENTS * shape.activities
        return described.history_length >= before

    async def approve(self, run: Handle) -> None:
        """Send the signal."""
        await run.signal(Floor.approve)

    async def finish(self, run: Handle) -> None:
        """Wait for its end."""
        await run.result()


class ProductArm:
    """IssueTriage, with everything that it does for a run."""

    name = PRODUCT

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self._models: dict[str, str] = {}

    async def prepare(self, shape: Shape) -> None:
        """Store the decisions that runs of this shape play."""
        if not shape.recorded:
            return
        script = [*[lookup()] * (shape.steps - 1), final("owners-api")]
        store = await Store.open(self.stack.settings.database_url)
        try:
            digest = await DocumentStore(store).put(
                SHARED, DocumentKind.SCRIPT, canonical_json(script)
            )
        finally:
            await store.close()
        self._models[shape.name] = f"recorded:{digest}"

    async def start(self, shape: Shape, run_id: str) -> Handle:
        """Start a run about an issue of its own."""
        options: dict[str, JsonValue] = {
            "context": {"repository": REPOSITORY, "issue": run_id},
        }
        if shape.recorded:
            options |= {"model": self._models[shape.name], "max_steps": shape.steps}
        if shape.waits:
            options["mode"] = "approve"
        return await self.stack.client.start_workflow(
            ISSUE_TRIAGE,
            args=[a_request(), options],
            id=run_id,
            task_queue=self.stack.settings.task_queue,
            result_type=TriageResponse,
        )

    async def is_waiting(self, shape: Shape, run: Handle) -> bool:  # noqa: ARG002 - each shape says so alike
        """Whether its search attributes say so."""
        described = await run.describe()
        return described.typed_search_attributes.get(TRIAGE_WAITING_SINCE) is not None

    async def approve(self, run: Handle) -> None:
        """Send the signal."""
        await run.signal("approve", _APPROVAL)

    async def finish(self, run: Handle) -> None:
        """Wait for its response, which has to be `completed`."""
        response: TriageResponse = await run.result()
        if response.status is not Status.COMPLETED:
            raise WrongEnd(f"{run.id} ended {response.status}: {response.failure}")
