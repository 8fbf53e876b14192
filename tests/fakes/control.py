"""The test's hand on a fake tracker: it sets faults, acts as people do, and reads what happened.

Why it exists: the tracker runs in a process of its own (`tracker_process`), or in the test's
(`tests.fakes.tracker.serving`); a test speaks to both in the same way, on a door of its own that
no fault reaches.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from tests.clock import PATIENCE_SECONDS
from tests.fakes.commit_log import Action, Change, Entry
from tests.fakes.faults import Fault
from tests.fakes.http_client import Call, exchange
from tests.fakes.http_tracker import HttpTracker
from triage.processes import ChildProcess

PERSON: Final = "ann"
_MAX_BYTES: Final = 64 * 1_048_576
_ROOT: Final = Path(__file__).parents[2]


@dataclass(frozen=True)
class TrackerControl:
    """A running fake tracker.

    Attributes:
        api: its address for clients.
        control: its address for this.
    """

    api: str
    control: str

    def client(self, **options: Any) -> HttpTracker:  # noqa: ANN401 - those of HttpTracker
        """Return a `Tracker` that talks to it, and waits long unless it is told otherwise."""
        return HttpTracker(self.api, **{"deadline_seconds": PATIENCE_SECONDS, **options})

    async def plan(self, *faults: Fault, seed: int = 0) -> None:
        """Replace the plan; without faults, everything goes well from now on."""
        wanted = {"faults": [fault.to_json() for fault in faults], "seed": seed}
        await self._ask("PUT", "/plan", wanted)

    async def listen(self, *, on: bool) -> None:
        """Take connections to the API again, or let the machine refuse them."""
        await self._ask("PUT", "/listening", {"on": on})

    async def log(self, after: int = 0, *, wait: bool = False) -> list[Entry]:
        """Return what was committed after the first `after` entries.

        Args:
            after: how many to leave out.
            wait: until there is at least one.
        """
        query = f"?after={after}" + ("&wait=1" if wait else "")
        return [Entry.from_json(entry) for entry in await self._ask("GET", f"/log{query}")]

    async def requests(self, method: str = "", operation: str = "") -> list[dict[str, Any]]:
        """Return the requests to the API, those without effect too.

        Each has ``id``, ``method``, ``path``, ``operation``, ``agent`` and, once it was answered,
        ``status`` and ``reply``.
        """
        found: list[dict[str, Any]] = await self._ask("GET", "/requests")
        return [
            r for r in found if method in {"", r["method"]} and operation in {"", r["operation"]}
        ]

    async def requested(self, method: str = "POST", operation: str = "", count: int = 1) -> None:
        """Return once so many such requests have come in, answered or not."""
        seen, fitting = 0, 0
        while fitting < count:
            new = await self._ask("GET", f"/requests?after={seen}&wait=1")
            seen += len(new)
            fitting += sum(
                method in {"", r["method"]} and operation in {"", r["operation"]} for r in new
            )

    async def define_labels(self, repository: str, names: Iterable[str]) -> None:
        """Add labels to a repository's inventory."""
        for name in names:
            await self.act(Action.LABEL_DEFINED, repository, label=name)

    async def drop_label(self, repository: str, name: str) -> None:
        """Take a label out of a repository's inventory."""
        await self.act(Action.LABEL_DROPPED, repository, label=name)

    async def open_issue(
        self, repository: str, number: str, *, title: str, body: str = "", author: str = PERSON
    ) -> None:
        """Open an issue."""
        data = {"title": title, "body": body}
        await self.act(Action.OPENED, repository, number, by=author, data=data)

    async def edit(self, repository: str, number: str, **texts: str) -> None:
        """Change an issue's ``title``, ``body`` or ``state``."""
        await self.act(Action.EDITED, repository, number, data=texts)

    async def add_label(self, repository: str, number: str, label: str) -> None:
        """Put a label on an issue."""
        await self.act(Action.LABELED, repository, number, label=label)

    async def remove_label(self, repository: str, number: str, label: str) -> None:
        """Take a label off an issue."""
        await self.act(Action.UNLABELED, repository, number, label=label)

    async def lock(self, repository: str, number: str) -> None:
        """Lock an issue: no label can be added any more."""
        await self.act(Action.LOCKED, repository, number)

    async def delete(self, repository: str, number: str) -> None:
        """Delete an issue."""
        await self.act(Action.DELETED, repository, number)

    async def transfer(self, repository: str, number: str, to: str) -> None:
        """Move an issue to the path `to`."""
        await self.act(Action.TRANSFERRED, repository, number, data={"to": to})

    async def act(
        self,
        action: Action,
        repository: str,
        issue: str | None = None,
        *,
        label: str | None = None,
        by: str = PERSON,
        data: dict[str, Any] | None = None,
    ) -> None:
        """Do anything that a person can do.

        Raises:
            ValueError: it is not possible now.
        """
        change = Change(
            action=action,
            actor=by,
            repository=repository,
            issue=issue,
            label=label,
            data=data or {},
        )
        await self._ask("POST", "/changes", asdict(change))

    async def _ask(self, method: str, path: str, value: Any = None) -> Any:  # noqa: ANN401 - any JSON
        deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
        answer = await exchange(
            Call(
                method=method,
                url=self.control + path,
                headers={},
                body=b"" if value is None else json.dumps(value).encode("ascii"),
                deadline=deadline,
                max_bytes=_MAX_BYTES,
            )
        )
        found = json.loads(answer.body)
        if answer.status != 200:
            raise ValueError(found["message"])
        return found


@asynccontextmanager
async def tracker_process(log: Path, port: int = 0) -> AsyncIterator[TrackerControl]:
    """Run a fake tracker in a process that ends with this one, and with nothing else.

    Args:
        log: its commit log; what is in it already has happened.
        port: of its API; 0 takes a free one.
    """
    command = [sys.executable, "-m", "tests.fakes.tracker", "--port", str(port), "--log", str(log)]
    child = await ChildProcess.start(command, environment={**os.environ, "PYTHONPATH": str(_ROOT)})
    try:
        assert await child.wait_for_line('"control"'), child.last_lines()
        yield TrackerControl(**json.loads(child.last_lines(1)))
    finally:
        await child.stop(PATIENCE_SECONDS)
