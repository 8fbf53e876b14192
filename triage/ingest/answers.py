"""Carries what people said in comments to the runs that wait for it.

Why it exists: only signed approvals count, and whoever comments has no key here. So this asks the
tracker who that is and what they may do, at this moment, and signs the answer for them with a key
that may do nothing else. Whatever is not exactly as it should be is refused and recorded; nobody is
told by a comment. Verifying the token, and looking at the rights again right before a write, is
for others: the word of this process alone writes nothing for somebody without rights.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from temporalio.client import (
    Client,
    WorkflowHandle,
    WorkflowQueryFailedError,
    WorkflowQueryRejectedError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from triage.connection import ServerUnreachable
from triage.contracts import names
from triage.contracts.approval import RefusalCode, Review, ReviewAnswer
from triage.contracts.canonical import short_hash
from triage.contracts.state import PendingView, StateView
from triage.policy.rules import Rules
from triage.settings_sources import SettingsError
from triage.signing.keys import SigningKey
from triage.signing.tokens import Statement, audience, sign, vouched_claims
from triage.storage.commands import MAX_AGE, Commands, HeldCommand
from triage.storage.documents import Document, DocumentKind, DocumentStore
from triage.trackers.base import TrackerError, TrackerRefused, TrackerUnavailable
from triage.trackers.people import KnowsPeople, Person
from triage.web.flood import Flood

LIFETIME: Final = timedelta(minutes=5)
PAUSE_SECONDS: Final = 10.0
"""After an attempt that could not be finished."""
MAX_PAUSE_SECONDS: Final = 300.0
ANSWERS_A_MINUTE: Final = 10
"""Of one person: who may not decide must not use up what the tracker lets us ask."""
NOT_PENDING: Final = RefusalCode.NOT_PENDING.value

_SHARED: Final = ""
_RPC_TIMEOUT: Final = timedelta(seconds=10)
_GONE: Final = frozenset({RPCStatusCode.NOT_FOUND})
_log = logging.getLogger(__name__)


class _NoError(Exception):
    """The answer does not count."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class _LaterError(Exception):
    """Nobody can say now."""

    def __init__(self, code: str, seconds: float = PAUSE_SECONDS) -> None:
        super().__init__(code)
        self.code = code
        self.seconds = min(seconds, MAX_PAUSE_SECONDS)


@dataclass(frozen=True, kw_only=True)
class Answering:
    """The one task of a process that carries answers on.

    Attributes:
        commands: what people said.
        documents: where the rules of runs are kept.
        connect: reaches the server, or raises within seconds.
        tracker: says who somebody is and what they may do.
        tracker_name: what operations and keys call it.
        key: may vouch for the tracker's people.
        refusals: counts what did not count, by its code.
        pace: for how many answers of one person the tracker is asked in a minute.
    """

    commands: Commands
    documents: DocumentStore
    connect: Callable[[], Awaitable[Client]]
    tracker: KnowsPeople
    tracker_name: str
    key: SigningKey
    refusals: Counter[str]
    pace: Flood = field(default_factory=lambda: Flood(ANSWERS_A_MINUTE))

    async def carry_all(self) -> None:
        """Carry everything on that is due.

        Raises:
            StorageError: the store does not answer.
        """
        while (held := await self.commands.take()) is not None:
            await self._carry(held)

    async def _carry(self, held: HeldCommand) -> None:
        try:
            await self._answer(held)
        except _NoError as refusal:
            await self._refuse(held, refusal.code)
        except _LaterError as error:
            _log.warning("an answer waits", extra={"code": error.code})
            await self.commands.later(held, error.code, error.seconds)
        else:
            _log.info("an answer counts", extra={"workflow_id": held.workflow_id})
            await self.commands.accepted(held)

    async def _refuse(self, held: HeldCommand, code: str) -> None:
        if await self.commands.refused(held, code):
            self.refusals[code] += 1
            told = {"code": code, "count": self.refusals[code], "workflow_id": held.workflow_id}
            _log.warning("an answer does not count", extra=told)

    async def _answer(self, held: HeldCommand) -> None:
        """Check everything, sign and send.

        Raises:
            _NoError: it does not count.
            _LaterError: nobody can say now.
        """
        if held.age > MAX_AGE:
            raise _NoError("old")
        if held.workflow_id is None:
            raise _NoError("no_run")
        handle = await self._run(held.workflow_id)
        state = await _state_of(handle)
        pending = _pending(held, state)
        if wait := self.pace.wait_for(held.person_id):
            raise _LaterError("pace", wait)
        person = await self._person(held, await self._rules(state))
        review = await self._signed(held, handle, pending, person)
        await _send(handle, review, held.command_key)

    async def _run(self, workflow_id: str) -> WorkflowHandle[object, object]:
        try:
            client = await self.connect()
        except (ServerUnreachable, SettingsError):
            raise _LaterError("unreachable") from None
        return client.get_workflow_handle(workflow_id)

    async def _rules(self, state: StateView) -> Rules:
        """Return the rules that the run is held to."""
        found = await self.documents.get(_SHARED, DocumentKind.POLICY, state.provenance.policy)
        if not isinstance(found, Document):
            raise _NoError("no_rules")
        return Rules.model_validate_json(found.body)

    async def _person(self, held: HeldCommand, rules: Rules) -> Person:
        """Return who said it, if they may, by the tracker's word of this moment."""
        try:
            person = await self.tracker.person(held.repository, held.login)
        except TrackerRefused:
            raise _NoError("no_word") from None
        except TrackerUnavailable as error:
            pause = error.retry_after_seconds or PAUSE_SECONDS
            raise _LaterError("tracker", pause) from None
        except TrackerError:
            raise _LaterError("tracker") from None
        if person is None or person.id != held.person_id or not person.may_answer:
            raise _NoError(RefusalCode.UNAUTHORISED.value)
        if person.right.value not in rules.comment_rights:
            raise _NoError(RefusalCode.UNAUTHORISED.value)
        return person

    async def _signed(
        self,
        held: HeldCommand,
        handle: WorkflowHandle[object, object],
        pending: PendingView,
        person: Person,
    ) -> Review:
        """Return the review, signed for one use: the comment's own, however often it is tried."""
        client = await self.connect()
        statement = Statement(
            audience=audience(client.namespace),
            workflow_id=handle.id,
            operation_id=pending.operation_id,
            version=pending.version,
            digest=pending.digest,
            verdict=held.verdict,
            approver=person.login,
            scope=await _scope_of(handle, held.tenant),
        )
        claims = vouched_claims(
            statement,
            self.tracker_name,
            person.id,
            datetime.now(UTC),
            lifetime=LIFETIME,
            jti=held.command_key,
        )
        return Review(
            operation_id=pending.operation_id,
            version=pending.version,
            approver=person.login,
            digest=pending.digest,
            token=sign(claims, self.key),
            verdict=held.verdict,
        )


