"""Follows a run to its response, saying on the way what it does and what it waits for."""

from __future__ import annotations

import asyncio
import shlex
import time
from datetime import timedelta
from typing import Any, Final

from pydantic import ValidationError
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import CancelledError, TerminatedError
from temporalio.service import RPCError

from triage.cli.clients import ask, failed_attempts, find_run, has_worker
from triage.cli.errors import CliError, RefusedError
from triage.cli.output import Format, beside, put, put_json, say
from triage.contracts import names
from triage.contracts.failures import LABEL_REMOVED, FailureClass
from triage.contracts.response import TriageResponse
from triage.contracts.state import StateView
from triage.settings import Settings
from triage.story.guesses import guess_note
from triage.story.remedies import remedy

FIRST_PAUSE_SECONDS: Final = 0.2
LONGEST_PAUSE_SECONDS: Final = 2.0
SILENCE_SECONDS: Final = 2.0
CONTINUABLE: Final = frozenset(
    {
        FailureClass.POLICY_BLOCK,
        FailureClass.APPROVAL_REQUIRED,
        FailureClass.MAX_STEPS_EXCEEDED,
    }
)
"""How runs end whose writes were stopped, rejected, not decided in time or not allowed, or that
have used their steps: the run that continues one has all of its own."""

BY_HAND: Final = "no run puts it back: do so by hand if it is wanted"

QUERY_TIMEOUT: Final = timedelta(seconds=2)


class Progress:
    """Says each change of a run's state once."""

    def __init__(self, client: Client, settings: Settings, workflow_id: str) -> None:
        self._client = client
        self._settings = settings
        self._workflow_id = workflow_id
        self._seen: tuple[object, ...] = ()

    async def tell(self, state: StateView) -> None:
        """Say where the run stands, if that is new."""
        seen = (state.status, state.version, state.pending is not None)
        if seen == self._seen or state.response is not None:
            return
        last = state.tool_sequence[-1:] if state.status.value.startswith("tool_") else ()
        words = (f"  {state.status.value}", *last, f"(version {state.version})")
        say(" ".join(words), *await self._waits_for(state))
        self._seen = seen

    async def _waits_for(self, state: StateView) -> list[str]:
        """Return what a person is asked, and how to answer."""
        if state.pending is None:
            return []
        # They load the database's library, which takes as long as the rest.
        from triage.cli.briefing_lines import briefing_lines, review_hint  # noqa: PLC0415 - above
        from triage.cli.briefing_sources import brief  # noqa: PLC0415 - likewise

        run = await find_run(self._client, self._workflow_id)
        shown = await brief(self._client, self._settings, run, state, state.pending)
        return [*briefing_lines(shown), review_hint(shown)]


async def follow(
    client: Client, settings: Settings, handle: WorkflowHandle[Any, TriageResponse]
) -> TriageResponse:
    """Wait for the run's response, however long a person takes.

    Raises:
        RefusedError: the run ended without a response.
    """
    result = asyncio.ensure_future(handle.result())
    telling = asyncio.ensure_future(_tell(client, settings, handle))
    try:
        return await result
    except WorkflowFailureError as error:
        raise platform_fault(error) from None
    except asyncio.CancelledError:
        say(f"the run goes on: 'triage show {shlex.quote(handle.id)}' shows where it stands")
        raise
    finally:
        result.cancel()
        telling.cancel()


async def _tell(client: Client, settings: Settings, handle: WorkflowHandle[Any, Any]) -> None:
    """Ask for the state now and then, until cancelled; say why, when nobody answers."""
    progress = Progress(client, settings, handle.id)
    pause, answered_at, said = FIRST_PAUSE_SECONDS, time.monotonic(), ""
    while True:
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, LONGEST_PAUSE_SECONDS)
        try:
            answer = await ask(handle, names.QUERY_STATE, QUERY_TIMEOUT)
            await progress.tell(StateView.model_validate_json(answer))
            answered_at, said = time.monotonic(), ""
        except (CliError, RPCError, ValidationError):
            if time.monotonic() - answered_at >= SILENCE_SECONDS:
                reason = await _why_silent(client, settings, handle)
                if reason != said:
                    say(reason)
                    said = reason


async def _why_silent(client: Client, settings: Settings, handle: WorkflowHandle[Any, Any]) -> str:
    try:
        if not await has_worker(client, settings.task_queue):
            return waiting_for_worker(settings)
        attempts = failed_attempts(await handle.describe(rpc_timeout=QUERY_TIMEOUT))
    except RPCError:
        return "Temporal does not answer at the moment; still trying"
    if attempts:
        return "a worker tried to carry the run on and failed, again and again: look at its log"
    return "no worker answers at the moment; still waiting"


def waiting_for_worker(settings: Settings) -> str:
    """Return the sentence for a queue that nobody polls."""
    return (
        f"no worker polls the queue {settings.task_queue!r} at the moment: the run begins when one "
        "does ('triage up', or 'python -m worker')"
    )


def platform_fault(error: WorkflowFailureError) -> RefusedError:
    """Return what to tell about a run that ended without a response."""
    cause = error.cause
    if isinstance(cause, CancelledError | TerminatedError):
        word = "cancelled" if isinstance(cause, CancelledError) else "terminated"
        return RefusedError(
            f"the run was {word} before it had a response",
            "'triage operations' shows what became of its writes",
        )
    deeper = cause.__cause__ or cause
    return RefusedError(
        f"the run ended without a response, as a fault of the platform: {deeper}",
        "look at the worker's log; no outcome of the triage itself ends a run this way",
    )


def put_response(response: TriageResponse, workflow_id: str, format_: Format) -> None:
    """Print a run's response."""
    if format_ is Format.JSON:
        put_json(response.model_dump(mode="json"))
    else:
        put(*response_lines(response, workflow_id))


def response_lines(response: TriageResponse, workflow_id: str) -> list[str]:
    """Return a run's response for people, one fact a line."""
    guess = guess_note(response.status, response.failure, response.route, response.evidence_ids)
    lines = [
        f"status      {response.status.value}",
        f"route       {response.route or '-'}{guess}",
        f"labels      {', '.join(response.labels) or '-'}",
        f"owner       {response.owner or '-'}",
        f"evidence    {', '.join(response.evidence_ids) or '-'}",
        *beside("reason      ", response.reason),
    ]
    if response.failure is not None:
        info = remedy(response.failure, response.reason or "")
        lines += [
            f"failure     {response.failure.value} ({info.group.value})",
            f"fixed by    {info.owner}",
            f"next step   {info.next_step}",
        ]
        if LABEL_REMOVED in (response.reason or ""):
            lines.append(f"continue    {BY_HAND}")
        elif response.failure in CONTINUABLE:
            command = f"triage resume {shlex.quote(workflow_id)}"
            lines.append(f"continue    once that is settled: {command}")
    return [*lines, f"steps       {response.steps}, of them retries {response.retries}"]
