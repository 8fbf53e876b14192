"""What a run takes over from the ended run that it continues: its evidence, out of the store.

Why it exists: whoever starts a run may claim anything in its options. So no evidence comes with
them: it is looked up under the scope of the run that is named, which has to be of the same tenant
and about the same request, and is copied under the scope of the new run with its own expiry.
"""

from __future__ import annotations

from typing import Final

from activities.reads import stored_facts
from activities.services import Services
from triage.contracts.canonical import parse_json, short_hash
from triage.contracts.options import ContinuedFrom
from triage.contracts.payloads import EvidenceRef, PinRequest
from triage.contracts.request import TriageRequest
from triage.policy.grounding import about_path
from triage.policy.tools import ToolSpec
from triage.storage.documents import Document, DocumentKind
from triage.storage.evidence import StoredEvidence, followed

_ANY_VERSION: Final = 2**31 - 1


class NothingToContinueError(Exception):
    """The run that is to be continued cannot be; the message is for people."""


async def inherit(services: Services, request: PinRequest) -> tuple[EvidenceRef, ...]:
    """Copy the evidence of the continued run and return it, oldest first; nothing if there is none.

    Copying twice is copying once.

    Raises:
        NothingToContinueError: the store knows no such run of this tenant, it is about another
            request, its content has expired, or it cannot have ended at this version.
    """
    source = request.continued_from
    if source is None:
        return ()
    scope = short_hash(request.context.tenant, source.workflow_id, source.run_id)
    await _check_request(services, scope, request.request)
    rows = await services.evidence.load(scope, before_version=_ANY_VERSION)
    rows = _known_to(source, rows, services)
    _check_version(source, rows)
    copies = await services.evidence.copy(rows, request.scope)
    return tuple(_reference(row, services.tools.get(row.tool)) for row in copies)


async def _check_request(services: Services, scope: str, request: TriageRequest) -> None:
    stored = await services.documents.newest(scope, DocumentKind.REQUEST)
    if stored is None:
        raise NothingToContinueError("continued_from: this store knows no such run of this tenant")
    if not isinstance(stored, Document):
        raise NothingToContinueError(
            "continued_from: the content of that run has expired; start a new run instead"
        )
    if TriageRequest.model_validate_json(stored.body).request_id != request.request_id:
        raise NothingToContinueError("continued_from: that run is about another request")


def _known_to(
    source: ContinuedFrom, rows: list[StoredEvidence], services: Services
) -> list[StoredEvidence]:
    """Leave out what the run has read in vain, as far as its trail is known."""
    if source.trail is None:
        return rows
    read = followed(rows, source.trail)
    if read is None:
        raise NothingToContinueError("continued_from.trail: that run has not read what it says")
    known = {(row.version, row.call) for row in read}
    return [row for row in rows if (row.version, row.call) in known or _is_receipt(row, services)]


def _is_receipt(row: StoredEvidence, services: Services) -> bool:
    tool = services.tools.get(row.tool)
    return tool is not None and tool.side_effect


def _check_version(source: ContinuedFrom, rows: list[StoredEvidence]) -> None:
    """A run cannot have ended before its last tool call was pending."""
    if any(row.version >= source.version for row in rows):
        raise NothingToContinueError("continued_from.version: that run ended at a later version")


def _reference(row: StoredEvidence, tool: ToolSpec | None) -> EvidenceRef:
    evidence = EvidenceRef(
        id=row.evidence_id,
        tool=row.tool,
        source=row.source,
        locator=row.locator,
        digest=row.digest,
        size_bytes=row.size_bytes,
        facts=stored_facts(row, tool),
    )
    asked = parse_json(row.arguments, "arguments") if row.arguments else None
    return about_path(evidence, asked) if isinstance(asked, dict) else evidence
