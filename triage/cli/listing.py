"""`triage list`: the runs as visibility knows them; those that wait are asked for what."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from pydantic import JsonValue
from temporalio.client import Client, WorkflowExecution
from temporalio.service import RPCError, RPCStatusCode

from triage.cli.briefing_lines import never_enough
from triage.cli.clients import ANSWER_SECONDS, RPC_TIMEOUT, bounded, connect
from triage.cli.errors import UnreachableError
from triage.cli.output import Format, columns, put_json, put_table, say
from triage.cli.pending import ALL_SECONDS, VAIN_SECONDS, Waiting, pending_of, vain_of
from triage.cli.running import run
from triage.cli.text import exact, quoted, wrap
from triage.cli.times import told, until
from triage.contracts import names
from triage.contracts.search_attributes import (
    TRIAGE_FAILURE,
    TRIAGE_ROUTE,
    TRIAGE_STATUS,
    TRIAGE_TENANT,
    TRIAGE_WAITING_SINCE,
)
from triage.contracts.state import PendingView

ALL: Final = f"WorkflowType = '{names.ISSUE_TRIAGE}'"
PENDING: Final = (
    f"{ALL} AND {TRIAGE_WAITING_SINCE.name} IS NOT NULL AND ExecutionStatus = 'Running'"
)
HEADERS: Final = ("ID", "STATUS", "ROUTE", "FAILURE", "WAITING SINCE", "STARTED")
PENDING_HEADERS: Final = (
    *("ID", "STATUS", "WAITING SINCE"),
    *("OPERATION", "VERSION", "ADDS", "TARGET", "EXPIRES", "STARTED"),
)
NOTHING: Final = "nothing any more"
LIST_SECONDS: Final = ANSWER_SECONDS + ALL_SECONDS + VAIN_SECONDS

Row = dict[str, JsonValue]


def list_runs(*, pending_only: bool, limit: int, format_: Format) -> None:
    """Print the runs that go on, then those that ended; of both the latest first."""
    rows, waiting = run(_rows(limit, pending_only=pending_only))
    if format_ is Format.JSON:
        more = [waiting_json(one) for one in waiting] if pending_only else [{} for _ in rows]
        put_json([{**row, **told_more} for row, told_more in zip(rows, more, strict=True)])
    elif rows and pending_only:
        cells = zip(rows, waiting, strict=True)
        put_table(PENDING_HEADERS, [_pending_cells(row, one) for row, one in cells])
        for row, one in zip(rows, waiting, strict=True):
            say(*warnings_of(row, one))
    elif rows:
        put_table(HEADERS, [_cells(row) for row in rows])
    else:
        say("no run waits for a person" if pending_only else "there are no runs yet")
    if len(rows) == limit:
        say(f"only the first {limit} are shown; --limit shows more, if there are more")


async def _rows(limit: int, *, pending_only: bool) -> tuple[list[Row], list[Waiting]]:
    """Return the runs and, if they wait, for what."""
    async with bounded(LIST_SECONDS):
        client, _ = await connect()
        found = await _found(client, PENDING if pending_only else ALL, limit)
        rows = [row_of(execution) for execution in found]
        if not pending_only:
            return rows, []
        waiting = await pending_of(client, found)
        for row, may in zip(rows, await vain_of(client, found, waiting), strict=True):
            row |= {
                "too_few_may_approve": may is not None,
                "may_approve": [*may] if may is not None else None,
            }
    return rows, waiting


async def _found(client: Client, query: str, limit: int) -> list[WorkflowExecution]:
    found = client.list_workflows(query, limit=limit, rpc_timeout=RPC_TIMEOUT)
    try:
        return [execution async for execution in found]
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


def waiting_json(waiting: Waiting) -> Row:
    """Return what a run waits for as fields of its row; `unasked` says why nobody knows."""
    if isinstance(waiting, PendingView):
        return {"pending": waiting.model_dump(mode="json"), "unasked": None}
    return {"pending": None, "unasked": waiting}


def warnings_of(row: Row, waiting: Waiting) -> Iterator[str]:
    """Say of a run that no approvals can be enough, if so."""
    may = row.get("may_approve")
    if isinstance(waiting, PendingView) and row.get("too_few_may_approve"):
        who = [*map(str, may)] if isinstance(may, list) else []
        why = never_enough(who, waiting.approvals_required)
        yield from wrap(f"warning: {row['workflow_id']}: {why}", columns())


def _status(row: Row) -> str:
    """A run has no status of its own before its first wait or end, or after a platform fault."""
    if row["execution"] not in {"running", "completed"}:
        return f"{row['execution']} (no response)"
    return str(row["status"] or row["execution"])


def _cells(row: Row) -> tuple[str, ...]:
    words = (str(row[name] or "-") for name in ("route", "failure"))
    times = (_told(row, name) for name in ("waiting_since", "started_at"))
    return (str(row["workflow_id"]), _status(row), *words, *times)


def _pending_cells(row: Row, waiting: Waiting) -> tuple[str, ...]:
    first = (str(row["workflow_id"]), _status(row), _told(row, "waiting_since"))
    return (*first, *operation_cells(waiting), _told(row, "started_at"))


def operation_cells(waiting: Waiting) -> tuple[str, ...]:
    """Return operation, version, added labels, target and expiry; or why nobody knows them."""
    if not isinstance(waiting, PendingView):
        return (waiting or NOTHING, "", "", "", "")
    new = [label for label in waiting.labels_after if label not in waiting.labels_before]
    target = waiting.target
    return (
        exact(waiting.operation_id),
        str(waiting.version),
        ", ".join(map(quoted, new)) or "-",
        f"{target.get('repository')}#{target.get('issue')}",
        until(waiting.expires_at),
    )


def _told(row: Row, name: str) -> str:
    return told(str(row[name] or "-"))


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat(timespec="seconds")
