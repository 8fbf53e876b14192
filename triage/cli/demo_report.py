"""What the demo prints at its end: the evaluation, a table of the runs, the write, what is next."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable
from pathlib import Path

from triage.cli.demo_runs import Sample, Written
from triage.cli.issues import event_lines
from triage.cli.local import command_name, sample
from triage.cli.output import put as put_lines
from triage.cli.output import put_table
from triage.evaluation.report import Evaluation


def put(
    evaluation: Evaluation, samples: Iterable[Sample], written: Written, *, kept: Path | None
) -> None:
    """Print all of it on stdout."""
    put_lines(*evaluation.text().splitlines())
    put_lines("", "The sample requests, triaged by the rules model:", "")
    put_table(("REQUEST", "STATUS", "ROUTE", "LABELS", "OWNER", "STEPS"), map(_cells, samples))
    put_lines("", *_write_lines(written), "", *_next_lines(kept))


def _cells(item: Sample) -> tuple[str, ...]:
    response = item.response
    return (
        f"{response.request_id} ({item.file})",
        response.status.value,
        response.route or "-",
        ", ".join(response.labels) or "-",
        response.owner or "-",
        str(response.steps),
    )


def _write_lines(written: Written) -> list[str]:
    operation = f"{written.pending.operation_id} at version {written.pending.version}"
    issue = written.issue.issue
    return [
        f"The approved write: {operation} of {written.workflow_id}",
        *(f"  receipt  {_compact(receipt)}" for receipt in written.receipts),
        f"  issue    {issue.number} now has {', '.join(issue.labels) or 'no labels'}",
        *(f"           {line}" for line in event_lines(written.issue)),
    ]


def _compact(receipt: bytes) -> str:
    """Return the part of a receipt that says what was done, and on whose word."""
    document = json.loads(receipt)
    names = ("operation_key", "applied", "before", "after", "approval")
    return json.dumps({name: document[name] for name in names if name in document})


def _next_lines(kept: Path | None) -> list[str]:
    name = command_name()
    data = "" if kept is None else f" --data {shlex.quote(str(kept))}"
    return [
        "Nothing is left running. What to type next:",
        f"  {name} up{data}",
        "and in another terminal",
        f"  {name} start {sample('requests', 'feature.json')} --mode approve --id mine",
        f"  {name} list --pending",
        f"  {name} approve mine op-6 --version 6",
    ]
