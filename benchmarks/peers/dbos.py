"""DBOS with SQLite, as its programming guide begins: an engine in the worker, without a server.

It plays W in the embedded profile alone, since all else counts what a Temporal server does. A run
is a workflow of three steps in a process of its own, which is asked through a local socket, since
the other arms, too, are asked from another process.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from dbos import DBOS, SetWorkflowID

from benchmarks.arms import Arm, Handle, WrongEnd
from benchmarks.peers.case import ANSWER, ARGUMENTS, INSTRUCTIONS, TOOL, Verdict, owner_of
from benchmarks.peers.loading import NoPeer
from benchmarks.plan import Plan, Shape
from benchmarks.stacks import ROOT, Stack
from tests.workflow.decisions import a_request
from triage.embedded import START_SECONDS, STOP_SECONDS, WORKER_READY, EmbeddedError
from triage.processes import ChildProcess
from triage.settings import process_environment

PACKAGES: Final = ("dbos",)
_PLAYED: Final = {"embedded", "cold"}


@DBOS.step()
async def ask(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Ask the scripted model."""
    if messages[-1]["role"] == "tool":
        return {"answer": Verdict.model_validate(ANSWER).model_dump()}
    return {"role": "assistant", "tool": TOOL, "arguments": ARGUMENTS}


@DBOS.step()
async def read(path: str) -> dict[str, Any]:
    """Read what the model asked for."""
    return owner_of(path).model_dump()


@DBOS.workflow()
async def triage(request: str) -> dict[str, Any]:
    """Ask, read, ask."""
    messages = [
        {"role": "system", "content": INSTRUCTIONS},
        {"role": "user", "content": request},
    ]
    call = await ask(messages)
    found = await read(**call["arguments"])
    ended = await ask([*messages, call, {"role": "tool", "content": found}])
    answer: dict[str, Any] = ended["answer"]
    return answer


async def serve(socket: str, database: str) -> None:
    """Run what is asked for until SIGTERM."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    DBOS(
        config={
            "name": "triage-bench",
            "system_database_url": f"sqlite:///{database}",
            "log_level": "ERROR",
        }
    )
    DBOS.launch()
    async with await asyncio.start_unix_server(_serve_one, socket):
        print(WORKER_READY, file=sys.stderr, flush=True)  # noqa: T201 - whoever started it waits
        await stop.wait()
    DBOS.destroy()


async def _serve_one(asked: asyncio.StreamReader, answered: asyncio.StreamWriter) -> None:
    run_id, request = json.loads(await asked.readline())
    with SetWorkflowID(run_id):
        answered.write(json.dumps(await triage(request)).encode())
    answered.close()


@dataclass(frozen=True, slots=True)
class DBOSArm:
    """Runs of W, each through a connection of its own."""

    socket: Path
    stack: Stack = cast("Stack", None)  # noqa: RUF009 - there is none, and nobody asks for it
    name: str = "dbos"

    async def prepare(self, shape: Shape) -> None:
        """Do nothing."""

    async def start(self, shape: Shape, run_id: str) -> Handle:  # noqa: ARG002 - always of W
        """Send a request."""
        answered, asked = await asyncio.open_unix_connection(self.socket)
        asked.write(json.dumps([run_id, json.dumps(a_request())]).encode() + b"\n")
        return cast("Handle", (answered, asked))

    async def is_waiting(self, shape: Shape, run: Handle) -> bool:  # noqa: ARG002 - none waits
        """Say no: W does not wait."""
        return False

    async def approve(self, run: Handle) -> None:
        """Do nothing: W does not wait."""

    async def finish(self, run: Handle) -> None:
        """Wait for the answer, which has to be the scripted one."""
        answered, asked = cast("tuple[asyncio.StreamReader, asyncio.StreamWriter]", run)
        found = await answered.read()
        asked.close()
        if not found or Verdict.model_validate_json(found) != Verdict.model_validate(ANSWER):
            raise WrongEnd(f"a run of {self.name} answered something else")


@asynccontextmanager
async def opened(plan: Plan, folder: Path) -> AsyncIterator[Arm]:
    """Run its process.

    Raises:
        NoPeer: the plan has arms that it cannot play.
        EmbeddedError: it did not start.
    """
    if set(plan.arms) - _PLAYED:
        raise NoPeer("dbos plays the embedded profile alone: --arms embedded")
    await asyncio.to_thread(folder.mkdir, parents=True)
    socket = folder / "socket"
    child = await ChildProcess.start(
        [sys.executable, "-P", "-m", __name__, socket, folder / "dbos.db"],
        environment=process_environment() | {"PYTHONPATH": str(ROOT)},
        log=folder / "worker.log",
    )
    try:
        async with asyncio.timeout(START_SECONDS):
            if not await child.wait_for_line(WORKER_READY):
                raise EmbeddedError(f"dbos ended at once:\n{child.last_lines()}")
        yield DBOSArm(socket)
    finally:
        await child.stop(STOP_SECONDS)


if __name__ == "__main__":
    asyncio.run(serve(*sys.argv[1:]))