async def _state_of(handle: WorkflowHandle[object, object]) -> StateView:
    try:
        state: StateView = await handle.query(
            names.QUERY_STATE, result_type=StateView, rpc_timeout=_RPC_TIMEOUT
        )
    except (WorkflowQueryFailedError, WorkflowQueryRejectedError):
        raise _LaterError("no_state") from None
    except RPCError as error:
        raise _trouble(error) from None
    return state


def _pending(held: HeldCommand, state: StateView) -> PendingView:
    """Return the operation that the comment names, if the run shows just that since before it."""
    pending = state.pending
    if pending is None or pending.operation_id != held.operation_id:
        raise _NoError(NOT_PENDING)
    if pending.version != held.version:
        raise _NoError(RefusalCode.STALE_VERSION.value)
    # A comment's time has whole seconds. What was said before it was asked answers something else.
    if held.said_at < datetime.fromisoformat(pending.proposed_at).replace(microsecond=0):
        raise _NoError("early")
    return pending


async def _scope_of(handle: WorkflowHandle[object, object], tenant: str) -> str:
    try:
        found = await handle.describe(rpc_timeout=_RPC_TIMEOUT)
    except RPCError as error:
        raise _trouble(error) from None
    first = found.raw_description.workflow_execution_info.first_run_id
    return short_hash(tenant, handle.id, first)


async def _send(handle: WorkflowHandle[object, object], review: Review, key: str) -> None:
    """Send a review; the server takes a second one under the same key for the first."""
    try:
        answer: ReviewAnswer = await handle.execute_update(
            names.UPDATE_REVIEW, review, id=key, result_type=ReviewAnswer, rpc_timeout=_RPC_TIMEOUT
        )
    except WorkflowUpdateFailedError as error:
        cause = error.cause
        is_ours = isinstance(cause, ApplicationError) and cause.type in set(RefusalCode)
        raise _NoError(str(cause.type) if is_ours else "refused") from None  # type: ignore[attr-defined] # an ApplicationError
    except (WorkflowUpdateRPCTimeoutOrCancelledError, TimeoutError):
        raise _LaterError("no_answer") from None
    except RPCError as error:
        raise _trouble(error) from None
    if not answer.accepted:
        raise _NoError(answer.code)


def _trouble(error: RPCError) -> _NoError | _LaterError:
    """Say what a fault of the server means: a run that has ended waits for nothing."""
    return (
        _NoError(NOT_PENDING) if error.status in _GONE else _LaterError(error.status.name.lower())
    )
