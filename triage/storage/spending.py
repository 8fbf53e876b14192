"""What calls of models cost: reserved before each, settled after it, and summed by the day.

Why it exists: budgets that runs share hold only if two workers cannot both spend the last of one.
So one transaction looks at what is spent and reserved today and reserves the next call, and a call
that nobody settles stays charged as it was reserved. Who wrote an issue is known by a digest alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, Table, and_, case, delete, func, insert, select, update

from triage.contracts.canonical import short_hash
from triage.contracts.payloads import Usage
from triage.contracts.repositories import folded_repository
from triage.storage.connections import AsyncConnection
from triage.storage.engine import Store
from triage.storage.rows import first_row, insert_first
from triage.storage.schema import model_calls, spending_accounts

NOTHING: Final = Usage()


@dataclass(frozen=True, kw_only=True)
class Account:
    """Whom a run is charged to: three digests, which say nothing about anybody."""

    tenant_key: str
    repository_key: str
    author_key: str

    @classmethod
    def of(cls, tenant: str, tracker: str, repository: str, author: str) -> Account:
        """Return the account of a run; issues without a known author share that part of one.

        Spellings that differ in case are one repository, and one author.
        """
        place = folded_repository(repository)
        return cls(
            tenant_key=short_hash("tenant", tenant),
            repository_key=short_hash("repository", tenant, tracker, place),
            author_key=short_hash("author", tenant, tracker, author.casefold()),
        )


@dataclass(frozen=True, kw_only=True)
class Call:
    """One attempt of one call of a model.

    Attributes:
        scope: of the run.
        key: a digest of the execution and its activity.
        attempt: counted from 1.
    """

    scope: str
    key: str
    attempt: int


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What is spent or reserved.

    Attributes:
        lost: by earlier attempts of this very call, whose answers never arrived.
        day: by all runs of the tenant today, in UTC.
        repository: by those in the run's repository.
        author: by those on issues of the run's author.
    """

    lost: Usage
    day: Usage
    repository: Usage
    author: Usage


Fit = Callable[[Spent], Usage | None]
"""Says what to reserve, given what is spent; None refuses the call."""


class Spending:
    """The calls of one store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def open_account(self, scope: str, account: Account) -> None:
        """Note whom a run is charged to; the first note stands."""
        async with self._store.write() as connection:
            now = await self._store.now(connection)
            values = {"scope": scope, "created_at": now, **vars(account)}
            await insert_first(connection, spending_accounts, values)

    async def reserve(self, call: Call, fit: Fit) -> Spent:
        """Reserve a call, or do nothing if `fit` refuses it.

        Returns:
            What was spent or reserved before.

        Raises:
            LookupError: the run has no account, so nobody can say whose budget it is.
            StorageError: nothing is reserved, or it cannot be said: no call may be made.
        """
        async with self._store.write() as connection:
            account = await _account(connection, call.scope)
            if not self._store.is_sqlite:
                number = int(account.tenant_key[:15], 16)
                await connection.execute(select(func.pg_advisory_xact_lock(number)))
            now = await self._store.now(connection)
            spent = await _spent(connection, call, account, _day(now))
            if (wanted := fit(spent)) is not None:
                await connection.execute(
                    insert(model_calls).values(_row(call, account, wanted, now))
                )
        return spent

    async def settle(self, call: Call, usage: Usage) -> None:
        """Put what a call is charged in place of what was reserved."""
        c = model_calls.c
        async with self._store.write() as connection:
            now = await self._store.now(connection)
            mine = and_(c.call_key == call.key, c.attempt == call.attempt)
            values = {**usage.model_dump(), "is_settled": True, "updated_at": now}
            await connection.execute(update(model_calls).where(mine).values(values))

    async def purge(self, before: datetime, limit: int = 500) -> int:
        """Remove calls and accounts that are older than `before`; return how many rows went."""
        return sum(
            [await self._purge(table, before, limit) for table in (model_calls, spending_accounts)]
        )

    async def _purge(self, table: Table, before: datetime, limit: int) -> int:
        keys = [*table.primary_key.columns]
        old = select(*keys).where(table.c.created_at < before).limit(limit)
        async with self._store.read() as connection:
            rows = (await connection.execute(old)).all()
        if not rows:
            # Nearly always: whoever wants to write does not wait for this.
            return 0
        async with self._store.write() as connection:
            for row in rows:
                mine = and_(*(key == value for key, value in zip(keys, row, strict=True)))
                await connection.execute(delete(table).where(mine))
        return len(rows)


def _day(now: datetime) -> str:
    return now.date().isoformat()


async def _account(connection: AsyncConnection, scope: str) -> Account:
    a = spending_accounts.c
    query = select(a.tenant_key, a.repository_key, a.author_key).where(a.scope == scope)
    found = await first_row(connection, query)
    if found is None:
        raise LookupError("nobody knows whom this run is charged to")
    return Account(**found)


async def _spent(connection: AsyncConnection, call: Call, account: Account, day: str) -> Spent:
    c = model_calls.c
    today = and_(c.tenant_key == account.tenant_key, c.day == day)
    parts = {
        "day": today,
        "repository": and_(today, c.repository_key == account.repository_key),
        "author": and_(today, c.author_key == account.author_key),
    }
    sums = [column for name, part in parts.items() for column in _sums(name, part)]
    row = (await connection.execute(select(*sums).where(today))).mappings().one()
    mine = and_(c.call_key == call.key, c.attempt < call.attempt)
    lost = (await connection.execute(select(*_sums("lost", mine)).where(mine))).mappings().one()
    both = {**row, **lost}
    return Spent(**{name: _usage(both, name) for name in ("lost", *parts)})


def _sums(name: str, part: ColumnElement[bool]) -> list[ColumnElement[Any]]:
    c = model_calls.c
    return [
        func.coalesce(func.sum(case((part, column), else_=0)), 0).label(f"{name}_{column.name}")
        for column in (c.tokens, c.cost_micros)
    ]


def _usage(row: dict[str, Any], name: str) -> Usage:
    # A sum is a Decimal on PostgreSQL.
    return Usage(tokens=int(row[f"{name}_tokens"]), cost_micros=int(row[f"{name}_cost_micros"]))


def _row(call: Call, account: Account, wanted: Usage, now: datetime) -> dict[str, Any]:
    return {
        "call_key": call.key,
        "attempt": call.attempt,
        "day": _day(now),
        **vars(account),
        **wanted.model_dump(),
        "is_settled": False,
        "created_at": now,
        "updated_at": now,
    }
