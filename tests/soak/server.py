"""The server of a soak: as `triage up` runs it, but that its histories may be full early.

Then runs go on under a fresh history again and again, in the middle of everything else.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from unittest import mock

from triage import embedded
from triage.embedded import EmbeddedServer, ServerOptions


@asynccontextmanager
async def running_server(folder: Path, full_at: int | None = None) -> AsyncIterator[EmbeddedServer]:
    """Run a server that keeps its data in `folder`.

    Args:
        folder: an existing one.
        full_at: the number of events from which on a history is called full; a run that waits has
            some thirty. None leaves it at the server's own number.
    """
    suggested = {} if full_at is None else {"limit.historyCount.suggestContinueAsNew": str(full_at)}
    with mock.patch.dict(embedded._DYNAMIC_CONFIG, suggested):
        async with EmbeddedServer(ServerOptions(db_filename=folder / "temporal.db")) as server:
            yield server
