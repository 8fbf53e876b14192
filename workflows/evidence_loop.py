"""EvidenceLoop: Pattern 01, a bounded loop that can only read what it was given.

Completion is explicit: a run that spends its limit is exhausted, even right after a good read,
and never taken for finished.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError

with workflow.unsafe.imports_passed_through():
    from triage.contracts import names
    from triage.contracts.base import ContractError
    from triage.contracts.canonical import short_hash
    from triage.contracts.failures import FailureClass
    from triage.contracts.incident import (
        Choice,
        ChooseRequest,
        Incident,
        IncidentToStore,
        LoopEvent,
        LoopResult,
        LoopStatus,
        Observed,
        OpenedIncident,
        ReadReference,
        parse_incident,
        parse_loop_decision,
    )
    from triage.contracts.options import DEFAULT_TENANT
    from workflows import calls
    from workflows.evidence_rules import READ, stop_reason
    from workflows.start import read_json

_TIMEOUT = timedelta(seconds=10)


@workflow.defn(name=names.EVIDENCE_LOOP)
class EvidenceLoop:
    """One read-only investigation of one incident."""

    def __init__(self) -> None:
        self._events: list[LoopEvent] = []

    @workflow.run
    async def run(self, *args: Any) -> LoopResult:  # noqa: ANN401 - whatever was sent
        """Investigate the incident in `args[0]`.

        Raises:
            ApplicationError: of type ``invalid_input``, when the argument is not an incident.
        """
        incident = _read_incident(args)
        info = workflow.info()
        scope = short_hash(DEFAULT_TENANT, info.workflow_id, info.first_execution_run_id)
        opened = await calls.local(
            names.ACTIVITY_OPEN_INCIDENT,
            IncidentToStore(scope=scope, incident=incident),
            OpenedIncident,
        )
        status = await self._loop(incident, scope, opened)
        return LoopResult(
            status=status,
            reads=len(self._events),
            events=tuple(self._events),
            incident_id=incident.incident_id,
            adapter=opened.adapter,
            references_digest=opened.references_digest,
            limit=incident.limit,
        )

    async def _loop(self, incident: Incident, scope: str, opened: OpenedIncident) -> LoopStatus:
        observed: list[str] = []
        for step in range(1, incident.limit + 1):
            choice = await calls.remote(
                names.ACTIVITY_CHOOSE_ACTION,
                ChooseRequest(scope=scope, step=step, incident_digest=opened.incident_digest),
                Choice,
                _TIMEOUT,
            )
            if choice.failed:
                return LoopStatus.ADAPTER_ERROR
            decision = parse_loop_decision(choice.decision)
            status = stop_reason(decision, incident.evidence, observed)
            if status is not None or decision is None or decision.argument is None:
                return status or LoopStatus.INVALID
            await self._read(scope, step, decision.argument, opened)
            observed.append(decision.argument)
        return LoopStatus.EXHAUSTED

    async def _read(self, scope: str, step: int, ref: str, opened: OpenedIncident) -> None:
        request = ReadReference(
            scope=scope, step=step, ref=ref, incident_digest=opened.incident_digest
        )
        await calls.remote(names.ACTIVITY_READ_REFERENCE, request, Observed, _TIMEOUT)
        self._events.append(LoopEvent(step=step, tool=READ, ref=ref))

    @workflow.query(name=names.QUERY_STATE, description="the permitted reads so far")
    def state(self) -> list[LoopEvent]:
        """Return the permitted reads so far."""
        return self._events


def _read_incident(args: tuple[Any, ...]) -> Incident:
    try:
        if len(args) != 1:
            raise ContractError(f"expected one incident, got {len(args)} inputs")
        return parse_incident(read_json(args[0], "incident"))
    except ContractError as error:
        failure = FailureClass.INVALID_INPUT.value
        raise ApplicationError(str(error), type=failure, non_retryable=True) from None
