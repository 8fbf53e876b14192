"""Everything that a run leaves behind, as bytes that a planted secret is looked for in."""

from __future__ import annotations

import io
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any, Final

from sqlalchemy import select
from temporalio.client import WorkflowHandle
from temporalio.runtime import MetricBuffer

from tests.attack.canaries import EVERYWHERE_FORBIDDEN, PASTED, Canary
from triage.contracts.state import StateView
from triage.logs import _Formatter
from triage.storage.documents import DocumentKind
from triage.storage.engine import Store
from triage.storage.schema import documents, metadata, tracker_issues

LOGGERS: Final = (
    "activities",
    "triage",
    "worker",
    "workflows",
    "temporalio.activity",
    "temporalio.workflow",
)
_INPUTS: Final = (DocumentKind.SCRIPT, DocumentKind.REQUEST, DocumentKind.POLICY)
"""What a test itself stored: what a model was made to say, the issue, and the rules."""


class Logs:
    """What was logged meanwhile: as the program writes it, and as it was handed over."""

    def __init__(self) -> None:
        self.written = io.StringIO()
        self.handed = io.StringIO()

    def breaches(self) -> Iterator[str]:
        """Say what of it should not be there."""
        for what, text in (("the log", self.written), ("a log record", self.handed)):
            yield from found_in(what, text.getvalue().encode(), PASTED)
        lines = self.written.getvalue().split("\n")
        if any(not line.isprintable() for line in lines):
            yield "a line of the log holds a character that a terminal acts on"
        if any(line and not line.startswith("{") for line in lines):
            yield "a line of the log is no JSON object"


@contextmanager
def logged() -> Iterator[Logs]:
    """Keep everything that is logged, from debug on, and put levels back afterwards."""
    logs, root = Logs(), logging.getLogger()
    ours = logging.StreamHandler(logs.written)
    ours.setFormatter(_Formatter(console=False))
    theirs = logging.StreamHandler(logs.handed)
    levels = {name: logging.getLogger(name).level for name in LOGGERS}
    try:
        for handler in (ours, theirs):
            root.addHandler(handler)
        for name in LOGGERS:
            logging.getLogger(name).setLevel(logging.DEBUG)
        yield logs
    finally:
        for handler in (ours, theirs):
            root.removeHandler(handler)
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)


def found_in(what: str, data: bytes, *more: Canary) -> Iterator[str]:
    """Say which secrets stand in `data`."""
    for canary in (*EVERYWHERE_FORBIDDEN, *more):
        if canary.is_in(data):
            yield f"the secret of {canary.name} is in {what}"


async def of_run(handle: WorkflowHandle[Any, Any], state: StateView) -> AsyncIterator[str]:
    """Say which secrets a run's history, answers and search attributes hold."""
    history = await handle.fetch_history()
    first, *others = (event.SerializeToString() for event in history.events)
    for breach in found_in("the history", first):
        yield breach
    # The request is in the event that starts a run, and nowhere else.
    for breach in found_in("the history", b"\n".join(others), PASTED):
        yield breach
    for breach in found_in("the state", state.model_dump_json().encode(), PASTED):
        yield breach
    told = await handle.describe()
    info = told.raw_description.workflow_execution_info
    shown = info.search_attributes.SerializeToString() + info.memo.SerializeToString()
    for breach in found_in("a search attribute", shown, PASTED):
        yield breach


async def of_store(store: Store) -> list[str]:
    """Say which secrets the tables hold, but for what the test and the issue's author put there."""
    found: list[str] = []
    async with store.read() as connection:
        for table in metadata.sorted_tables:
            if table is tracker_issues:
                continue
            query = select(table)
            if table is documents:
                query = query.where(documents.c.kind.not_in([kind.value for kind in _INPUTS]))
            rows = (await connection.execute(query)).all()
            data = b"\n".join(_bytes(value) for row in rows for value in row)
            found += found_in(f"the table {table.name}", data, PASTED)
    return found


def _bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode(errors="surrogatepass")


class Metrics:
    """What was measured meanwhile."""

    def __init__(self, buffer: MetricBuffer) -> None:
        self._buffer = buffer
        self._seen: set[bytes] = set()

    def drain(self) -> None:
        """Take what is there, so that nothing is dropped."""
        self._seen |= {
            f"{update.metric.name} {dict(update.attributes)}".encode()
            for update in self._buffer.retrieve_updates()
        }

    def breaches(self) -> list[str]:
        """Say which secrets a name or a tag holds."""
        self.drain()
        return list(found_in("a metric", b"\n".join(self._seen), PASTED))

    @property
    def names(self) -> int:
        """How many series there are."""
        return len(self._seen)
