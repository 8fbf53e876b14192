"""The server of a soak: as `triage up` runs it, but that its histories are full early.

So runs go on under a fresh history again and again, in the middle of everything else.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final
from unittest import mock

from triage import embedded
from triage.embedded import EmbeddedServer, ServerOptions

FULL_AT_EVENTS: Final = 25
"""A run that waits for a person has some thirty."""


@asynccontextmanager
async def running_server(folder: Path) -> AsyncIterator[EmbeddedServer]:
    """Run a server that keeps its data in `folder`."""
    suggested = {"limit.historyCount.suggestContinueAsNew": str(FULL_AT_EVENTS)}
    with mock.patch.dict(embedded._DYNAMIC_CONFIG, suggested):
        async with EmbeddedServer(ServerOptions(db_filename=folder / "temporal.db")) as server:
            yield server
