"""`triage show`: everything that a run's state query tells, for people or as it is."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError
from temporalio.client import Client, WorkflowFailureError
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
from triage.cli.following import platform_fault, put_response, response_lines
from triage.cli.output import Format, columns, put, put_json
from triage.cli.predecessors import beginning_of
from triage.cli.running import run as run_coroutine
from triage.cli.text import exact, fold
from triage.cli.times import told, with_times_told
from triage.continuing import Beginning
from triage.contracts import names
from triage.contracts.approval import REFUSAL_MEANING, Verdict
from triage.contracts.response import TriageResponse
from triage.contracts.state import RefusalView, StateView
from triage.settings import Settings

if TYPE_CHECKING:
    # It loads the database's library.
    from triage.cli.briefing import Briefing

SHOW_SECONDS: Final = 15.0
NOT_KNOWN: Final = Beginning()
LEDGER_STATES: Final = {
    "refused": "cancelled, with the reason",
    "conflict": "cancelled, with the reason, if it got that far",
    "replayed": "applied, once",
    "unknown": "attention, or unknown until it is settled",
}
"""What the ledger calls what became of a write, where a run has another word for it."""


def show(name: str, format_: Format) -> None:
    """Print where a run stands.

    Raises:
        CliError: there is no such run, it ended by a platform fault, or nobody can tell.
    """
    run_coroutine(_show(name, format_))


async def _show(name: str, format_: Format) -> None:
    async with bounded(SHOW_SECONDS):
        client, settings = await connect()
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
        state = _read(answer)
        briefing = await _briefing(client, settings, run, state)
        beginning = await beginning_of(run)
    if format_ is Format.JSON:
        _put_json(run, answer, briefing, beginning)
    elif state is None:
        message = "the worker that answered runs another version of this program"
        raise RefusedError(message, "'--format json' prints its answer as it is") from None
    else:
        put(*state_lines(run, state, briefing, beginning))
    if fault is not None:
        raise fault


def _read(answer: bytes) -> StateView | None:
    """Return a run's state, or None if another version of this program answered."""
    try:
        return StateView.model_validate_json(answer)
    except ValidationError:
        return None


async def _briefing(
    client: Client, settings: Settings, run: Run, state: StateView | None
) -> Briefing | None:
    """Return what whoever decides is shown, if the run waits for somebody."""
    if state is None or state.pending is None or not run.is_open:
        return None
    # It loads the database's library, which takes as long as the rest.
    from triage.cli.briefing_sources import brief  # noqa: PLC0415 - see above

    return await brief(client, settings, run, state, state.pending)


def _put_json(run: Run, answer: bytes, briefing: Briefing | None, beginning: Beginning) -> None:
    """Print the state as the run told it, with its id and what whoever decides is shown.

    A run names its request, and one that continues another names that, too.
    """
    document = json.loads(answer)
    fields = document if isinstance(document, dict) else {}
    shown = None if briefing is None else briefing.to_json()
    continued = beginning.continued_from
    link = {"continued_from": continued.model_dump(mode="json")} if continued else {}
    named = {"workflow_id": run.id, "request_id": beginning.request_id or None}
    put_json({**named, **link, **fields, "review": shown})


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
        put_response(response, run.id, format_)
        raise NoWorkerError(f"{error}, so this is the response alone", error.hint)
    if isinstance(error, NoWorkerError):
        reason = f"{run.id} is {run.execution_status}; {_why_silent(run, error)}"
        raise NoWorkerError(reason, error.hint)
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


