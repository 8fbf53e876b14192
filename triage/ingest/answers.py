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

from temporalio.client import Client
from temporalio.service import RPCError

from triage.connection import ServerUnreachable
from triage.continuing import newest_of
from triage.contracts.approval import RefusalCode, Review, Verdict
from triage.contracts.logins import folded
from triage.contracts.repositories import folded_repository
from triage.contracts.state import PendingView, StateView
from triage.ingest.runs import (
    NOT_PENDING,
    PAUSE_SECONDS,
    Handle,
    LaterError,
    NotCountedError,
    has_taken,
    scope_of,
    send,
    state_of,
    trouble,
)
from triage.policy.rules import Rules
from triage.settings_sources import SettingsError
from triage.signing.keys import SigningKey
from triage.signing.tokens import Statement, audience, sign, token_id_of, vouched_claims
from triage.storage.approvals import Approvals
from triage.storage.commands import MAX_AGE, Commands, HeldCommand
from triage.storage.documents import SHARED, Document, DocumentKind, DocumentStore
from triage.storage.operations import operation_key
from triage.trackers.base import TrackerError, TrackerRefused, TrackerUnavailable
from triage.trackers.people import KnowsPeople, Person
from triage.web.flood import Flood

LIFETIME: Final = timedelta(minutes=5)
ANSWERS_A_MINUTE: Final = 10
"""Of one person: who may not decide must not use up what the tracker and the server let us ask."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Answering:
    """The one task of a process that carries answers on.

    Attributes:
        commands: what people said.
        approvals: the decisions on record.
        documents: where the rules of runs are kept.
        connect: reaches the server, or raises within seconds.
        tracker: says who somebody is and what they may do.
        tracker_name: what operations and keys call it.
        key: may vouch for the tracker's people.
        refusals: counts what did not count, by its code.
        pace: for how many answers of one person runs and the tracker are asked in a minute.
    """

    commands: Commands
    approvals: Approvals
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
        except NotCountedError as refusal:
            await self._refuse(held, refusal.code)
        except LaterError as error:
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
            NotCountedError: it does not count.
            LaterError: nobody can say now.
        """
        workflow_id = _run_of(held)
        if wait := self.pace.wait_for(held.person_id):
            raise LaterError("pace", wait)
        handle = await self._run(held, workflow_id)
        if held.sent_to is not None and await self._counted_before(held, handle):
            return
        if held.age > MAX_AGE:
            raise NotCountedError("old")
        state = await state_of(handle)
        pending = _pending(held, state)
        repository = str(pending.target["repository"])
        person = await self._person(held, repository, await self._rules(state))
        review = await self._signed(held, handle, pending, person)
        if not await self.commands.sending(held, handle.id):
            raise LaterError("held")
        await send(handle, review, held.command_key)

    async def _run(self, held: HeldCommand, workflow_id: str) -> Handle:
        """Return the run that it was sent to, or the one that stands for the issue now."""
        try:
            client = await self.connect()
        except (ServerUnreachable, SettingsError):
            raise LaterError("unreachable") from None
        if held.sent_to is not None:
            return client.get_workflow_handle(workflow_id)
        try:
            return await newest_of(client, workflow_id)
        except RPCError as error:
            raise trouble(error) from None

    async def _counted_before(self, held: HeldCommand, handle: Handle) -> bool:
        """Whether an earlier attempt was accepted, and died before anybody learned of it.

        The server knows the answer by the comment's key. A run that continued as new since knows
        what was decided, or who has approved so far: then the record must have this very comment's
        token, for another person's same answer, or this person's other comment, is another one.
        """
        if await has_taken(handle, held.command_key):
            return True
        if not _may_have_counted(held, await state_of(handle)):
            return False
        token_id = token_id_of(self.key.kid, held.command_key)
        if await self.approvals.by_token(token_id) is not None:
            return True
        key = operation_key(await scope_of(handle, held.tenant), held.operation_id)
        return await self.approvals.is_counted(key, held.version, token_id)

    async def _rules(self, state: StateView) -> Rules:
        """Return the rules that the run is held to."""
        found = await self.documents.get(SHARED, DocumentKind.POLICY, state.provenance.policy)
        if not isinstance(found, Document):
            raise NotCountedError("no_rules")
        return Rules.model_validate_json(found.body)

    async def _person(self, held: HeldCommand, repository: str, rules: Rules) -> Person:
        """Return who said it, if they may, by the tracker's word of this moment."""
        try:
            person = await self.tracker.person(repository, held.login)
        except TrackerRefused:
            raise NotCountedError("no_word") from None
        except TrackerUnavailable as error:
            pause = error.retry_after_seconds or PAUSE_SECONDS
            raise LaterError("tracker", pause) from None
        except TrackerError:
            raise LaterError("tracker") from None
        if person is None or person.id != held.person_id or not person.may_answer:
            raise NotCountedError(RefusalCode.UNAUTHORISED.value)
        if person.right.value not in rules.comment_rights:
            raise NotCountedError(RefusalCode.UNAUTHORISED.value)
        return person

    async def _signed(
        self,
        held: HeldCommand,
        handle: Handle,
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
            scope=await scope_of(handle, held.tenant),
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


def _run_of(held: HeldCommand) -> str:
    """Return the run that it was sent to, or the one that the issue's newest text started."""
    if held.sent_to is None and held.age > MAX_AGE:
        raise NotCountedError("old")
    if held.sent_to is None and held.is_starting:
        # Whoever started the run that asks may have died before that was recorded.
        raise LaterError("starting")
    if (workflow_id := held.sent_to or held.workflow_id) is None:
        raise NotCountedError("no_run")
    return workflow_id


def _may_have_counted(held: HeldCommand, state: StateView) -> bool:
    """Whether the run was told this answer by somebody, as its decision or as one of several."""
    said, pending = (held.operation_id, held.version, held.verdict), state.pending
    if said in {(note.operation_id, note.version, note.verdict) for note in state.verdicts}:
        return True
    if pending is None or said != (pending.operation_id, pending.version, Verdict.APPROVE):
        return False
    return folded(held.login) in map(folded, pending.approved_by)


def _pending(held: HeldCommand, state: StateView) -> PendingView:
    """Return the operation that the comment names, if the run shows just that since before it."""
    pending = state.pending
    if pending is None or pending.operation_id != held.operation_id:
        raise NotCountedError(NOT_PENDING)
    if pending.version != held.version:
        raise NotCountedError(RefusalCode.STALE_VERSION.value)
    if _place(str(pending.target["repository"]), pending.target["issue"]) != _place(
        held.repository, held.number
    ):
        raise NotCountedError("other_issue")
    # A comment's time has whole seconds, so it may have been made before a question of the same
    # second. What was said before it was asked answers something else.
    if held.said_at < datetime.fromisoformat(pending.proposed_at):
        raise NotCountedError("early")
    return pending


def _place(repository: str, number: object) -> tuple[str, object]:
    """Return an issue's place to compare: a repository may be written in any letters."""
    return folded_repository(repository), number
