"""The three activities of the evidence loop: open an incident, choose, read.

Values are stored once and read by reference; the adapter is shown only what was read before.
"""

from __future__ import annotations

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.services import Services
from triage.contracts.canonical import (
    canonical_json,
    digest_of,
    digest_of_bytes,
    parse_json,
)
from triage.contracts.incident import (
    Choice,
    ChooseRequest,
    Incident,
    IncidentToStore,
    Observed,
    OpenedIncident,
    ReadReference,
)
from triage.contracts.names import (
    ACTIVITY_CHOOSE_ACTION,
    ACTIVITY_OPEN_INCIDENT,
    ACTIVITY_READ_REFERENCE,
)
from triage.models.loop_adapters import AdapterFailed, adapter_for
from triage.storage.documents import Document, DocumentKind
from triage.storage.evidence import EvidenceRow


class IncidentActivities:
    """Reads only: there is nothing here that writes outside our own store."""

    def __init__(self, services: Services) -> None:
        self._services = services

    @activity.defn(name=ACTIVITY_OPEN_INCIDENT)
    async def open(self, request: IncidentToStore) -> OpenedIncident:
        """Store the incident's values and return what the loop pins."""
        incident = request.incident
        body = canonical_json(incident.model_dump(mode="json"))
        stored = await self._services.documents.put(
            request.scope,
            DocumentKind.REQUEST,
            body,
            expires_at=self._services.content_expiry(),
        )
        adapter = adapter_for(incident)
        return OpenedIncident(
            incident_digest=stored,
            references_digest=digest_of(sorted(incident.evidence)),
            adapter=f"{adapter.name}@{adapter.revision}",
        )

    @activity.defn(name=ACTIVITY_CHOOSE_ACTION)
    async def choose(self, request: ChooseRequest) -> Choice:
        """Ask the adapter for one decision; that it raised is kept, its text is not."""
        incident = await self._incident(request.scope, request.incident_digest)
        rows = await self._services.evidence.load(request.scope, before_version=request.step)
        observed = {
            row.evidence_id: parse_json(row.content, "evidence")
            for row in rows
            if row.content is not None
        }
        try:
            return Choice(decision=adapter_for(incident).decide(request.step, observed))
        except AdapterFailed:
            return Choice(failed=True)

    @activity.defn(name=ACTIVITY_READ_REFERENCE)
    async def read(self, request: ReadReference) -> Observed:
        """Read one permitted reference and keep its value as evidence."""
        incident = await self._incident(request.scope, request.incident_digest)
        content = canonical_json(incident.evidence[request.ref])
        row = await self._services.evidence.put(
            EvidenceRow(
                scope=request.scope,
                version=request.step,
                evidence_id=request.ref,
                tool="read",
                arguments=canonical_json({"ref": request.ref}),
                source="incident",
                locator=f"incident@{request.incident_digest.removeprefix('sha256:')[:12]}"
                f"#{request.step}",
                digest=digest_of_bytes(content),
                content=content,
                size_bytes=len(content),
                expires_at=self._services.content_expiry(),
            )
        )
        return Observed(locator=row.locator, digest=row.digest)

    async def _incident(self, scope: str, digest: str) -> Incident:
        found = await self._services.documents.get(scope, DocumentKind.REQUEST, digest)
        if not isinstance(found, Document):
            raise ApplicationError(
                "the incident's content is unavailable", type="unavailable", non_retryable=True
            )
        return Incident.model_validate_json(found.body)
