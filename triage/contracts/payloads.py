"""The arguments and results of activities: references and bounded fields, never content.

Every value here is written into a workflow's history, so it stays small: issue text and tool
output live in the store and are named by scope, version and digest.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field, JsonValue

from triage.contracts.base import Contract, Sparse
from triage.contracts.deflated import Deflated
from triage.contracts.model_faults import ModelFault
from triage.contracts.options import BudgetLimits, ContinuedFrom, IssueContext
from triage.contracts.request import TriageRequest


class Provenance(Contract):
    """What a run was decided with, pinned when it starts; empty for what it does not have."""

    orchestrator: str
    policy: str
    prompt: str
    tools: str
    model: str
    prices: str


NOT_PINNED = Provenance(orchestrator="", policy="", prompt="", tools="", model="", prices="")
"""The provenance of a run that has not begun."""


class ToolSnapshot(Contract):
    """What the loop needs to know of a registered tool; the rest stays with the activity.

    `target` says that each call of a read is told which issue the run is about, `local` that a read
    asks nobody and so runs inside the workflow task.
    """

    name: str
    arguments: dict[str, str]
    timeout_ms: int
    max_attempts: int = 1
    side_effect: bool = False
    operation_id: bool = False
    target: bool = False
    local: bool = False


class PolicySnapshot(Contract):
    """The rules that a run is held to, so that a changed file never changes a replay."""

    routes: tuple[str, ...]
    labels: dict[str, tuple[str, ...]]
    tools: tuple[ToolSnapshot, ...]
    mode: str
    max_steps: int
    max_model_retries: int
    grounding: str
    reminder_seconds: int = 0
    escalation_seconds: int = 0
    approval_window_seconds: int | None = None
    approvals_required: int = 1
    approvers: tuple[str, ...] = ()
    budget: BudgetLimits = BudgetLimits()
    max_corrections: int = 0
    fallback_models: tuple[str, ...] = ()


class Usage(Contract):
    """What was charged for one step; zeros when the adapter costs nothing.

    It holds calls that were lost with their worker, and the reservation of a call whose use nobody
    can say.
    """

    tokens: int = 0
    cost_micros: int = 0


class Asked(Contract):
    """What a model was asked, as far as no history holds it: a local activity's argument is not."""

    step: int
    version: int
    request_digest: str


class DecideOutcome(StrEnum):
    """What came of asking a model."""

    DECISION = "decision"
    TIMEOUT = "timeout"
    INVALID = "invalid"
    UNAVAILABLE = "unavailable"
    EXHAUSTED = "exhausted"


class DecideResult(Sparse):
    """Result of `decide`: plain data that the workflow parses itself.

    `unavailable` says that content which the decision needs has expired, and `exhausted` that a
    budget which runs share is spent; no model was asked then. `fault` names what went wrong with
    `timeout` (no answer) and `invalid` (no usable answer); `retry_after_seconds` is the provider's
    own word, clamped. `attempts` is how often the activity was tried; None is once. `asked` is
    there for a local call alone. `took_ms` is there where the request wants to be `timed`.
    """

    outcome: DecideOutcome
    decision: JsonValue = None
    detail: str = ""
    usage: Usage = Usage()
    fault: ModelFault | None = None
    retry_after_seconds: int | None = None
    attempts: int | None = None
    asked: Asked | None = None
    took_ms: int | None = None


class EvidenceRef(Contract):
    """A piece of evidence as the workflow knows it: an id, a place and a digest.

    `facts` are the few normalised fields that decisions are checked against, and `attempts` how
    often the tool was tried for it. A read leaves out its `tool`, and a `source` that its locator
    begins with: the workflow has both.
    """

    id: str
    tool: str = ""
    source: str = ""
    locator: str
    digest: str
    size_bytes: int = 0
    facts: dict[str, JsonValue] = Field(default_factory=dict)
    attempts: int = 1


