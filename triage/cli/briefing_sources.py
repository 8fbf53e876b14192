"""Gathers what a reviewer is shown from where it is: the run, its history and the database.

Why it exists: whoever reviews may sit at a machine that has no database, or another one than the
workers have. So each part is looked for by itself, and held to the digests that the run gave.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from pydantic import ValidationError
from temporalio.client import Client

from triage.cli.briefing import (
    Briefing,
    Gone,
    ModelText,
    ShownEvidence,
    ShownIssue,
    ShownRequest,
)
from triage.cli.briefing_model import model_text
from triage.cli.briefing_trust import needs_signature
from triage.cli.clients import RPC_TIMEOUT, Run
from triage.cli.stores import LOOK_SECONDS, look_into_store
from triage.continuing import first_run_id
from triage.contracts.canonical import digest_of_bytes, short_hash
from triage.contracts.request import TriageRequest
from triage.contracts.search_attributes import TRIAGE_TENANT
from triage.contracts.state import EvidenceView, PendingView, StateView
from triage.policy.rules import Rules
from triage.policy.tools import BUILTIN_TOOLS
from triage.settings import Settings
from triage.storage.documents import SHARED, Document, DocumentKind, DocumentStore, Unavailable
from triage.storage.engine import Store
from triage.storage.errors import StorageError
from triage.storage.evidence import EvidenceStore, StoredEvidence
from triage.storage.switches import Switch, Switches
from triage.story.desk import Proposal
from triage.trackers.base import TrackerError, TrackerRefused
from triage.trackers.factory import open_trackers
from triage.trackers.reading import read_issue

NOT_HERE: Final = "it is not in this database"
_WRITE_TOOLS: Final = frozenset(tool.name for tool in BUILTIN_TOOLS if tool.side_effect)


async def brief(
    client: Client, settings: Settings, run: Run, state: StateView, pending: PendingView
) -> Briefing:
    """Return all that can be shown of what a run waits for.

    Raises:
        RPCError: Temporal does not answer.
    """
    model = await model_text(client, run)
    signs = await needs_signature(client, settings, run)
    try:
        async with look_into_store(settings) as store:
            found = await _look(settings, store, run, state, pending, model)
    except StorageError as error:
        gone = Gone(str(error))
        evidence = tuple(ShownEvidence(view, gone) for view in state.evidence)
        found = Briefing(run.id, pending, evidence, model, gone, gone, gone)
    return replace(found, signs=signs)


async def _look(
    settings: Settings,
    store: Store,
    run: Run,
    state: StateView,
    pending: PendingView,
    model: ModelText | Gone,
) -> Briefing:
    tenant, scope = await _place(run)
    return Briefing(
        workflow_id=run.id,
        pending=pending,
        evidence=await stored_evidence(store, scope, state, pending),
        model=model,
        request=await stored_request(store, scope, model),
        issue=await tracked_issue(settings, store, state, pending),
        stops=await writes_stopped(store, tenant),
        approvers=await named_approvers(store, state.provenance.policy),
    )


async def _place(run: Run) -> tuple[str | None, str | None]:
    """Return the tenant of a run and the scope under which its content is kept.

    A run names its tenant once it waits, which it may not have done when it was found.
    """
    now = await run.handle.describe(rpc_timeout=RPC_TIMEOUT)
    tenant = now.typed_search_attributes.get(TRIAGE_TENANT)
    first = first_run_id(now)
    scope = short_hash(tenant, run.id, first) if tenant and first else None
    return tenant, scope


async def stored_evidence(
    store: Store, scope: str | None, state: StateView, pending: PendingView
) -> tuple[ShownEvidence, ...]:
    """Return the run's evidence with its content, if that is still what the run was given."""
    rows = await EvidenceStore(store).load(scope, pending.version) if scope else []
    found = {(row.evidence_id, row.digest): row for row in rows}
    return tuple(
        ShownEvidence(view, _content(view, found.get((view.id, view.digest))))
        for view in state.evidence
    )


def _content(view: EvidenceView, row: StoredEvidence | None) -> bytes | Gone:
    if row is None:
        if view.tool in _WRITE_TOOLS:
            return Gone("a receipt; 'triage operations' has it")
        return Gone(NOT_HERE)
    if row.content is None:
        return Gone("its content has expired")
    if digest_of_bytes(row.content) != view.digest:
        return Gone("what is stored is not what the run was given")
    return row.content


async def stored_request(
    store: Store, scope: str | None, model: ModelText | Gone
) -> ShownRequest | Gone:
    """Return the text that the model was given."""
    if isinstance(model, Gone) or not model.request_digest or scope is None:
        return Gone("which text the model was given is not known")
    documents = DocumentStore(store)
    found = await documents.get(scope, DocumentKind.REQUEST, model.request_digest)
    if not isinstance(found, Document):
        return Gone("its content has expired" if isinstance(found, Unavailable) else NOT_HERE)
    try:
        request = TriageRequest.model_validate_json(found.body)
    except ValidationError:
        return Gone("another version of this program stored it")
    return ShownRequest(request.title, request.body)


async def named_approvers(store: Store, policy: str) -> tuple[str, ...]:
    """Return whom a run's rules let decide; nobody where they name none, or are not known here."""
    found = await DocumentStore(store).get(SHARED, DocumentKind.POLICY, policy)
    if not isinstance(found, Document):
        return ()
    try:
        return Rules.model_validate_json(found.body).approvers
    except ValidationError:
        return ()


async def tracked_issue(
    settings: Settings, store: Store, state: StateView, pending: PendingView
) -> ShownIssue | Gone:
    """Return the issue, and whether the pending digest is over just this text."""
    target = pending.target
    tracker = open_trackers(settings, store).get(target.get("tracker", ""))
    if tracker is None:
        return Gone("its tracker cannot be reached from here")
    repository, number = target.get("repository", ""), target.get("issue", "")
    try:
        issue = await read_issue(tracker, repository, number, timeout_seconds=LOOK_SECONDS)
    except TrackerRefused as error:
        return Gone(f"{error} ({store.address.shown})")
    except TrackerError as error:
        return Gone(str(error))
    covering = _proposal(pending).approval_digest(issue.content_digest, state.provenance.policy)
    return ShownIssue(issue, is_covered=covering == pending.digest)


def _proposal(pending: PendingView) -> Proposal:
    labels = pending.arguments.get("labels")
    return Proposal(
        operation_id=pending.operation_id,
        version=pending.version,
        tool=pending.tool,
        target=pending.target,
        labels=tuple(map(str, labels)) if isinstance(labels, list) else (),
        proposed_by=pending.proposed_by,
    )


async def writes_stopped(store: Store, tenant: str | None) -> tuple[Switch, ...]:
    """Return the switches that stop a tenant's writes now, everybody's first."""
    switches = await Switches(store).list()
    return tuple(s for s in switches if s.stopped and s.tenant in {None, tenant})
