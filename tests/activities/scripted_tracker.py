"""A tracker in memory that misbehaves as it is told, and a log of what really happened to it.

Why it exists: whether a label was written once can only be seen at the far end of the wire. The
log of commits is the ground truth that every test of the write compares with.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from tests.workflow.gate import Gate
from triage.trackers.base import (
    IssueNotFound,
    LabelPresence,
    LabelRefusal,
    LabelResult,
    LabelsAdded,
    LabelStatus,
    TrackedIssue,
    TrackerRefused,
    TrackerTimeout,
    TrackerUnavailable,
    content_digest,
)

INVENTORY = ("bug", "component:api", "documentation")


class Add(StrEnum):
    """What one call of `add_labels` does."""

    OK = "ok"
    CUT_BEFORE = "no answer, nothing was done"
    CUT_AFTER = "no answer, it was done"
    CUT_AND_LATE = "no answer, it will be done later"
    ERROR_AFTER = "a server error, it was done"
    ERROR_BEFORE = "a server error, nothing was done"
    NOT_NOW = "a definite no, with a pause"
    LOCKED = "a definite no, for good"
    HANGS = "no answer, ever"
    FORBIDDEN = "a definite no, for want of rights"
    MOVED = "a definite no, the issue is elsewhere"
    INVALID = "refused as a whole, nothing was done"
    PARTLY_INVALID = "refused as a whole, the first label was put on"
    INVALID_AFTER = "refused as a whole, it was done"
    IDLE = "a success, nothing was done"
    PARTLY_CUT = "no answer, the first label was put on"


class Read(StrEnum):
    """What one reading of an issue does."""

    OK = "ok"
    CUT = "no answer"
    ERROR = "a server error"
    HANGS = "no answer, ever"
    FORBIDDEN = "a definite no, for want of rights"


REFUSALS = {
    Add.LOCKED: "issue_locked",
    Add.FORBIDDEN: "forbidden",
    Add.MOVED: "issue_transferred",
    Add.INVALID: "validation_failed",
    Add.PARTLY_INVALID: "validation_failed",
    Add.INVALID_AFTER: "validation_failed",
}
DONE = {Add.OK, Add.CUT_AFTER, Add.ERROR_AFTER, Add.INVALID_AFTER}
PARTLY_DONE = {Add.PARTLY_INVALID, Add.PARTLY_CUT}


@dataclass(frozen=True)
class Commit:
    """Labels that really went on."""

    operation_key: str
    labels: tuple[str, ...]


@dataclass
class ScriptedTracker:
    """One issue; the scripts are played call by call, and then everything works."""

    adds: deque[Add] = field(default_factory=deque)
    reads: deque[Read] = field(default_factory=deque)
    title: str = "The API fails"
    exists: bool = True
    inventory: tuple[str, ...] = INVENTORY
    labels: set[str] = field(default_factory=set)
    removed: set[str] = field(default_factory=set)
    commits: list[Commit] = field(default_factory=list)
    calls: int = 0
    asked: list[tuple[str, ...]] = field(default_factory=list)
    pause_seconds: float = 30
    late: list[Commit] = field(default_factory=list)
    gate: Gate | None = None
    read_gate: Gate | None = None

    def will(self, *steps: Add | Read) -> None:
        """Play these steps next."""
        self.adds.extend(step for step in steps if isinstance(step, Add))
        self.reads.extend(step for step in steps if isinstance(step, Read))

    def land(self) -> None:
        """Let what was on its way arrive."""
        for commit in self.late:
            self._commit(commit.operation_key, commit.labels)
        self.late.clear()

    def person_removes(self, label: str) -> None:
        """A person takes a label off."""
        self.labels.discard(label)
        self.removed.add(label)

    @property
    def digest(self) -> str:
        """The digest of the issue's content as it is now."""
        return content_digest(self.title, "", "open", locked=False)

    async def admit_issue(
        self,
        repository: str,
        number: str,
        *,
        title: str,
        body: str,
        author: str | None,
        labels: Sequence[str],
    ) -> TrackedIssue:
        """See `Tracker.admit_issue`: only looks."""
        if not self.exists:
            raise TrackerRefused("issue_not_found", "there is no such issue")
        return self._issue(repository, number)

    async def get_issue(self, repository: str, number: str) -> TrackedIssue | IssueNotFound:
        """See `Tracker.get_issue`."""
        await self._read()
        if not self.exists:
            return IssueNotFound(repository=repository, number=number)
        return self._issue(repository, number)

    async def label_inventory(self, repository: str) -> tuple[str, ...]:
        """See `Tracker.label_inventory`."""
        return self.inventory

    async def label_presence(
        self, repository: str, number: str, labels: Sequence[str]
    ) -> tuple[LabelPresence, ...] | IssueNotFound:
        """See `Tracker.label_presence`."""
        if not self.exists:
            return IssueNotFound(repository=repository, number=number)
        return tuple(self._presence(label) for label in labels)

    async def add_labels(
        self,
        repository: str,
        number: str,
        labels: Sequence[str],
        *,
        by: str,
        operation_key: str,
    ) -> LabelsAdded:
        """See `Tracker.add_labels`; what it does is the next step of the script."""
        self.calls += 1
        self.asked.append(tuple(labels))
        if self.gate is not None:
            await self.gate.hold()
        step = self.adds.popleft() if self.adds else Add.OK
        wanted = tuple(label for label in labels if self._presence(label) is LabelPresence.ABSENT)
        if step in DONE:
            self._commit(operation_key, wanted)
        if step in PARTLY_DONE:
            self._commit(operation_key, wanted[:1])
        if step is Add.CUT_AND_LATE:
            self.late.append(Commit(operation_key, wanted))
        await self._answer(step)
        return LabelsAdded(results=tuple(self._result(label, wanted) for label in labels))

    async def _answer(self, step: Add) -> None:
        match step:
            case Add.CUT_BEFORE | Add.CUT_AFTER | Add.CUT_AND_LATE | Add.PARTLY_CUT:
                raise TrackerTimeout("no answer")
            case Add.ERROR_AFTER | Add.ERROR_BEFORE:
                raise TrackerUnavailable("server error", effect_possible=True)
            case Add.NOT_NOW:
                raise TrackerUnavailable(
                    "slow down", effect_possible=False, retry_after_seconds=self.pause_seconds
                )
            case _ if step in REFUSALS:
                raise TrackerRefused(REFUSALS[step], "no")
            case Add.HANGS:
                await asyncio.Event().wait()
            case _:
                pass

    async def _read(self) -> None:
        if self.read_gate is not None:
            await self.read_gate.hold()
        match self.reads.popleft() if self.reads else Read.OK:
            case Read.CUT:
                raise TrackerTimeout("no answer")
            case Read.ERROR:
                raise TrackerUnavailable("server error", effect_possible=False)
            case Read.FORBIDDEN:
                raise TrackerRefused("forbidden", "no")
            case Read.HANGS:
                await asyncio.Event().wait()
            case Read.OK:
                pass

    def _commit(self, operation_key: str, labels: Iterable[str]) -> None:
        new = tuple(label for label in labels if label not in self.labels)
        self.labels.update(new)
        if new:
            self.commits.append(Commit(operation_key, new))

    def _presence(self, label: str) -> LabelPresence:
        if label in self.labels:
            return LabelPresence.PRESENT
        return LabelPresence.REMOVED_BY_PERSON if label in self.removed else LabelPresence.ABSENT

    def _result(self, label: str, wanted: Sequence[str]) -> LabelResult:
        if label in wanted:
            return LabelResult(label=label, status=LabelStatus.ADDED)
        if label in self.labels:
            return LabelResult(label=label, status=LabelStatus.ALREADY_PRESENT)
        refusal = LabelRefusal.REMOVED_BY_PERSON
        return LabelResult(label=label, status=LabelStatus.REFUSED, refusal=refusal)

    def _issue(self, repository: str, number: str) -> TrackedIssue:
        return TrackedIssue(
            repository=repository,
            number=number,
            title=self.title,
            body="",
            state="open",
            locked=False,
            labels=tuple(sorted(self.labels)),
            author="reporter",
            content_digest=self.digest,
        )
