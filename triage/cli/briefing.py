"""What a reviewer is shown before deciding: the operation, what it rests on, and what stands by it.

Why it exists: a person approves exactly one write, and must see all that the approval covers. What
cannot be shown here is never left out: a `Gone` stands in its place and says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from pydantic import JsonValue

from triage.contracts.canonical import parse_json
from triage.contracts.logins import folded
from triage.contracts.state import EvidenceView, PendingView
from triage.storage.switches import Switch
from triage.trackers.base import TrackedIssue


@dataclass(frozen=True, slots=True)
class Gone:
    """Stands where something cannot be shown here, and says why in a few words."""

    why: str


@dataclass(frozen=True, slots=True)
class ShownEvidence:
    """A piece of evidence with its content, exactly as it is stored."""

    view: EvidenceView
    content: bytes | Gone


@dataclass(frozen=True, slots=True)
class ModelText:
    """What the model answered. Nobody has checked its words.

    Attributes:
        request_digest: names the stored request that it was given.
    """

    kind: str
    route: str
    owner: str
    labels: tuple[str, ...]
    evidence_ids: tuple[str, ...]
    reason: str
    request_digest: str = ""


@dataclass(frozen=True, slots=True)
class ShownRequest:
    """The text that the model was given, which need not be what the tracker has."""

    title: str
    body: str


@dataclass(frozen=True, slots=True)
class ShownIssue:
    """The issue as its tracker has it now.

    Attributes:
        is_covered: whether this very text is what the operation's digest covers.
    """

    issue: TrackedIssue
    is_covered: bool


def too_few(
    approvers: Sequence[str], authors: Iterable[str], required: int
) -> tuple[str, ...] | None:
    """Return who of those that the rules name may approve, where they are fewer than have to.

    None where there may be enough: rules that name nobody let anybody decide.
    """
    barred = set(map(folded, authors))
    may = tuple(name for name in approvers if folded(name) not in barred)
    return may if approvers and len(may) < required else None


@dataclass(frozen=True, slots=True)
class Briefing:
    """All that is shown of one pending operation.

    Attributes:
        stops: the switches that stop its write now.
        signs: whether only signed approvals count.
        approvers: whom the rules let decide; empty for anybody, or if they are not known here.
    """

    workflow_id: str
    pending: PendingView
    evidence: tuple[ShownEvidence, ...]
    model: ModelText | Gone
    request: ShownRequest | Gone
    issue: ShownIssue | Gone
    stops: tuple[Switch, ...] | Gone
    signs: bool = False
    approvers: tuple[str, ...] = ()

    @property
    def too_few(self) -> tuple[str, ...] | None:
        """Who may approve, where they are fewer than have to; None where there may be enough."""
        if not isinstance(self.issue, ShownIssue):
            return None
        authors = (self.issue.issue.author,)
        return too_few(self.approvers, authors, self.pending.approvals_required)

    def is_cited(self, evidence_id: str) -> bool:
        """Whether the model rests its answer on this piece of evidence."""
        return isinstance(self.model, ModelText) and evidence_id in self.model.evidence_ids

    @property
    def other_request(self) -> ShownRequest | None:
        """The text that the model was given, where the tracker is known to have another one."""
        request, shown = self.request, self.issue
        if not isinstance(request, ShownRequest) or not isinstance(shown, ShownIssue):
            return None
        is_same = (request.title, request.body) == (shown.issue.title, shown.issue.body)
        return None if is_same else request

    def to_json(self) -> dict[str, JsonValue]:
        """Return everything as data, nothing of it cut."""
        before, after = self.pending.labels_before, self.pending.labels_after
        return {
            "workflow_id": self.workflow_id,
            "operation": self.pending.model_dump(mode="json"),
            "adds": [*without(after, before)],
            "removes": [*without(before, after)],
            "evidence": [self._evidence_json(item) for item in self.evidence],
            "model": _model_json(self.model),
            "request": _request_json(self.request),
            "issue": _issue_json(self.issue),
            "writes_stopped": _stops_json(self.stops),
            "signature_needed": self.signs,
            "too_few_may_approve": self.too_few is not None,
        }

    def _evidence_json(self, item: ShownEvidence) -> dict[str, JsonValue]:
        document: dict[str, JsonValue] = item.view.model_dump(mode="json")
        document["cited"] = self.is_cited(item.view.id)
        if isinstance(item.content, Gone):
            return {**document, "content": None, "unavailable": item.content.why}
        return {**document, "content": parse_json(item.content, "evidence"), "unavailable": None}


def without(labels: Sequence[str], others: Sequence[str]) -> list[str]:
    """Return the labels that are not among `others`, in their order."""
    return [label for label in labels if label not in others]


def _model_json(model: ModelText | Gone) -> dict[str, JsonValue]:
    if isinstance(model, Gone):
        return {"unavailable": model.why}
    fields = asdict(model)
    lists = {name: [*fields.pop(name)] for name in ("labels", "evidence_ids")}
    return {"verified": False, **fields, **lists}


def _request_json(request: ShownRequest | Gone) -> dict[str, JsonValue]:
    return {"unavailable": request.why} if isinstance(request, Gone) else asdict(request)


def _issue_json(shown: ShownIssue | Gone) -> dict[str, JsonValue]:
    if isinstance(shown, Gone):
        return {"unavailable": shown.why}
    fields = asdict(shown.issue)
    lists = {name: [*fields.pop(name)] for name in ("labels", "label_ids")}
    return {**fields, **lists, "covered_by_digest": shown.is_covered}


def _stops_json(stops: tuple[Switch, ...] | Gone) -> JsonValue:
    if isinstance(stops, Gone):
        return {"unavailable": stops.why}
    return [
        {
            "tenant": stop.tenant,
            "by": stop.by,
            "reason": stop.reason,
            "changed_at": stop.changed_at.isoformat(),
        }
        for stop in stops
    ]
