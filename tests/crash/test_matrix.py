"""A worker is killed or frozen between any two steps of a run, and another one finishes the run.

Here is a part of the matrix; `make crash` plays all of it, and `tests.crash.cells` lists it. The
cells run side by side, since most of their time is waiting: an activity that died without a word is
tried again after its start-to-close timeout (a write after its heartbeat timeout), and a workflow
task after ten seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import product

import pytest

from tests.crash.arena import Arena
from tests.crash.cells import ALWAYS, WAYS, Database, Spec, Stage, every_cell, pairwise
from tests.crash.places import Action
from tests.crash.records import Record
from triage.faults import Point

pytestmark = pytest.mark.postgres


async def _see(arena: Arena, specs: Sequence[Spec], subtests: pytest.Subtests) -> None:
    played = await asyncio.gather(*map(arena.breaches, specs), return_exceptions=True)
    for spec, breaches in zip(specs, played, strict=True):
        with subtests.test(str(spec)):
            assert [] == breaches, spec.expected


def _cells(*stages: Stage) -> list[Spec]:
    return [spec for spec in pairwise() if spec.stage in stages]


@pytest.mark.long
async def test_a_disturbed_worker_changes_no_decision(
    arena: Arena, subtests: pytest.Subtests
) -> None:
    """Pinning, asking, reading, showing, waiting: the same steps, once, and the same end."""
    stages = (Stage.DECIDING, Stage.LOOPING, Stage.STARTING, Stage.DELIVERING)
    await _see(arena, _cells(*stages), subtests)


@pytest.mark.slow
async def test_a_disturbed_worker_writes_once(arena: Arena, subtests: pytest.Subtests) -> None:
    """Where an effect is possible and nothing is known of it: one commit, receipt and entry."""
    cells = [spec for spec in _cells(Stage.WRITING) if spec.place in ALWAYS]
    await _see(arena, cells, subtests)


@pytest.mark.long
async def test_a_worker_disturbed_around_a_write_writes_once(
    arena: Arena, subtests: pytest.Subtests
) -> None:
    """Whatever else happens around a write: one commit, one receipt and one audit entry say so."""
    cells = [spec for spec in _cells(Stage.WRITING) if spec.place not in ALWAYS]
    await _see(arena, cells, subtests)


@pytest.mark.long
async def test_a_disturbed_worker_settles_what_is_uncertain(
    arena: Arena, subtests: pytest.Subtests
) -> None:
    """A lost answer, a pause, an edit, a signature, a run that is gone: as if undisturbed."""
    await _see(arena, _cells(Stage.BRANCHING, Stage.SWEEPING), subtests)


async def test_an_undisturbed_run_is_what_it_should_be(undisturbed: Record) -> None:
    """The run that all others are compared with reads once, asks twice and writes once."""
    assert ("lookup_component_owner", "apply_labels") == undisturbed.response.tool_sequence
    assert ["call_tool", "final"] == [decision.kind for decision in undisturbed.decisions]
    assert ["lookup_component_owner", "apply_labels"] == [row[2] for row in undisturbed.evidence]
    assert [("op-6", 6, ("bug", "component:api"), True)] == undisturbed.operations
    assert (1, 1, 1) == (undisturbed.receipts, undisturbed.settled, undisturbed.posts)
    assert [("labeled", "bug"), ("labeled", "component:api")] == undisturbed.commits
    assert ("bug", "component:api") == undisturbed.labels
    assert [] == undisturbed.findings


def test_the_matrix_is_whole() -> None:
    """Every fault point is in it, killed and frozen, on both databases, and every cell once."""
    cells = [*every_cell()]
    assert len(cells) == len({str(cell) for cell in cells})
    for point in Point:
        seen = {(cell.action, cell.database) for cell in cells if cell.place.point == point}
        assert {*WAYS} == seen, point
    assert {*product(Action, Database)} == {*WAYS}


def test_the_part_here_is_a_fair_one() -> None:
    """It has what matters most in every way of disturbing, and all else in turn."""
    part = [*pairwise()]
    assert set(part) <= {*every_cell()}
    for place in ALWAYS:
        chosen = [(cell.action, cell.database) for cell in part if cell.place == place]
        assert {*Action, *Database} == {way for ways in chosen for way in ways}, place
    for stage in (Stage.DECIDING, Stage.WRITING, Stage.BRANCHING):
        ways = {(cell.action, cell.database) for cell in part if cell.stage is stage}
        assert 4 == len(ways), stage
    assert {*Stage} == {cell.stage for cell in part}
