"""What the `state`, `pending` and `mutations` queries answer."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import JsonValue, SerializerFunctionWrapHandler, model_serializer

from triage.contracts.approval import Verdict
from triage.contracts.base import Contract, Sparse
from triage.contracts.payloads import Provenance
from triage.contracts.response import Status, TriageResponse


class DecisionView(Contract):
    """One decision that a run acted on."""

    step: int
    kind: str
    call_id: str | None
    tool: str | None


class ModelFaultView(Contract):
    """A model call that gave no usable decision, and what the run did about it.

    Attributes:
        step: the step that it cost.
        model: who was asked.
        fault: its name; `schema_violated` too where the loop itself refused the answer.
        then: ``retry``, ``correct``, ``fallback`` (the next model is asked) or ``end``.
        wait_seconds: how long the run pauses before it asks again.
    """

    step: int
    model: str
    fault: str
    then: Literal["retry", "correct", "fallback", "end"]
    wait_seconds: int = 0


class EvidenceView(Contract):
    """One piece of evidence that a tool returned; its content is in the store."""

    id: str
    tool: str
    source: str
    locator: str
    digest: str


class RefusalView(Contract):
    """One review that did not count, why, and when it came (ISO 8601, UTC)."""

    code: str
    operation_id: str | None
    version: int | None
    approver: str | None
    at: str
    reason: str = ""


class OperationView(Contract):
    """One write that the run proposed and what became of it."""

    operation_id: str | None
    version: int
    digest: str
    state: str


class PendingView(Contract):
    """Exactly what a reviewer is asked to approve; times are ISO 8601, UTC.

    Where the rules want more than one person, `approvals_required` says how many and `approved_by`
    who has approved so far.
    """

    operation_id: str
    version: int
    tool: str
    target: dict[str, str]
    arguments: dict[str, JsonValue]
    digest: str
    labels_before: tuple[str, ...]
    labels_after: tuple[str, ...]
    proposed_by: str
    proposed_at: str
    expires_at: str
    approvals_required: int = 1
    approved_by: tuple[str, ...] = ()


class EditNote(Contract):
    """An edit: the run's version when it was taken up, and which fields of the request changed."""

    version: int
    fields: tuple[str, ...]


class VerdictNote(Sparse):
    """The review that decided on an operation, its note, and when it came (ISO 8601, UTC).

    Where several people had to approve, `approved_by` names them all, the one who decided last.
    """

    operation_id: str
    version: int
    verdict: Verdict
    approver: str
    at: str
    note: str | None = None
    approved_by: tuple[str, ...] | None = None


class SpentView(Contract):
    """What a run has used so far; `seconds` leave out the wait for a person."""

    tokens: int
    cost_micros: int
    seconds: int
    evidence_bytes: int


_OPTIONAL: Final = frozenset({"model_faults", "verdicts"})


class StateView(Contract):
    """The full state of a run; `response` is null until the run ends.

    `model_faults` and `verdicts` are left out as long as there are none, and so is `trail` in a
    run that keeps none; it stands for what was read (see `triage.contracts.trail`).
    """

    status: Status
    version: int
    steps: int
    retries: int
    tool_sequence: tuple[str, ...]
    decisions: tuple[DecisionView, ...]
    evidence: tuple[EvidenceView, ...]
    pending: PendingView | None
    refusals: tuple[RefusalView, ...]
    refusals_total: int
    operations: tuple[OperationView, ...]
    spent: SpentView
    provenance: Provenance
    response: TriageResponse | None
    model_faults: tuple[ModelFaultView, ...] = ()
    verdicts: tuple[VerdictNote, ...] = ()
    trail: str | None = None

    @model_serializer(mode="wrap")
    def _without_nothing(self, write: SerializerFunctionWrapHandler) -> dict[str, object]:
        written: dict[str, object] = write(self)
        if self.trail is None:
            written.pop("trail", None)
        return {name: value for name, value in written.items() if value or name not in _OPTIONAL}


class MutationRecord(Contract):
    """Whether a proposed write ran, and on what authority."""

    operation_id: str | None
    tool: str
    executed: bool
    authorized: bool
    reason: str
