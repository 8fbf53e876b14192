"""What is disturbed: the triage of an issue, or an investigation of the read-only loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from temporalio.client import WorkflowHandle

from tests.crash.records import Record, evidence_of
from tests.crash.scene import Cell
from triage.contracts.canonical import short_hash
from triage.contracts.incident import LoopResult
from triage.contracts.names import EVIDENCE_LOOP
from triage.contracts.options import DEFAULT_TENANT
from triage.contracts.response import TriageResponse
from triage.storage.engine import Store


class Subject(Protocol):
    """A run that can be started, helped along and looked at."""

    @property
    def cell(self) -> Cell:
        """Where it runs."""
        ...

    async def begin(self) -> WorkflowHandle[Any, Any]:
        """Start it."""
        ...

    async def help(self, handle: WorkflowHandle[Any, Any]) -> None:
        """Do what a person has to do."""
        ...

    async def record(
        self, handle: WorkflowHandle[Any, Any], *, allow_repeats: bool = False
    ) -> object:
        """Wait for its end, and collect what it did."""
        ...


@dataclass(frozen=True)
class Triage:
    """The triage of one issue."""

    cell: Cell

    async def begin(self) -> WorkflowHandle[Any, TriageResponse]:
        """See `Subject`."""
        return await self.cell.start()

    async def help(self, handle: WorkflowHandle[Any, Any]) -> None:
        """Approve what it proposes."""
        await self.cell.approve(handle)

    async def record(
        self, handle: WorkflowHandle[Any, Any], *, allow_repeats: bool = False
    ) -> Record:
        """See `Subject`."""
        return await self.cell.record(handle, allow_repeats=allow_repeats)


@dataclass(frozen=True)
class LoopRecord:
    """What an investigation answered, and the rows that it left in the evidence store."""

    result: LoopResult
    evidence: list[tuple[int, str, str, str]]


@dataclass(frozen=True)
class Investigation:
    """One read of the read-only loop, then its end."""

    cell: Cell

    async def begin(self) -> WorkflowHandle[Any, LoopResult]:
        """See `Subject`."""
        return await self.cell.client.start_workflow(
            EVIDENCE_LOOP,
            args=[{"incident_id": "INC-1", "limit": 3, "evidence": {"latency": 900}}],
            id=self.cell.name,
            task_queue=self.cell.settings.task_queue,
            result_type=LoopResult,
        )

    async def help(self, handle: WorkflowHandle[Any, Any]) -> None:
        """Do nothing: nobody is asked."""

    async def record(
        self,
        handle: WorkflowHandle[Any, Any],
        *,
        allow_repeats: bool = False,
    ) -> LoopRecord:
        """See `Subject`."""
        result = await self.cell.answer(handle)
        scope = short_hash(DEFAULT_TENANT, handle.id, str(handle.first_execution_run_id))
        store = await Store.open(self.cell.settings.database_url)
        try:
            return LoopRecord(result, await evidence_of(store, {scope}))
        finally:
            await store.close()
