"""The finite state machine of a triage run: statuses, legal moves and the version.

Pure: no Temporal, no clock. The version starts at 0 and grows by one at every transition, never
otherwise; it is what an approval is bound to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from triage.contracts.canonical import abbreviated
from triage.contracts.payloads import NOT_PINNED, EvidenceRef, Provenance
from triage.contracts.response import TERMINAL, Status, TriageResponse
from triage.contracts.state import (
    DecisionView,
    EditNote,
    EvidenceView,
    ModelFaultView,
    MutationRecord,
    OperationView,
    PendingView,
    RefusalView,
    SpentView,
    StateView,
    VerdictNote,
)
from triage.contracts.trail import START, onward

TRANSITIONS: Final[dict[Status, frozenset[Status]]] = {
    Status.RECEIVED: frozenset({Status.VALIDATED, Status.FAILED}),
    Status.VALIDATED: frozenset({Status.DECIDING, Status.FAILED}),
    Status.DECIDING: frozenset({Status.TOOL_PENDING, *TERMINAL}),
    Status.TOOL_PENDING: frozenset({Status.TOOL_COMPLETE, Status.REVIEW_REQUIRED, Status.FAILED}),
    Status.TOOL_COMPLETE: frozenset({Status.DECIDING, Status.FAILED}),
    Status.REVIEW_REQUIRED: frozenset(),
    Status.COMPLETED: frozenset(),
    Status.FAILED: frozenset(),
}

MAX_REFUSALS_KEPT: Final = 50
MAX_EDITS_KEPT: Final = 20
WITHDRAWN: Final = "withdrawn"
"""What became of an operation whose wait was ended by an edit."""


class IllegalTransition(Exception):  # noqa: N818 - the name says what happened
    """A move that the table does not list: a bug in the loop, never a user's mistake."""


@dataclass(slots=True)
class RunState:
    """Everything that a run knows about itself; changed only by its workflow.

    `applied` maps each operation that was carried out to the labels that it put on. `fallbacks` is
    how often the next model of the list was taken, `corrections` how often one was asked again
    because its answer had to be corrected. `trail` is that of what was read, None for a run that
    keeps none, and `receipts` are the digests of what its writes left.
    """

    status: Status = Status.RECEIVED
    version: int = 0
    steps: int = 0
    retries: int = 0
    corrections: int = 0
    fallbacks: int = 0
    model_faults: list[ModelFaultView] = field(default_factory=list)
    tool_sequence: list[str] = field(default_factory=list)
    decisions: list[DecisionView] = field(default_factory=list)
    evidence: list[EvidenceRef] = field(default_factory=list)
    pending: PendingView | None = None
    refusals: list[RefusalView] = field(default_factory=list)
    refusals_total: int = 0
    edits: list[EditNote] = field(default_factory=list)
    verdicts: list[VerdictNote] = field(default_factory=list)
    operations: list[OperationView] = field(default_factory=list)
    sent: dict[str, str] = field(default_factory=dict)
    mutations: list[MutationRecord] = field(default_factory=list)
    applied: dict[str, frozenset[str]] = field(default_factory=dict)
    trail: str | None = None
    receipts: list[str] = field(default_factory=list)
    tokens: int = 0
    cost_micros: int = 0
    seconds: int = 0
    took_ms: int = 0
    model_attempts: int = 0
    tool_attempts: int = 0
    provenance: Provenance = NOT_PINNED
    response: TriageResponse | None = None

    @property
    def is_terminal(self) -> bool:
        """Whether the run has ended."""
        return self.status in TERMINAL

    @property
    def evidence_bytes(self) -> int:
        """The stored size of all evidence that was returned."""
        return sum(item.size_bytes for item in self.evidence)

    def move(self, target: Status) -> None:
        """Go to `target` and grow the version by one.

        Raises:
            IllegalTransition: the table does not list the move.
        """
        if target not in TRANSITIONS[self.status]:
            raise IllegalTransition(f"{self.status} -> {target}")
        self._enter(target)

    def continue_at(self, version: int, evidence: Sequence[EvidenceRef]) -> None:
        """Take up the version and the evidence of the ended run that this one continues."""
        self.version = version
        for item in evidence:
            self.keep(item)

    def reopen(self, changed: tuple[str, ...]) -> None:
        """Go back to `validated` because these fields of the request were edited.

        Raises:
            IllegalTransition: the run has ended.
        """
        if self.is_terminal:
            raise IllegalTransition(f"{self.status} -> {Status.VALIDATED} by an edit")
        self.edits.append(EditNote(version=self.version, fields=changed))
        del self.edits[:-MAX_EDITS_KEPT]
        self._enter(Status.VALIDATED)

    def _enter(self, target: Status) -> None:
        self.status = target
        self.version += 1

    def keep_trail(self, *, is_kept: bool) -> None:
        """Keep a trail of what is read from now on, unless there is something without one."""
        if is_kept and self.trail is None and not self.evidence:
            self.trail = START

    def keep(self, evidence: EvidenceRef) -> None:
        """Keep what was read, so that it may be cited."""
        self.evidence.append(evidence)
        if self.trail is not None:
            self.trail = onward(self.trail, evidence.id, evidence.digest)

    def keep_receipt(self, receipt: EvidenceRef) -> None:
        """Keep what a write left, likewise."""
        self.evidence.append(receipt)
        self.receipts.append(abbreviated(receipt.digest))

    def charge_time(self, took_ms: int | None) -> None:
        """Count the milliseconds that a call took, where its result says them."""
        self.took_ms += took_ms or 0

    def known_evidence(self) -> frozenset[str]:
        """Return the ids that may be cited: those that a tool returned in this run."""
        return frozenset(item.id for item in self.evidence)

    def refuse(self, refusal: RefusalView) -> None:
        """Keep a refusal; the latest `MAX_REFUSALS_KEPT` stay, and all are counted."""
        self.refusals_total += 1
        self.refusals.append(refusal)
        del self.refusals[:-MAX_REFUSALS_KEPT]

    def view(self) -> StateView:
        """Return the answer of the `state` query."""
        return StateView(
            status=self.status,
            version=self.version,
            steps=self.steps,
            retries=self.retries,
            tool_sequence=tuple(self.tool_sequence),
            decisions=tuple(self.decisions),
            evidence=tuple(_evidence_view(item) for item in self.evidence),
            pending=self.pending,
            refusals=tuple(self.refusals),
            refusals_total=self.refusals_total,
            operations=tuple(self.operations),
            spent=SpentView(
                tokens=self.tokens,
                cost_micros=self.cost_micros,
                seconds=self.seconds,
                evidence_bytes=self.evidence_bytes,
            ),
            provenance=self.provenance,
            response=self.response,
            model_faults=tuple(self.model_faults),
            verdicts=tuple(self.verdicts),
            trail=self.trail,
        )


def _evidence_view(item: EvidenceRef) -> EvidenceView:
    return EvidenceView(
        id=item.id,
        tool=item.tool,
        source=item.source,
        locator=item.locator,
        digest=item.digest,
    )