def state_lines(
    run: Run, state: StateView, briefing: Briefing | None, beginning: Beginning = NOT_KNOWN
) -> Iterator[str]:
    """Return a run's state for people; the parts that are empty are left out."""
    yield run.id
    yield f"status      {state.status.value} at version {state.version} ({run.execution_status})"
    if (continued := beginning.continued_from) is not None:
        yield f"continues   {exact(continued.workflow_id)} from version {continued.version}"
    if beginning.request_id:
        yield f"request     {exact(beginning.request_id)}"
    yield f"steps       {state.steps}, of them retries {state.retries}"
    yield from _section("decisions", _decisions(state))
    yield from _waiting(state, briefing)
    yield from _section("decided by people", decided_lines(state))
    yield from _section(f"refusals ({state.refusals_total})", _refusals(state))
    yield from _section("operations", operation_states(state))
    yield from _section("spent", _pairs(state.spent.model_dump()))
    yield from _section("provenance", _pairs(state.provenance.model_dump()))
    if state.response is not None:
        lines = response_lines(state.response, run.id)
        yield from _section("response", (f"  {line}" for line in lines))


def _waiting(state: StateView, briefing: Briefing | None) -> Iterator[str]:
    """Return what a run waits or waited for, and the evidence that it has."""
    if briefing is None and state.pending is None:
        yield from _section("evidence", _evidence(state))
        return
    from triage.cli import briefing_lines  # noqa: PLC0415 - as above

    if briefing is not None:
        yield "pending"
        yield from briefing_lines.briefing_lines(briefing)
        yield briefing_lines.review_hint(briefing)
    elif state.pending is not None:
        yield from _section("evidence", _evidence(state))
        yield "was pending when the run ended"
        yield from briefing_lines.operation_lines(state.pending)


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
        yield f"  {exact(item.id)} by {exact(item.tool)}"
        yield f"    at {exact(item.locator)}"


def _refusals(state: StateView) -> Iterator[str]:
    for item in state.refusals:
        version = "-" if item.version is None else item.version
        what = f"{exact(item.operation_id or '-')} at version {version}"
        line = f"{item.code}: {what} by {exact(item.approver or '-')}, {told(item.at)}"
        first, *others = fold(line, columns() - 4)
        yield f"  {first}"
        yield from (f"    {other}" for other in others)
        yield from _indented(_why(item))


def _why(item: RefusalView) -> str:
    """Return the run's own sentence, or what its code means."""
    meanings = {code.value: meaning for code, meaning in REFUSAL_MEANING.items()}
    return with_times_told(item.reason) or meanings.get(item.code, "")


def decided_lines(state: StateView) -> Iterator[str]:
    """Return who decided what, with the note that came along."""
    for item in state.verdicts:
        said = "approved" if item.verdict is Verdict.APPROVE else "rejected"
        what = f"{exact(item.operation_id)} at version {item.version}"
        people = ", ".join(map(exact, item.approved_by or (item.approver,)))
        first, *others = fold(f"{what}  {said} by {people}, {told(item.at)}", columns() - 4)
        yield f"  {first}"
        yield from (f"    {other}" for other in others)
        if item.note:
            yield from (f"    | {piece}" for piece in _pieces(item.note))


def _pieces(text: str) -> Iterator[str]:
    """Return a person's own words in lines that stand behind a bar."""
    for line in text.splitlines():
        yield from fold(line, columns() - 6)


def operation_states(state: StateView) -> Iterator[str]:
    """Return what became of each write, as the run says and as the ledger calls it."""
    for item in state.operations:
        name = exact(item.operation_id or "-")
        yield f"  {name} at version {item.version}  {item.state}"
        ledger = LEDGER_STATES.get(item.state)
        if ledger:
            yield f"    in 'triage operations': {ledger}"
        yield f"    operation digest  {item.digest}"


def _pairs(values: dict[str, Any]) -> Iterator[str]:
    """Return names with their values, beneath them where a line would be too long."""
    width = max(map(len, values), default=0)
    for name, value in values.items():
        if value not in {"", None} if isinstance(value, str | None) else True:
            shown = value if isinstance(value, str) else json.dumps(value)
            line = f"  {name.ljust(width)}  {shown}"
            if len(fold(line, columns())) > 1:
                # Not folded: such a value is one word, which people copy.
                yield from (f"  {name}", f"    {shown}")
            else:
                yield line


def _indented(text: str) -> Iterator[str]:
    return (f"    {piece}" for piece in fold(text, columns() - 4))
