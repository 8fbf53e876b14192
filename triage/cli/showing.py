"""`triage show`: everything that a run's state query tells, for people or as it is."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from pydantic import ValidationError
from temporalio.client import WorkflowFailureError
from temporalio.common import RawValue

from triage.cli.clients import (
    NoWorkerError,
    Run,
    ask_run,
    bounded,
    connect,
    failed_attempts,
    find_run,
)
from triage.cli.errors import CliError, RefusedError
from triage.cli.following import (
    pending_lines,
    platform_fault,
    put_response,
    response_lines,
    review_hint,
)
from triage.cli.output import Format, put, put_json, put_raw_json
from triage.cli.running import run as run_coroutine
from triage.contracts import names
from triage.contracts.approval import REFUSAL_MEANING
from triage.contracts.response import TriageResponse
from triage.contracts.state import StateView

SHOW_SECONDS: Final = 15.0


def show(name: str, format_: Format) -> None:
    """Print where a run stands.

    Raises:
        CliError: there is no such run, it ended by a platform fault, or nobody can tell.
    """
    run_coroutine(_show(name, format_))


async def _show(name: str, format_: Format) -> None:
    async with bounded(SHOW_SECONDS):
        client, _ = await connect()
        run = await find_run(client, name)
        if run.description.workflow_type != names.ISSUE_TRIAGE:
            await _show_other(run, format_)
            return
        fault = await _fault(run)
        try:
            answer = await ask_run(client, run, names.QUERY_STATE)
        except CliError as error:
            if fault is not None:
                raise fault from None
            await _show_without_worker(run, format_, error)
            return
    _put_state(run, answer, format_)
    if fault is not None:
        raise fault


def _put_state(run: Run, answer: bytes, format_: Format) -> None:
    if format_ is Format.JSON:
        put_raw_json(answer)
        return
    try:
        state = StateView.model_validate_json(answer)
    except ValidationError:
        message = "the worker that answered runs another version of this program"
        raise RefusedError(message, "'--format json' prints its answer as it is") from None
    put(*state_lines(run, state))


async def _fault(run: Run) -> RefusedError | None:
    """Return what to say about a run that ended without a response, if it did."""
    if run.is_open or run.execution_status in {"completed", "continued_as_new"}:
        return None
    try:
        await run.handle.result()
    except WorkflowFailureError as error:
        if run.description.workflow_type == names.ISSUE_TRIAGE:
            return platform_fault(error)
        return RefusedError(f"the run ended as {run.execution_status}: {error.cause}")
    return None


async def _show_without_worker(run: Run, format_: Format, error: CliError) -> None:
    """Tell what the server alone knows: the response of a run that completed, or that it waits."""
    if run.execution_status == "completed":
        response = await _result(run)
        put_response(response, format_)
        raise NoWorkerError(f"{error}, so this is the response alone")
    if isinstance(error, NoWorkerError):
        raise NoWorkerError(f"{run.id} is {run.execution_status}; {_why_silent(run, error)}")
    raise error


async def _result(run: Run) -> TriageResponse:
    raw = await run.handle.result()
    return TriageResponse.model_validate_json(raw.payload.data)


def _why_silent(run: Run, error: NoWorkerError) -> str:
    attempts = failed_attempts(run.description)
    if attempts:
        return f"a worker has failed to carry it on {attempts} times: look at its log"
    return f"{error}, so nobody can tell more"


async def _show_other(run: Run, format_: Format) -> None:
    """Show a run of another type by its result, if it has one."""
    fault = await _fault(run)
    if fault is not None:
        raise fault
    if run.is_open:
        put(f"{run.id}  {run.description.workflow_type}  {run.execution_status}")
        return
    raw = await run.handle.result()
    document = json.loads(raw.payload.data) if isinstance(raw, RawValue) else raw
    if format_ is Format.JSON:
        put_json(document)
        return
    put(f"{run.id}  {run.description.workflow_type}  {run.execution_status}")
    put(*_pairs(document if isinstance(document, dict) else {"result": document}))


def state_lines(run: Run, state: StateView) -> Iterator[str]:
    """Return a run's state for people; the parts that are empty are left out."""
    yield run.id
    yield f"status      {state.status.value} at version {state.version} ({run.execution_status})"
    yield f"steps       {state.steps}, of them retries {state.retries}"
    yield from _section("decisions", _decisions(state))
    yield from _section("evidence", _evidence(state))
    if state.pending is not None:
        title = "pending" if run.is_open else "was pending when the run ended"
        yield from _section(title, pending_lines(state.pending))
        if run.is_open:
            yield review_hint(run.id, state.pending)
    yield from _section(f"refusals ({state.refusals_total})", _refusals(state))
    yield from _section("operations", _operations(state))
    yield from _section("spent", _pairs(state.spent.model_dump()))
    yield from _section("provenance", _pairs(state.provenance.model_dump()))
    if state.response is not None:
        yield from _section("response", (f"  {line}" for line in response_lines(state.response)))


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    listed = list(lines)
    if listed:
        yield title
        yield from listed


def _decisions(state: StateView) -> Iterator[str]:
    for decision in state.decisions:
        call = f"  {decision.tool} ({decision.call_id})" if decision.tool else ""
        yield f"  step {decision.step}  {decision.kind}{call}"


def _evidence(state: StateView) -> Iterator[str]:
    for item in state.evidence:
        yield f"  {item.id}  from {item.source}  at {item.locator}  by {item.tool}"


def _refusals(state: StateView) -> Iterator[str]:
    meanings = {code.value: meaning for code, meaning in REFUSAL_MEANING.items()}
    for item in state.refusals:
        who = item.approver or "-"
        what = (
            f"{item.operation_id or '-'} at version {'-' if item.version is None else item.version}"
        )
        yield f"  {item.code}  {what}  by {who}, {item.at}: {meanings.get(item.code, '')}"


def _operations(state: StateView) -> Iterator[str]:
    for item in state.operations:
        yield f"  {item.operation_id or '-'} at version {item.version}  {item.state}  {item.digest}"


def _pairs(values: dict[str, Any]) -> Iterator[str]:
    width = max(map(len, values), default=0)
    for name, value in values.items():
        if value not in {"", None} if isinstance(value, str | None) else True:
            shown = value if isinstance(value, str) else json.dumps(value)
            yield f"  {name.ljust(width)}  {shown}"
