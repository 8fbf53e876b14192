"""A store whose clock stands still, but for what a test lets pass.

Why it exists: what a ledger does depends on how long ago something was. With the database's own
time a test means "so long, and whatever this machine took meanwhile", and on a busy one that is
more than any margin.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sqlalchemy.engine import RowMapping
from sqlalchemy.ext.asyncio import AsyncConnection

from triage.storage.address import Address
from triage.storage.engine import DEFAULT_TRANSACTION_SECONDS, Store


class StillStore(Store):
    """A store that knows one moment, which only its offset moves."""

    def __init__(self, address: Address, transaction_seconds: float, offset: timedelta) -> None:
        super().__init__(address, transaction_seconds, offset)
        self._opened = datetime.now(UTC).replace(microsecond=0)

    @property
    def moment(self) -> datetime:
        """The time on its clock."""
        return self._opened + self._offset

    def pass_time(self, span: timedelta) -> None:
        """Move its clock on."""
        self._offset += span

    def time_in(self, row: RowMapping) -> datetime:
        """See `Store.time_in`."""
        return self.moment

    async def now(self, connection: AsyncConnection) -> datetime:
        """See `Store.now`."""
        return self.moment


class HastyStore(StillStore):
    """The same, and it gives up soon on a file that another holds; never on a slow machine.

    Its `transaction_seconds` are those that SQLite may wait for a lock; on PostgreSQL a test has to
    let nobody in.
    """

    def __init__(self, address: Address, transaction_seconds: float, offset: timedelta) -> None:
        super().__init__(address, transaction_seconds, offset)
        self._transaction_seconds = DEFAULT_TRANSACTION_SECONDS

    async def _check(self, seconds: float) -> None:
        await super()._check(max(seconds, DEFAULT_TRANSACTION_SECONDS))
