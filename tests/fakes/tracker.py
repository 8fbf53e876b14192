"""A tracker on real HTTP that fails as told, in a process that outlives killed workers.

``python -m tests.fakes.tracker --port 0 --log FILE`` prints one line of JSON with two addresses:
``api`` is the tracker as a client sees it; ``control`` is for the test (see `tests.fakes.control`).
It ends when the process that started it ends.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar

from tests.fakes.commit_log import Action, Change, CommitLog, Entry
from tests.fakes.faults import Fault, Plan
from tests.fakes.http_server import HttpServer, Request, Response
from tests.fakes.tracker_api import OPERATION_HEADER, TrackerApi, Write

_LOOK_SECONDS: Final = 0.5
_Item = TypeVar("_Item")
MakeApi = Callable[[CommitLog, Callable[[], None]], TrackerApi]
"""Makes what answers, from the log and from what to call after each commit."""


class FakeTracker:
    """The two servers over one log; use `serving` to run it.

    Attributes:
        plan: what goes wrong with which request.
    """

    def __init__(self, log: CommitLog, make: MakeApi = TrackerApi) -> None:
        self._log = log
        self._tracker = make(log, self._tell)
        self._changed = asyncio.Event()
        self.plan = Plan()
        self._requests: list[dict[str, Any]] = []
        self._late: list[asyncio.TimerHandle] = []
        self.api = HttpServer(self._answer)
        self.control = HttpServer(self._obey)

    @property
    def entries(self) -> Sequence[Entry]:
        """What was committed so far; it grows."""
        return self._log.entries

    async def close(self) -> None:
        """Stop at once; what was to take effect later never does."""
        for later in self._late:
            later.cancel()
        await self.api.close()
        await self.control.close()
        self._log.close()

    async def _answer(self, request: Request) -> Response:
        """Do what is asked, as well as the plan lets it."""
        operation = request.headers.get(OPERATION_HEADER.lower(), "")
        seen: dict[str, Any] = {
            "id": request.id,
            "method": request.method,
            "path": request.path,
            "operation": operation,
            "agent": request.headers.get("user-agent", ""),
        }
        self._requests.append(seen)
        self._tell()
        fault = self.plan.next(request.method, request.path, operation)
        await asyncio.sleep(fault.before_ms / 1_000)
        response = self._carry_out(request, fault)
        await asyncio.sleep(fault.after_ms / 1_000)
        response = _distorted(response, fault)
        seen |= {"status": response.status, "reply": fault.reply}
        return response

    def _carry_out(self, request: Request, fault: Fault) -> Response:
        """Let the request take effect now, later or never; the answer is what is so now."""
        found = self._tracker.route(request)
        if isinstance(found, Response):
            return found
        if fault.late_ms is not None and fault.lets_through:
            loop = asyncio.get_running_loop()
            later = loop.call_later(fault.late_ms / 1_000, self._commit, found, fault)
            self._late.append(later)
        elif fault.lets_through:
            self._commit(found, fault)
        return found.response()

    def _commit(self, write: Write, fault: Fault) -> None:
        changes = write.changes()
        if fault.labels is not None:
            kept = [c.label for c in changes if c.action is not Action.LABEL_CREATED]
            changes = [c for c in changes if c.label in kept[: fault.labels]]
        self._tracker.commit(changes)

    async def _obey(self, request: Request) -> Response:
        """Do what the test wants: a plan, a person's act, or a look."""
        try:
            match (request.method, request.path):
                case ("PUT", "/plan"):
                    wanted = request.json()
                    faults = [Fault.from_json(fault) for fault in wanted["faults"]]
                    self.plan = Plan(faults, wanted.get("seed", 0))
                case ("POST", "/changes"):
                    self._tracker.act(_change(request.json()))
                case ("PUT", "/listening"):
                    await self._listen(wanted=request.json()["on"])
                case ("GET", "/log"):
                    new = await self._news(request, self._log.entries)
                    return Response.of([entry.to_json() for entry in new])
                case ("GET", "/requests"):
                    return Response.of(await self._news(request, self._requests))
                case _:
                    return Response.of({"message": "no such thing"}, 404)
        except (KeyError, TypeError, ValueError) as error:
            return Response.of({"message": f"{type(error).__name__}: {error}"}, 400)
        return Response.of({})

    async def _news(self, request: Request, items: list[_Item]) -> list[_Item]:
        """Return what is new, once there is any if the test wants to wait for it."""
        after = int(request.query.get("after", "0"))
        while "wait" in request.query and len(items) <= after:
            await self._changed.wait()
        return items[after:]

    def _tell(self) -> None:
        """Wake up whoever waits for news."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def _listen(self, *, wanted: bool) -> None:
        if wanted:
            await self.api.listen()
        else:
            self.api.refuse()


@asynccontextmanager
async def serving(
    log: Path, port: int = 0, *, make: MakeApi = TrackerApi
) -> AsyncIterator[FakeTracker]:
    """Run a tracker in this process, from what is in `log` already."""
    tracker = FakeTracker(CommitLog(log), make)
    try:
        await tracker.api.listen(port)
        await tracker.control.listen()
        yield tracker
    finally:
        await tracker.close()


def _distorted(response: Response, fault: Fault) -> Response:
    return replace(
        response,
        status=fault.status or response.status,
        body=response.body if fault.body is None else fault.body.encode(),
        headers={**response.headers, **fault.headers},
        sent_as=fault,
    )


def _change(value: dict[str, Any]) -> Change:
    return Change(**{**value, "action": Action(value["action"])})


async def _run(log: Path, port: int) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    parent = os.getppid()
    async with serving(log, port) as tracker:
        addresses = {"api": tracker.api.address, "control": tracker.control.address}
        print(json.dumps(addresses), flush=True)  # noqa: T201 - whoever started it waits
        while os.getppid() == parent and not stop.is_set():
            try:
                async with asyncio.timeout(_LOOK_SECONDS):
                    await stop.wait()
            except TimeoutError:
                continue


def main() -> int:
    """Run until the parent process is gone, or until SIGTERM."""
    parser = argparse.ArgumentParser(prog="tests.fakes.tracker", description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--log", type=Path, required=True)
    options = parser.parse_args()
    asyncio.run(_run(options.log, options.port))
    return 0


if __name__ == "__main__":
    sys.exit(main())
