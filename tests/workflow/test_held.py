"""What a run holds in its worker's memory while it waits for a person, for days."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from dataclasses import is_dataclass
from types import CoroutineType
from typing import Any, Final

import pytest

from tests.workflow.runs import Run
from tests.workflow.world import World
from triage.contracts.intent import Intent, Proposal
from workflows.carried import Deadline, Wait
from workflows.loop import TriageLoop

_ROOM: Final = 128
"""Bytes; a pydantic record of as many fields takes a thousand."""


Begun = dict[str, dict[str, Any]]


def _begun(run: Run) -> Begun:
    """Return what a waiting run has begun and not ended, from the outside in, and its variables."""
    for one in gc.get_objects():
        if isinstance(one, CoroutineType) and one.cr_code is TriageLoop.run.__code__:
            begun = dict(_chain(one))
            if begun["Writer.attempt"]["self"].target.repository == run.id:
                return begun
    raise AssertionError("no loop waits")


def _chain(outermost: object) -> Iterator[tuple[str, dict[str, Any]]]:
    awaited: Any = outermost
    while isinstance(awaited, CoroutineType):
        yield awaited.cr_code.co_qualname, awaited.cr_frame.f_locals if awaited.cr_frame else {}
        awaited = awaited.cr_await


async def test_a_wait_holds_nothing_of_what_led_to_it(world: World) -> None:
    """Neither the step nor the model's answer is held while a person is waited for."""
    run = await world.start(model="rules", mode="approve")
    await run.waiting()
    begun = _begun(run)
    ours = [name for name in begun if name.startswith(("TriageLoop.", "Writer."))]
    assert ["TriageLoop.run", "TriageLoop._carry_out", "Writer.attempt", "Writer.go_on"] == ours
    assert begun["Writer.attempt"]["operation"] is begun["Writer.attempt"]["asked"]


@pytest.mark.parametrize("record", [Deadline, Intent, Proposal, Wait])
def test_what_a_wait_keeps_is_small(record: type) -> None:
    """The records of a wait have slots, and neither a dictionary nor a set of given fields."""
    assert is_dataclass(record)
    empty = record.__new__(record)
    assert not hasattr(empty, "__dict__")
    assert sys.getsizeof(empty) <= _ROOM
