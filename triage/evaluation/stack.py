"""A server and a worker for the time of one command, with nothing in them but this command's.

Why it exists: an evaluation must give the same answers on every machine, whatever is configured
there and whatever ran before. Of the user's set-up only the Temporal server is shared, and only
where an address or a profile names one; queue, worker and database are new and go away again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeVar
from uuid import uuid4

from temporalio.client import Client

from triage import connection
from triage.embedded import EmbeddedError, EmbeddedServer, WorkerProcess
from triage.settings import Role, Settings
from triage.settings_sources import CONFIG_VARIABLE

T = TypeVar("T")

# A local write that was cut takes effect at once or never: nothing is gained by waiting longer.
_QUIET_PERIOD_SECONDS: Final = 1.0
_SHUTDOWN_GRACE_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class Stack:
    """A client of the server, and what the worker on it was told."""

    client: Client
    settings: Settings
    worker: WorkerProcess
    server: EmbeddedServer | None
    _ends: Sequence[asyncio.Task[int]]

    @classmethod
    def watch(
        cls,
        client: Client,
        settings: Settings,
        worker: WorkerProcess,
        server: EmbeddedServer | None,
    ) -> Stack:
        """Watch over what runs already; await `ended` once worker and server were stopped."""
        ends = [asyncio.create_task(child.wait()) for child in (worker, server) if child]
        return cls(client, settings, worker, server, ends)

    async def ended(self) -> None:
        """Wait for the watch to end with its processes; it is never cancelled."""
        await asyncio.gather(*self._ends)

    async def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run `main` to its end, and stop it if the worker or the server ends first.

        Raises:
            EmbeddedError: one of them ended; the message has what it said last.
        """
        work = asyncio.ensure_future(main)
        try:
            await asyncio.wait({work, *self._ends}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                raise self._fault()
            return await work
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

    def _fault(self) -> EmbeddedError:
        if self._ends[0].done():
            return EmbeddedError(f"the worker ended:\n{self.worker.last_lines()}")
        return EmbeddedError("the Temporal server ended")


@asynccontextmanager
async def own_stack(
    settings: Settings, purpose: str, kept: Mapping[str, object] | None = None
) -> AsyncIterator[Stack]:
    """Start what a command needs, and leave nothing of it behind.

    Args:
        settings: the user's; only what cannot change an answer is kept of them.
        purpose: a short word that the task queue is named with.
        kept: what is to be in force all the same, such as how a model is reached.

    Raises:
        ServerUnreachable: the configured server cannot be used.
        EmbeddedError: the server or the worker did not start.
    """
    stack: Stack | None = None
    with TemporaryDirectory(prefix="triage-", ignore_cleanup_errors=True) as folder:
        ours = _private(settings, Path(folder), purpose).model_copy(update=dict(kept or {}))
        environment = {CONFIG_VARIABLE: str(_empty_file(Path(folder)))}
        try:
            async with AsyncExitStack() as running:
                server = None
                if connection.is_configured():
                    client = await connection.connect(ours)
                else:
                    server = await running.enter_async_context(EmbeddedServer())
                    client = server.client
                    environment |= server.environment()
                worker = await running.enter_async_context(WorkerProcess(ours, environment))
                stack = Stack.watch(client, ours, worker, server)
                yield stack
        finally:
            if stack is not None:
                await stack.ended()


def _private(settings: Settings, folder: Path, purpose: str) -> Settings:
    return settings.model_copy(
        update={
            "home": folder,
            "database_url": f"sqlite:///{folder / 'triage.db'}",
            "policy": None,
            "model": "rules",
            "model_base_url": None,
            "model_api_key": None,
            "openai_api_key": None,
            "anthropic_api_key": None,
            "model_prices": None,
            "tracker": "local",
            "roles": tuple(Role),
            "local_trust": True,
            "task_queue": f"triage-{purpose}-{uuid4().hex}",
            "quiet_period_seconds": _QUIET_PERIOD_SECONDS,
            "shutdown_grace_seconds": _SHUTDOWN_GRACE_SECONDS,
            "allow_remote_sqlite": True,
            "log_level": "error",
        }
    )


def _empty_file(folder: Path) -> Path:
    """Stand in for ``triage.toml``, so that the worker reads nobody's rules or settings."""
    path = folder / "triage.toml"
    path.touch()
    return path
