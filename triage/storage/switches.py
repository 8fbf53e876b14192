"""Switches that stop writes at once, for everybody or for one tenant, without a restart.

Why it exists: when something goes wrong, a person must be able to stop every worker in a moment,
from one place. So whoever writes asks here right before, and takes no answer for a no.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import bindparam, or_, select, update
from sqlalchemy.engine import RowMapping

from triage.contracts.canonical import short_hash
from triage.storage.audit import AuditEntry, append
from triage.storage.connections import AsyncConnection
from triage.storage.engine import Store
from triage.storage.rows import insert_first
from triage.storage.schema import switches

EVERYBODY: Final = ""
"""The audit chain of what concerns every tenant."""

MAX_WORDS_CHARS: Final = 500
_WRITES: Final = "writes"
# Built once, since to build a statement takes longer than to run it.
_S: Final = switches.c
_STOPPED: Final = select(_S.name).where(
    or_(_S.name == bindparam("everybody"), _S.name == bindparam("tenant")), _S.stopped
)


@dataclass(frozen=True, kw_only=True)
class Switch:
    """How a switch stands, and who put it there.

    Attributes:
        tenant: whose writes it stops; None means everybody's.
        stopped: whether it stops them.
        by: who changed it last.
        reason: why; empty where writes were allowed again.
        changed_at: when, by the database's clock.
    """

    tenant: str | None
    stopped: bool
    by: str
    reason: str
    changed_at: datetime


class Switches:
    """The switches of one store. A switch that nobody ever touched lets writes through."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def writes_stopped(self, tenant: str | None = None) -> bool:
        """Whether writes are stopped: everybody's, or this tenant's.

        Raises:
            StorageError: it cannot be said, so nothing may be written.
        """
        which = {"everybody": _WRITES, "tenant": switch_name(tenant)}
        async with self._store.read() as connection:
            return (await connection.execute(_STOPPED, which)).first() is not None

    async def stop(self, by: str, reason: str, *, tenant: str | None = None) -> Switch:
        """Stop writes from now on.

        Args:
            by: who stops them.
            reason: why; texts of over 500 characters are cut.
            tenant: whose writes; None means everybody's.
        """
        return await self._turn(tenant, stopped=True, by=by, reason=reason)

    async def allow(self, by: str, *, tenant: str | None = None) -> Switch:
        """Undo `stop` for the same tenant; whoever is stopped by another switch stays stopped."""
        return await self._turn(tenant, stopped=False, by=by, reason="")

    async def list(self) -> tuple[Switch, ...]:
        """Return the switches that were ever touched, everybody's first."""
        async with self._store.read() as connection:
            found = (await connection.execute(select(switches))).mappings().all()
        return tuple(sorted(map(_to_switch, found), key=lambda s: (s.tenant is not None, s.tenant)))

    async def _turn(self, tenant: str | None, *, stopped: bool, by: str, reason: str) -> Switch:
        async with self._store.write() as connection:
            switch = Switch(
                tenant=tenant,
                stopped=stopped,
                by=by[:MAX_WORDS_CHARS],
                reason=reason[:MAX_WORDS_CHARS],
                changed_at=await self._store.now(connection),
            )
            await _put(connection, switch)
            await append(connection, _entry(switch))
        return switch


def switch_name(tenant: str | None) -> str:
    """Return the key of everybody's switch, or of a tenant's."""
    return _WRITES if tenant is None else f"{_WRITES}-{short_hash(tenant)}"


async def _put(connection: AsyncConnection, switch: Switch) -> None:
    values: dict[str, Any] = vars(switch) | {"name": switch_name(switch.tenant)}
    if not await insert_first(connection, switches, values):
        mine = switches.c.name == values["name"]
        await connection.execute(update(switches).where(mine).values(values))


def _to_switch(found: RowMapping) -> Switch:
    return Switch(**{name: value for name, value in found.items() if name != "name"})


def _entry(switch: Switch) -> AuditEntry:
    return AuditEntry(
        tenant=EVERYBODY if switch.tenant is None else switch.tenant,
        kind="writes.stopped" if switch.stopped else "writes.allowed",
        subject=switch_name(switch.tenant),
        at=switch.changed_at,
        details={"by": switch.by, "reason": switch.reason},
    )