class ReadResult(EvidenceRef):
    """Result of a read tool's activity: the evidence, and the answer to the question it led to.

    `answer` is there where that question came along and the model had a decision, `took_ms` where
    the request wants to be `timed`.
    """

    answer: DecideResult | None = None
    took_ms: int | None = None

    def read_by(self, tool: str) -> EvidenceRef:
        """Return the whole reference, of what `tool` has read."""
        said = {name: getattr(self, name) for name in self.model_fields_set - {"answer", "took_ms"}}
        source = self.source or self.locator.partition("@")[0]
        return EvidenceRef.model_validate({**said, "tool": self.tool or tool, "source": source})


class Turn(Contract):
    """When the first question of a run is due: its step, and the run's version then."""

    step: int
    version: int


class PinRequest(Contract):
    """Argument of `pin_run_context`; a local activity, so it leaves no trace in the history.

    `wants_label_ids` says that somebody approved a write before the run began. `turn` is there
    where nothing can come between this and the first question, so that it may be asked here.
    `timed` asks for the time that it takes.
    """

    scope: str
    request: TriageRequest
    context: IssueContext
    model: str | None = None
    continued_from: ContinuedFrom | None = None
    wants_label_ids: bool = False
    turn: Turn | None = None
    timed: bool = False


class RunContext(Deflated):
    """Result of `pin_run_context`: the bounded snapshot that the workflow reads rules from.

    `refused` says why the run cannot start (an unknown model, a missing script); everything else
    is then empty. `inherited` is the evidence of the run that this one continues. `author` opened
    the issue, as the tracker knows it; `claimed_author` is another one that the start named.
    `security` says that the issue's text alone makes it one for a security review. `label_ids` are
    the ids of the rules' labels, where a write was approved before the run began; None elsewhere.
    `local_model` says that the run's models ask nobody, so that each call is a local activity.
    `answer` is the model's to the first question, where that came along. `trailed` says that the
    run keeps a trail of what it reads, and begins no turn in a fresh history where that depends on
    what its worker met. `took_ms` is what the pinning took, from when it was asked for, in a run
    whose time is bounded: where it is given, all of that time is what was recorded.
    """

    refused: str | None = None
    policy: PolicySnapshot | None = None
    provenance: Provenance = NOT_PINNED
    request_digest: str = ""
    content_digest: str = ""
    model: str = ""
    model_timeout_ms: int = 10_000
    tracker: str = "local"
    author: str = ""
    claimed_author: str = ""
    local_trust: bool = False
    security: bool = False
    inherited: tuple[EvidenceRef, ...] = ()
    label_ids: dict[str, str] | None = None
    local_model: bool = False
    answer: DecideResult | None = None
    trailed: bool = False
    took_ms: int | None = None

    @property
    def bounds_time(self) -> bool:
        """Whether the rules bound the time of every run."""
        return self.policy is not None and self.policy.budget.seconds is not None

    @property
    def timed(self) -> bool | None:
        """Whether this run's calls have to say how long they took; None, which takes no room."""
        return None if self.took_ms is None else True

    def without_answer(self) -> RunContext:
        """Return what holds for the whole run."""
        if self.answer is None:
            return self
        said = {name: getattr(self, name) for name in self.model_fields_set - {"answer"}}
        return RunContext.model_construct(**said)

    def after(self, before: RunContext) -> RunContext:
        """Return what an edited run is held to, which was held to `before`."""
        kept: dict[str, object] = {}
        if before.security:
            # An edit that takes the word away takes nothing back.
            kept["security"] = True
        if before.label_ids is not None:
            # Nor is what was approved at the start about labels that an edit found.
            kept["label_ids"] = before.label_ids
        if before.took_ms is None and self.took_ms is not None:
            # A run that began by its worker's clock has spent by that, and goes on by it.
            kept["took_ms"] = None
        return self.model_copy(update=kept) if kept else self


