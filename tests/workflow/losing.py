"""A desk whose process dies in the middle of an answer, and that tries again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.fixed_rules import rules_with
from tests.workflow.answering import Desk, opened_desk
from tests.workflow.world import World
from triage.contracts.state import PendingView
from triage.storage.admission import Subject
from triage.storage.commands import Commands, HeldCommand


class Killed(Exception):  # noqa: N818 - it is no error of the program
    """Stands for the end of the process."""


class DiesAfter(Commands):
    """Dies where a process may: the run has the answer, and the row does not say so yet."""

    async def accepted(self, held: HeldCommand) -> bool:
        """Never come to record it."""
        raise Killed(held.command_key)


class DiesBefore(Commands):
    """Dies where a process may: the row says where the answer goes, and it has not gone yet."""

    async def sending(self, held: HeldCommand, workflow_id: str) -> bool:
        """Record it, and go no further."""
        await super().sending(held, workflow_id)
        raise Killed(held.command_key)


@dataclass
class Losing:
    """A desk whose first attempt dies, and whose second comes in the future."""

    desk: Desk

    async def says(
        self,
        subject: Subject,
        pending: PendingView,
        *who: str,
        dies: type[Commands] = DiesAfter,
        **changes: Any,  # noqa: ANN401 - any field
    ) -> None:
        """Let somebody answer, and the process die when the run has accepted it, or before."""
        sound = self.desk.answering
        self.desk.answering = replace(sound, commands=dies(self.desk.world.services.store))
        with pytest.raises(Killed):
            await self.desk.says(subject, pending, *who, **changes)
        self.desk.answering = sound

    async def tries_again(self, later: timedelta = timedelta(minutes=2)) -> None:
        """Carry on, when the dead process does not hold the answer any more."""
        store = self.desk.world.services.store
        store._offset += later
        await self.desk.answering.carry_all()
        store._offset -= later


@asynccontextmanager
async def losing(world: World, folder: Path, required: int = 1) -> AsyncIterator[Losing]:
    """Open a desk where so many people have to agree."""
    async with opened_desk(world, folder, rules_with(approvals_required=required)) as opened:
        yield Losing(opened)
