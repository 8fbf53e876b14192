"""What a story has learned so far: each later event means what the earlier ones make of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from pydantic import JsonValue, ValidationError

from triage.contracts.approval import Review, Verdict
from triage.contracts.names import ACTIVITY_APPLY_LABELS
from triage.contracts.options import DEFAULT_REPOSITORY, MODES, Mode, ModeValues
from triage.contracts.payloads import EvidenceRef, ToolSnapshot
from triage.policy.grounding import about_path
from triage.story.desk import START, Desk, Proposal, StartingApproval, Wait
from triage.story.payloads import Fields
from triage.story.words import MAX_QUOTE_CHARS, named, quoted

MIN_WHOLE_CHARS: Final = 8
ECHO_CHARS: Final = 32
ECHO_STRIDE: Final = 8
"""Whatever repeats 39 characters in a row is found, and nothing that shares fewer than 32."""

WITHHELD: Final = "(withheld: it repeats the issue's text)"


@dataclass(slots=True)
class Memory:
    """What is known of one run.

    Attributes:
        workflow_id: names the run.
        workflow_type: what kind of run it is.
        request: the request as it stands; edits replace it.
        options: what the caller asked for.
        context: what was pinned.
        issue_text: titles and bodies, which no story may repeat.
        edited: whether an edit came that the run has not yet taken up.
        edits: the version at which each edit came, and the names of the fields that it changed.
        version: the run's version at its latest decision.
        applied: the labels that this run has put on the issue.
        sent: the digest of each operation that was sent, by its id.
        published: the search attributes that were written last.
        recorded: the digests that approvals of writes that were sent had to carry.
        waited: how long a person was waited for.
        asked: what a tool was asked with last; of a local read no history holds it.
        looped_since: since when the run counts its own time; None before its first task.
    """

    workflow_id: str
    workflow_type: str
    began: datetime
    request: Fields = field(default_factory=Fields)
    options: Fields = field(default_factory=Fields)
    context: Fields = field(default_factory=Fields)
    issue_text: set[str] = field(default_factory=set)
    edited: bool = False
    edits: list[tuple[int, tuple[str, ...]]] = field(default_factory=list)
    evidence: list[EvidenceRef] = field(default_factory=list)
    applied: set[str] = field(default_factory=set)
    sent: dict[str, str] = field(default_factory=dict)
    retries: int = 0
    corrections: int = 0
    fallbacks: int = 0
    version: int = 0
    proposal: Proposal | None = None
    desk: Desk = field(default_factory=Desk)
    published: dict[str, str] = field(default_factory=dict)
    recorded: dict[tuple[str, int], str] = field(default_factory=dict)
    canceled: bool = False
    waited: timedelta = timedelta()
    asked: Mapping[str, JsonValue] = field(default_factory=dict)
    looped_since: datetime | None = None

    def learn_request(self, request: Fields) -> None:
        """Take a request, and see that its text is not repeated."""
        self.request = request
        texts = (request.text("title").strip(), request.text("body").strip())
        self.issue_text.update(text for text in texts if len(text) >= MIN_WHOLE_CHARS)

    def edit(self, request: Fields, changed: Iterable[str]) -> None:
        """Take an edit of the request, which the run takes up next."""
        wait = self.desk.wait
        self.edits.append((wait.version if wait else self.version, tuple(changed)))
        self.learn_request(request)
        self.edited = True

    def pin(self, context: Fields) -> None:
        """Take what was pinned: the rules, and who may decide."""
        self.context = context
        self.desk.local = context.flag("local_trust")
        self.desk.author = context.text("author") or self.desk.author
        self.desk.claimed_author = context.text("claimed_author")
        self.desk.approvers = self.policy.texts("approvers")

    def keep(
        self, value: Fields, arguments: Mapping[str, JsonValue] | None = None
    ) -> EvidenceRef | None:
        """Keep evidence that may be cited from now on; None if it is none.

        Args:
            value: what was returned; what else came along with it is no part of it.
            arguments: what a tool was asked with, if this is its answer.
        """
        try:
            evidence = EvidenceRef.model_validate(value.only(EvidenceRef.model_fields).json())
        except ValidationError:
            return None
        if arguments is not None:
            evidence = about_path(evidence, arguments)
        self.evidence.append(evidence)
        return evidence

    def said(self, text: str) -> str:
        """Quote what a model, a tool or a person said, unless it repeats the issue's text."""
        short = text[:MAX_QUOTE_CHARS]
        starts = range(0, len(short) - ECHO_CHARS + 1, ECHO_STRIDE)
        pieces = [short[start : start + ECHO_CHARS] for start in starts]
        for issue_text in self.issue_text:
            if issue_text in short or any(piece in issue_text for piece in pieces):
                return WITHHELD
        return quoted(text)

    def failed(self, kind: str, message: str) -> str:
        """Put a failure into words: its type and, where it can be read, its message."""
        parts = (named(kind) if kind else "", self.said(message) if message else "")
        return " ".join(part for part in parts if part) or "a failure that is not readable here"

    @property
    def policy(self) -> Fields:
        """The rules that were pinned."""
        return self.context.fields("policy")

    @property
    def mode(self) -> ModeValues | None:
        """What the run's mode stands for; None if the mode is not known."""
        name = self.options.text("mode") or self.policy.text("mode")
        return MODES[Mode(name)] if name in set(Mode) else None

    @property
    def permitted_effects(self) -> frozenset[str]:
        """The tools with side effects that this run may use."""
        if "permitted_effects" in self.options:
            return frozenset(self.options.texts("permitted_effects"))
        return frozenset(self.mode.permitted_effects if self.mode else ())

    @property
    def window(self) -> timedelta | None:
        """How long a person may take to decide; None if it is not known."""
        seconds = self.options.number("approval_window_seconds")
        if seconds is None and self.mode is not None:
            seconds = self.mode.approval_window_seconds
            # The rules say how long a wait lasts, where the mode waits at all.
            seconds = seconds and (self.policy.number("approval_window_seconds") or seconds)
        return None if seconds is None else timedelta(seconds=seconds)

    @property
    def approvals_required(self) -> int:
        """How many people have to approve a write."""
        return self.policy.number("approvals_required") or 1

    @property
    def tools(self) -> dict[str, ToolSnapshot]:
        """The registered tools, by name."""
        listed = self.policy.value("tools")
        found = [_tool(item) for item in (listed if isinstance(listed, list) else [])]
        return {tool.name: tool for tool in found if tool is not None}

    @property
    def labels(self) -> frozenset[str]:
        """The labels that may be proposed."""
        return frozenset(self.policy.fields("labels").texts("descriptive"))

    @property
    def target(self) -> dict[str, str]:
        """The issue that a write of this run is about."""
        context = self.options.fields("context")
        return {
            "tracker": context.text("tracker") or self.context.text("tracker") or "local",
            "repository": context.text("repository") or DEFAULT_REPOSITORY,
            "issue": context.text("issue") or self.request.text("request_id"),
        }

    def limit(self, name: str) -> int | None:
        """Return a limit: that of the options, else that of the rules."""
        chosen = self.options.number(name)
        return self.policy.number(name) if chosen is None else chosen

    def seconds_left(self, at: datetime) -> int | None:
        """Return what the run could still use of its seconds at its turn then; None for no bound.

        The time that people took is not counted.
        """
        bounds = (
            fields.fields("budget").number("seconds") for fields in (self.options, self.policy)
        )
        limit = min((bound for bound in bounds if bound is not None), default=None)
        spent = at - (self.looped_since or self.began) - self.waited
        return None if limit is None else max(0, limit - int(spent.total_seconds()))

    def known_evidence(self) -> frozenset[str]:
        """Return the ids that may be cited."""
        return frozenset(item.id for item in self.evidence)

    def must_propose(self, labels: Iterable[str]) -> bool:
        """Whether the orchestrator asks for approval of a final answer's labels."""
        proposes = self.mode is not None and self.mode.propose_on_final
        permitted = ACTIVITY_APPLY_LABELS in self.permitted_effects
        return proposes and permitted and not self.applied.issuperset(labels)

    def propose(
        self, tool: str, operation_id: str, labels: Iterable[str], proposed_by: str
    ) -> Proposal:
        """Keep and return a write that was proposed; it is pending at the next version."""
        self.proposal = Proposal(
            operation_id=operation_id,
            version=self.version + 1,
            tool=tool,
            target=self.target,
            labels=tuple(sorted(set(labels))),
            proposed_by=proposed_by,
        )
        return self.proposal

    def starting_review(self, proposal: Proposal) -> Review | None:
        """Return the approval of an operation that the run was started with, if there is one."""
        approvals = self.options.fields("approvals")
        given = approvals.fields(proposal.operation_id)
        version = (
            given.number("version") if given.readable else approvals.number(proposal.operation_id)
        )
        if version is None:
            return None
        try:
            return Review(
                operation_id=proposal.operation_id,
                version=version,
                approver=given.text("approver") if given.readable else START,
                token=given.text("token") or None,
                verdict=Verdict.APPROVE,
            )
        except ValidationError:
            return None

    def starting_approval(self, proposal: Proposal) -> StartingApproval | None:
        """Say what the approval of an operation from the run's start is worth, if there is one."""
        review = self.starting_review(proposal)
        if review is None:
            return None
        return self.desk.judge_start(review, proposal.version, self.approvals_required)

    def begin_wait(self, since: datetime) -> None:
        """Begin to wait for a decision on the latest proposal."""
        self.desk.open(since, self._wait(since))

    def moments(self) -> Iterator[tuple[str, datetime]]:
        """Yield what a wait runs into, and when: reminder, escalation and deadline."""
        since, wait = self.desk.since, self.desk.wait
        if since is None or wait is None:
            return
        for name in ("reminder", "escalation"):
            seconds = self.policy.number(f"{name}_seconds")
            if seconds and (
                wait.deadline is None or since + timedelta(seconds=seconds) < wait.deadline
            ):
                yield name, since + timedelta(seconds=seconds)
        if wait.deadline is not None:
            yield "the time to decide", wait.deadline

    def _wait(self, since: datetime) -> Wait | None:
        proposal, policy = self.proposal, self.context.fields("provenance").text("policy")
        if proposal is None or not self.context.readable:
            return None
        computed = proposal.approval_digest(self.context.text("content_digest"), policy)
        return Wait(
            operation_id=proposal.operation_id,
            version=proposal.version,
            digest=self.recorded.get((proposal.operation_id, proposal.version), computed),
            deadline=None if self.window is None else since + self.window,
            approvals_required=self.approvals_required,
        )


def _tool(value: object) -> ToolSnapshot | None:
    try:
        return ToolSnapshot.model_validate(value)
    except ValidationError:
        return None
