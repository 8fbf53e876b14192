"""Who stood behind an approval by the word of a service: names at a tracker, and their stable ids.

Why it exists: what a service saw when somebody answered may be over when the write is sent. So the
write looks at each of these people's rights again, under the name that is kept here, and never
under one that a run or a message claims.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import bindparam, select

from triage.contracts.canonical import short_hash
from triage.storage.connections import AsyncConnection
from triage.storage.engine import Store
from triage.storage.rows import insert_first
from triage.storage.schema_intake import vouchers

# Built once, since to build a statement takes longer than to run it.
_V: Final = vouchers.c
_KEPT: Final = (
    select(_V.operation_key, _V.version, _V.tracker, _V.person_id, _V.login)
    .where(_V.operation_key == bindparam("of"), _V.version == bindparam("at"))
    .order_by(_V.voucher_key)
)


@dataclass(frozen=True, kw_only=True)
class Voucher:
    """One person's approval of one operation at one version, as a service vouched for it.

    Attributes:
        operation_key: the ledger's key.
        version: the run's version that was reviewed.
        tracker: where the person is known.
        person_id: the stable id there.
        login: the name there.
    """

    operation_key: str
    version: int
    tracker: str
    person_id: str
    login: str


async def keep_voucher(connection: AsyncConnection, voucher: Voucher, now: datetime) -> bool:
    """Keep a voucher in the caller's transaction; False if it was kept before."""
    parts = (voucher.operation_key, str(voucher.version), voucher.tracker, voucher.person_id)
    values = {**vars(voucher), "voucher_key": short_hash("voucher", *parts), "created_at": now}
    return await insert_first(connection, vouchers, values)


async def vouchers_of(store: Store, operation_key: str, version: int) -> list[Voucher]:
    """Return everybody who was vouched for when an operation was decided on at a version."""
    which = {"of": operation_key, "at": version}
    async with store.read() as connection:
        rows = (await connection.execute(_KEPT, which)).mappings().all()
    return [Voucher(**row) for row in rows]
