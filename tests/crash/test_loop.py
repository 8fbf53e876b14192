"""The read-only loop survives a killed worker like the triage of an issue does."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

import pytest
from temporalio.client import WorkflowHandle

from tests.crash.conftest import OpenCell
from tests.crash.scene import Cell, evidence_of
from triage.contracts.canonical import short_hash
from triage.contracts.incident import LoopResult
from triage.contracts.names import EVIDENCE_LOOP
from triage.contracts.options import DEFAULT_TENANT
from triage.storage.engine import Store

PLACES: Final = (
    "before open_incident 1",
    "after open_incident 1",
    "command choose_action 1",
    "before choose_action 1",
    "after choose_action 1",
    "before read_reference 1",
    "after read_reference 1",
    "command choose_action 2",
    "after choose_action 2",
)


@dataclass(frozen=True)
class LoopRecord:
    """What an investigation answered, and the rows that it left in the evidence store."""

    result: LoopResult
    evidence: list[tuple[int, str, str, str]]


async def _start(cell: Cell) -> WorkflowHandle[object, LoopResult]:
    """Start an investigation: one read, then the end."""
    return await cell.client.start_workflow(
        EVIDENCE_LOOP,
        args=[{"incident_id": "INC-1", "limit": 3, "evidence": {"latency": 900}}],
        id=cell.name,
        task_queue=cell.settings.task_queue,
        result_type=LoopResult,
    )


async def _record(cell: Cell, handle: WorkflowHandle[object, LoopResult]) -> LoopRecord:
    result = await cell.answer(handle)
    scope = short_hash(DEFAULT_TENANT, handle.id, str(handle.first_execution_run_id))
    store = await Store.open(cell.settings.database_url)
    try:
        return LoopRecord(result, await evidence_of(store, {scope}))
    finally:
        await store.close()


async def _play(cell: Cell, place: str | None) -> LoopRecord:
    first = await cell.worker(place)
    handle = await _start(cell)
    if place:
        await cell.dies(first, handle)
    last = await cell.worker() if place else first
    record = await _record(cell, handle)
    await last.kill()
    return record


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_a_killed_worker_changes_no_investigation(
    open_cell: OpenCell, subtests: pytest.Subtests
) -> None:
    """Wherever a worker is killed, the loop makes the same reads, once, and ends alike."""
    places = (None, *PLACES)
    cells = [open_cell(f"loop {place}") for place in places]
    undisturbed, *records = await asyncio.gather(*map(_play, cells, places))
    assert (1, 1) == (undisturbed.result.reads, len(undisturbed.evidence))
    for place, record in zip(PLACES, records, strict=True):
        with subtests.test(place):
            assert undisturbed == record