class DecideRequest(Sparse):
    """Argument of `decide`: the step and where its inputs are stored.

    `correction` says in our words what was wrong with the answer before, so that the model may
    correct it. `tokens_left`, `cost_micros_left` and `attempts_left` are what the run may still
    spend; None is no bound. Both digests may be abbreviated: see `abbreviated`. `request` is there
    for a local call alone, which leaves no argument in any history: nobody has to look it up then.
    `trail` is that of what the run has read, and `receipts` are the digests of what its writes
    left; without a trail all that is stored before `version` counts. `timed`: see `PinRequest`.
    """

    scope: str
    step: int
    version: int
    model: str
    request_digest: str
    policy_digest: str
    correction: str | None = None
    tokens_left: int | None = None
    cost_micros_left: int | None = None
    attempts_left: int | None = None
    request: TriageRequest | None = None
    trail: str | None = None
    receipts: tuple[str, ...] | None = None
    timed: bool | None = None


class Target(Contract):
    """The issue that a write is about: always the request's own."""

    tracker: str
    repository: str
    issue: str


class ReadRequest(Sparse):
    """Argument of a read tool's activity.

    `target` is the run's issue, for a tool that needs it. `ask` is the question that comes next,
    for a local call alone: it is asked as soon as the evidence is kept. `after` is the trail of
    what the run has read before; None for one that keeps none. `timed`: see `PinRequest`.
    """

    scope: str
    version: int
    arguments: dict[str, JsonValue]
    policy_digest: str
    timeout_ms: int
    target: Target | None = None
    ask: DecideRequest | None = None
    after: str | None = None
    timed: bool | None = None


class Operation(Sparse):
    """A proposed write, exactly as it would be sent.

    `digest` is the ledger's (type, target, arguments); `approval_digest` covers everything that
    the reviewer saw. `label_ids` are the ids of the labels when they were shown, by the names in
    `labels`; None where nobody was shown them, or the tracker has none.
    """

    operation_id: str
    version: int
    tool: str
    target: Target
    labels: tuple[str, ...]
    digest: str
    approval_digest: str
    label_ids: dict[str, str] | None = None


class PreviewRequest(Contract):
    """Argument of `preview_operation`: what would change if the labels were added.

    `at` is when it is asked (ISO 8601, UTC); see `Preview`.
    """

    target: Target
    labels: tuple[str, ...]
    at: str | None = None
    timed: bool = True


class Preview(Sparse):
    """Result of `preview_operation`.

    `missing` are labels that the tracker does not have; `gone` says that it has no such issue, and
    everything else is then empty. `removed` are labels that a person took off the issue, `too_many`
    says that it would have more of them than it may, and `label_ids` are the ids of those that
    would be added. `at` is the request's and `took_ms` what came after it: the wait for a person
    begins then, in every replay, too. `late` says that it has got later than that.
    """

    labels_before: tuple[str, ...] = ()
    labels_after: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    content_digest: str = ""
    gone: bool = False
    removed: tuple[str, ...] | None = None
    too_many: bool | None = None
    label_ids: dict[str, str] | None = None
    at: str | None = None
    took_ms: int | None = None
    late: bool | None = None


class Approval(Contract):
    """The accepted review that a write rests on."""

    approver: str
    source: Literal["start", "signal", "update"]
    decided_at: str
    expires_at: str | None = None


class WriteRequest(Sparse):
    """Argument of `apply_labels`; `timed` asks for the time that it takes."""

    scope: str
    tenant: str
    operation: Operation
    approval: Approval
    content_digest: str
    policy_digest: str
    timeout_ms: int
    timed: bool | None = None


class WriteOutcome(StrEnum):
    """What is known about a write."""

    APPLIED = "applied"
    CONFLICT = "conflict"
    REFUSED = "refused"
    FAILED = "failed"
    UNKNOWN = "unknown"


class WriteResult(Sparse):
    """Result of `apply_labels`; `evidence` is the receipt, citable like any other evidence.

    `replayed` says that the receipt was there already, `earlier` that another execution of the run
    has written, before it was reset: an attempt after a lost worker answers for its own run.
    """

    outcome: WriteOutcome
    replayed: bool = False
    earlier: bool | None = None
    evidence: EvidenceRef | None = None
    detail: str = ""
    took_ms: int | None = None
