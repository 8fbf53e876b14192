"""Speaks with the run that a comment answers: what it waits for, and whether it has the answer.

Why it exists: the server may be away, a run may have ended or gone on as another one, and an answer
may have counted although nobody learned of it. Each of these is either a reason why a comment does
not count, or a reason to ask again later, and never a guess.
"""

from __future__ import annotations

from collections.abc import Awaitable
from datetime import timedelta
from typing import Any, Final

from temporalio.client import (
    WorkflowHandle,
    WorkflowQueryFailedError,
    WorkflowQueryRejectedError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from triage.continuing import first_run_id
from triage.contracts import names
from triage.contracts.approval import RefusalCode, Review, ReviewAnswer
from triage.contracts.canonical import short_hash
from triage.contracts.state import StateView

PAUSE_SECONDS: Final = 10.0
"""After an attempt that could not be finished."""
MAX_PAUSE_SECONDS: Final = 300.0
NOT_PENDING: Final = RefusalCode.NOT_PENDING.value

Handle = WorkflowHandle[Any, Any]

_RPC_TIMEOUT: Final = timedelta(seconds=10)


class NotCountedError(Exception):
    """The answer does not count."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class GoneError(NotCountedError):
    """What was asked about is not there, or not any more."""


class LaterError(Exception):
    """Nobody can say now."""

    def __init__(self, code: str, seconds: float = PAUSE_SECONDS) -> None:
        super().__init__(code)
        self.code = code
        self.seconds = min(seconds, MAX_PAUSE_SECONDS)


async def state_of(handle: Handle) -> StateView:
    """Return where a run stands.

    Raises:
        NotCountedError: there is no such run.
        LaterError: nobody can say now.
    """
    try:
        state: StateView = await handle.query(
            names.QUERY_STATE, result_type=StateView, rpc_timeout=_RPC_TIMEOUT
        )
    except (WorkflowQueryFailedError, WorkflowQueryRejectedError):
        raise LaterError("no_state") from None
    except RPCError as error:
        raise trouble(error) from None
    return state


async def scope_of(handle: Handle, tenant: str) -> str:
    """Return the scope of a run's operations; raises what `state_of` raises."""
    try:
        found = await handle.describe(rpc_timeout=_RPC_TIMEOUT)
    except RPCError as error:
        raise trouble(error) from None
    return short_hash(tenant, handle.id, first_run_id(found))


async def send(handle: Handle, review: Review, key: str) -> None:
    """Send a review; the server takes a second one under the same key for the first.

    Raises:
        NotCountedError: the run refused it.
        LaterError: nobody knows whether the run has it.
    """
    await _accepted(
        handle.execute_update(
            names.UPDATE_REVIEW, review, id=key, result_type=ReviewAnswer, rpc_timeout=_RPC_TIMEOUT
        )
    )


async def has_taken(handle: Handle, key: str) -> bool:
    """Whether the run accepted the review that was sent under this key; False if it knows of none.

    A run that continued as new since then does not know any more.

    Raises:
        NotCountedError: it refused that review.
        LaterError: nobody can say now.
    """
    sent = handle.get_update_handle(key, result_type=ReviewAnswer)
    try:
        await _accepted(sent.result(rpc_timeout=_RPC_TIMEOUT))
    except GoneError:
        return False
    return True


def trouble(error: RPCError) -> NotCountedError | LaterError:
    """Say what a fault of the server means: a run that has ended waits for nothing."""
    is_gone = error.status is RPCStatusCode.NOT_FOUND
    return GoneError(NOT_PENDING) if is_gone else LaterError(error.status.name.lower())


async def _accepted(asked: Awaitable[ReviewAnswer]) -> None:
    try:
        answer = await asked
    except WorkflowUpdateFailedError as error:
        raise _refusal(error) from None
    except (WorkflowUpdateRPCTimeoutOrCancelledError, TimeoutError):
        raise LaterError("no_answer") from None
    except RPCError as error:
        raise trouble(error) from None
    if not answer.accepted:
        raise NotCountedError(answer.code)


def _refusal(error: WorkflowUpdateFailedError) -> NotCountedError:
    cause = error.cause
    is_ours = isinstance(cause, ApplicationError) and cause.type in set(RefusalCode)
    return NotCountedError(str(cause.type) if is_ours else "refused")  # type: ignore[attr-defined] # an ApplicationError
