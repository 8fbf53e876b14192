"""`triage list`: the runs as visibility knows them, without asking any worker."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from temporalio.client import WorkflowExecution
from temporalio.service import RPCError, RPCStatusCode

from triage.cli.clients import RPC_TIMEOUT, bounded, connect
from triage.cli.errors import UnreachableError
from triage.cli.output import Format, put_json, put_table, say
from triage.cli.running import run
from triage.cli.times import told
from triage.contracts import names
from triage.contracts.search_attributes import (
    TRIAGE_FAILURE,
    TRIAGE_ROUTE,
    TRIAGE_STATUS,
    TRIAGE_TENANT,
    TRIAGE_WAITING_SINCE,
)

ALL: Final = f"WorkflowType = '{names.ISSUE_TRIAGE}'"
PENDING: Final = (
    f"{ALL} AND {TRIAGE_WAITING_SINCE.name} IS NOT NULL AND ExecutionStatus = 'Running'"
)
HEADERS: Final = ("ID", "STATUS", "ROUTE", "FAILURE", "WAITING SINCE", "STARTED")

Row = dict[str, str | None]


def list_runs(*, pending_only: bool, limit: int, format_: Format) -> None:
    """Print the runs, the latest first."""
    rows = run(_rows(PENDING if pending_only else ALL, limit))
    if format_ is Format.JSON:
        put_json(rows)
    elif rows:
        put_table(HEADERS, [_cells(row) for row in rows])
    else:
        say("no run waits for a person" if pending_only else "there are no runs yet")
    if len(rows) == limit:
        say(f"these are the latest {limit}; --limit shows more")


async def _rows(query: str, limit: int) -> list[Row]:
    async with bounded():
        client, _ = await connect()
        found = client.list_workflows(query, limit=limit, rpc_timeout=RPC_TIMEOUT)
        try:
            return [row_of(execution) async for execution in found]
        except RPCError as error:
            if error.status is not RPCStatusCode.INVALID_ARGUMENT:
                raise
            raise UnreachableError(
                "the namespace lacks the search attributes that this needs",
                "start a worker once: it registers them",
            ) from None


def row_of(execution: WorkflowExecution) -> Row:
    """Return a run as one row of the list."""
    attributes = execution.typed_search_attributes
    waiting = attributes.get(TRIAGE_WAITING_SINCE)
    return {
        "workflow_id": execution.id,
        "run_id": execution.run_id,
        "status": attributes.get(TRIAGE_STATUS),
        "execution": "unknown" if execution.status is None else execution.status.name.lower(),
        "route": attributes.get(TRIAGE_ROUTE),
        "failure": attributes.get(TRIAGE_FAILURE),
        "tenant": attributes.get(TRIAGE_TENANT),
        "waiting_since": _time(waiting),
        "started_at": _time(execution.start_time),
        "closed_at": _time(execution.close_time),
    }


def _status(row: Row) -> str:
    """A run has no status of its own before its first wait or end, or after a platform fault."""
    if row["execution"] not in {"running", "completed"}:
        return f"{row['execution']} (no response)"
    return row["status"] or str(row["execution"])


def _cells(row: Row) -> tuple[str, ...]:
    words = (row[name] or "-" for name in ("route", "failure"))
    times = (told(row[name] or "-") for name in ("waiting_since", "started_at"))
    return (str(row["workflow_id"]), _status(row), *words, *times)


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat(timespec="seconds")
