"""Where cells are played and judged: one server, both databases, an undisturbed run to compare."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path

import psycopg
from psycopg import sql
from sqlalchemy import make_url

from tests.crash.cells import Database, Kind, Spec
from tests.crash.deliveries import delivered_undisturbed, play_delivery
from tests.crash.leftovers import play_leftover, settled_undisturbed
from tests.crash.plays import Seen, play, undisturbed
from tests.crash.records import Record, Traces, differences
from tests.crash.scenarios import Scenario
from tests.crash.scene import Cell, Ground, make_template
from tests.crash.starts import play_start
from tests.crash.subjects import Investigation, Triage
from tests.fakes.commit_log import Action as Change
from triage.embedded import EmbeddedServer, ServerOptions
from triage.storage.migrate import upgrade

_TEMPLATE = "template_of_cells"


class Arena:
    """Plays cells.

    Args:
        ground: what they share.
        postgres: the URL of a server, for cells on PostgreSQL.
    """

    def __init__(self, ground: Ground, postgres: str = "") -> None:
        self.ground = ground
        self._postgres = postgres
        self._numbers = count(1)
        self._records: dict[str, asyncio.Task[object]] = {}
        self._template: asyncio.Task[str] | None = None

    async def undisturbed(self, kind: Kind, scenario: Scenario) -> object:
        """What a run that nothing happens to does and leaves behind."""
        name = f"undisturbed {kind} {scenario.name}"
        if name not in self._records:
            self._records[name] = asyncio.create_task(self._undisturbed(name, kind, scenario))
        return await self._records[name]

    async def _undisturbed(self, name: str, kind: Kind, scenario: Scenario) -> object:
        record = await self._play_undisturbed(name, kind, scenario)
        assert not isinstance(record, Traces) or [] == record.findings
        return record

    async def _play_undisturbed(self, name: str, kind: Kind, scenario: Scenario) -> object:
        async with self.ground.cell(name, scenario) as cell:
            match kind:
                case Kind.LOOP:
                    return await undisturbed(Investigation(cell))
                case Kind.DELIVERY:
                    return await delivered_undisturbed(cell)
                case Kind.LEFT:
                    return await settled_undisturbed(cell)
                case Kind.RUN | Kind.START:
                    return await undisturbed(Triage(cell))

    async def breaches(self, spec: Spec) -> list[str]:
        """Play a cell, and say how it differs from what it should have come to."""
        expected = await self.undisturbed(spec.baseline, spec.scenario)
        url = await self.database(spec.database)
        async with self.ground.cell(str(spec), spec.scenario, url) as cell:
            seen = await _played(spec, cell)
        later = _with_repeats(expected) if spec.may_repeat else expected
        again = [f"{name}, once thawed" for name in differences(later, seen.second)]
        return [*differences(expected, seen.first), *again]

    async def database(self, kind: Database) -> str | None:
        """Make an empty database and return its URL; None stands for a copy of the file."""
        if kind is Database.SQLITE:
            return None
        if self._template is None:
            self._template = asyncio.create_task(self._make_template())
        return await asyncio.to_thread(self._create, await self._template)

    async def _make_template(self) -> str:
        await upgrade(self._create("template0", _TEMPLATE))
        return _TEMPLATE

    def _create(self, template: str, name: str = "") -> str:
        name = name or f"cell_{next(self._numbers)}"
        url = make_url(self._postgres)
        address = url.set(drivername="postgresql").render_as_string(hide_password=False)
        with psycopg.connect(address, autocommit=True) as connection:
            names = map(sql.Identifier, (name, template))
            connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(*names))
        return url.set(database=name).render_as_string(hide_password=False)


async def _played(spec: Spec, cell: Cell) -> Seen:
    match spec.kind:
        case Kind.LOOP:
            return await play(Investigation(cell), spec.place, spec.action)
        case Kind.LEFT:
            return await play_leftover(cell, spec.place, spec.action)
        case Kind.DELIVERY:
            return await play_delivery(cell, spec.place, spec.action)
        case Kind.START:
            return await play_start(cell, spec.place, spec.action)
        case Kind.RUN:
            return await play(Triage(cell), spec.place, spec.action)


def _with_repeats(expected: object) -> Record:
    """Say what a late second request leaves: two lines in the tracker's log, and no change.

    The tracker has no conditional write, so all that is left is that the labels are there already.
    """
    assert isinstance(expected, Record)
    again = [(Change.REPEATED.value, label) for _, label in expected.commits]
    return replace(expected, commits=[*expected.commits, *again], posts=expected.posts + 1)


@asynccontextmanager
async def opened_ground(folder: Path) -> AsyncIterator[Ground]:
    """Run a server on a file, as `triage up` does, with room for cells beside it."""
    cells = folder / "cells"
    cells.mkdir()
    template = await make_template(cells)
    async with EmbeddedServer(ServerOptions(db_filename=folder / "temporal.db")) as server:
        yield Ground(client=server.client, connection=server.environment(), template=template)
        # Nothing that is in it is needed any more.
        os.kill(server.pid, signal.SIGKILL)
