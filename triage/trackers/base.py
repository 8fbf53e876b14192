"""What a tracker is: the far end of the wire, where issues live and labels are written.

Why it exists: the write path must know what an answer proves. So a tracker's results are typed, and
so are its failures: nothing happened, nobody knows, or it was refused for good. No tracker retries
by itself, creates a label, removes one, or puts one back that a person removed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol

from triage.contracts.base import MAX_LABEL_CHARS
from triage.contracts.canonical import digest_of

MAX_LABELS: Final = 100
"""An issue has no more."""
MAX_REQUEST_ID_CHARS: Final = 128
_REQUEST_ID: Final = re.compile(rf"[A-Za-z0-9:._-]{{1,{MAX_REQUEST_ID_CHARS}}}")


class TrackerError(Exception):
    """A tracker could not do what was asked."""


class TrackerTimeout(TrackerError):  # noqa: N818 - names the fault, as the others do
    """No answer in time: a write may have happened, or may still."""


class TrackerUnavailable(TrackerError):  # noqa: N818 - names the fault, as the others do
    """The tracker failed and may work later.

    Attributes:
        effect_possible: whether a write may have happened; False is a definite no.
        retry_after_seconds: the pause that the tracker asked for, if it did.
    """

    def __init__(
        self,
        message: str,
        *,
        effect_possible: bool,
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(message)
        self.effect_possible = effect_possible
        self.retry_after_seconds = retry_after_seconds


class StoreUnavailable(TrackerUnavailable):
    """It keeps its issues in our own store, and that one did not answer."""


GONE_CODES: Final = frozenset({"issue_not_found", "issue_gone", "issue_transferred"})
"""The issue is not where it was."""
PERMISSION_CODES: Final = frozenset({"unauthorized", "forbidden"})
"""We may not; only somebody who changes our rights can help."""
UNCERTAIN_CODES: Final = frozenset({"validation_failed"})
"""The request as a whole was refused, which does not rule out that a part of it was done."""


class TrackerRefused(TrackerError):  # noqa: N818 - names the fault, as the others do
    """The tracker will not do it, and did nothing, unless the code is one of `UNCERTAIN_CODES`.

    Attributes:
        code: why, such as ``issue_not_found`` or ``issue_locked``.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, kw_only=True)
class TrackedIssue:
    """An issue as it is now.

    Attributes:
        repository: where it lives.
        number: its id there, as text.
        title: as its author wrote it.
        body: likewise.
        state: ``open`` or ``closed``.
        locked: whether the tracker takes no more writes on it.
        labels: their names as the tracker spells them.
        author: who opened it; empty when that is not known.
        content_digest: see `content_digest`.
        label_ids: the ids of `labels`, in their order; empty where the tracker does not say.
    """

    repository: str
    number: str
    title: str
    body: str
    state: str
    locked: bool
    labels: tuple[str, ...]
    author: str
    content_digest: str
    label_ids: tuple[str, ...] = field(default=(), compare=False)

    @property
    def labels_known(self) -> bool:
        """Whether `labels` are all there are, each with its id."""
        return len(self.label_ids) == len(self.labels) <= MAX_LABELS


@dataclass(frozen=True, kw_only=True)
class IssueNotFound:
    """There is no such issue, or none that we may see; `code` says what became of it."""

    repository: str
    number: str
    code: str = "issue_not_found"

    def __bool__(self) -> bool:
        return False


class LabelStatus(StrEnum):
    """What became of one label."""

    ADDED = "added"
    ALREADY_PRESENT = "already_present"
    REFUSED = "refused"


class LabelRefusal(StrEnum):
    """Why a label was not added."""

    UNKNOWN_LABEL = "unknown_label"
    """The tracker has no such label; it is not created, and no other label is added either."""
    NOT_ATTEMPTED = "not_attempted"
    """Another label of the same call is unknown."""
    REMOVED_BY_PERSON = "removed_by_person"
    """A person took it off this issue; it is not put back."""


@dataclass(frozen=True, kw_only=True)
class LabelResult:
    """What became of one label; `label` is the tracker's own spelling if it knows the label."""

    label: str
    status: LabelStatus
    refusal: LabelRefusal | None = None


@dataclass(frozen=True, kw_only=True)
class LabelsAdded:
    """The outcome of `add_labels`: one result a label, in the order asked.

    Attributes:
        results: what became of each.
        created: those that the tracker made anew, since they had vanished just before: a person
            has to know of them.
        request_id: the tracker's own name for the request that did it, if it gave one: at most
            `MAX_REQUEST_ID_CHARS` letters, digits, colons, dots, dashes and underscores.
    """

    results: tuple[LabelResult, ...]
    created: tuple[str, ...] = ()
    request_id: str | None = None

    @property
    def added(self) -> tuple[str, ...]:
        """The labels that this call put on the issue."""
        return self._with(LabelStatus.ADDED)

    @property
    def already_present(self) -> tuple[str, ...]:
        """The labels that were on the issue before."""
        return self._with(LabelStatus.ALREADY_PRESENT)

    @property
    def refused(self) -> tuple[str, ...]:
        """The labels that are not on the issue because of this system's own rules."""
        return self._with(LabelStatus.REFUSED)

    def _with(self, status: LabelStatus) -> tuple[str, ...]:
        return tuple(result.label for result in self.results if result.status is status)


class LabelPresence(StrEnum):
    """Where one label stands on an issue."""

    PRESENT = "present"
    ABSENT = "absent"
    REMOVED_BY_PERSON = "removed_by_person"


class Tracker(Protocol):
    """Where issues live.

    Every method may raise `TrackerTimeout`, `TrackerUnavailable` and `TrackerRefused`: reads, too,
    may be forbidden. A read that finds no issue says so by its result, except `admit_issue`.
    """

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
        """Return the issue that a run is about.

        The local tracker registers an issue that it does not know, with this text, and makes
        `labels` its inventory if the repository has none yet. Every other tracker only looks.

        Raises:
            TrackerRefused: there is no such issue (``issue_not_found``).
        """
        ...

    async def get_issue(self, repository: str, number: str) -> TrackedIssue | IssueNotFound:
        """Return the issue as it is now."""
        ...

    async def label_inventory(self, repository: str) -> tuple[str, ...]:
        """Return the labels that exist in a repository, sorted by name."""
        ...

    async def label_presence(
        self, repository: str, number: str, labels: Sequence[str]
    ) -> tuple[LabelPresence, ...] | IssueNotFound:
        """Say for each label where it stands on the issue: what reconciling reads."""
        ...

    async def add_labels(
        self,
        repository: str,
        number: str,
        labels: Sequence[str],
        *,
        by: str,
        operation_key: str,
    ) -> LabelsAdded:
        """Add labels, and do nothing else.

        Args:
            repository: where the issue lives.
            number: the issue.
            labels: names; letter case does not matter. One that is no label (`is_label`) is
                unknown, whatever the tracker has.
            by: who acts, for the tracker's records.
            operation_key: the write that this belongs to, likewise.

        Raises:
            TrackerTimeout: the labels may be on the issue, or may be soon.
            TrackerUnavailable: its `effect_possible` says whether they may be. A tracker that knows
                that a cancelled call did nothing raises this instead of `CancelledError`.
            TrackerRefused: nothing was done (``issue_not_found``, ``issue_locked``), or perhaps a
                part (`UNCERTAIN_CODES`).
        """
        ...


def as_request_id(text: str | None) -> str | None:
    """Return a tracker's name for a request, or None for whatever cannot be one."""
    return text if text is not None and _REQUEST_ID.fullmatch(text) else None


def is_label(name: str) -> bool:
    """Whether a label may be called this: not nothing, and not longer than `MAX_LABEL_CHARS`."""
    return bool(name.strip()) and len(name) <= MAX_LABEL_CHARS


def label_key(name: str) -> str:
    """Return what all spellings of one label share: letter case and composition do not matter."""
    if name.isascii():  # As nearly all are, each of a repository several times in every write.
        return name.lower()
    return unicodedata.normalize("NFC", name).casefold()


def has_labels(names: Iterable[str], wanted: Iterable[str]) -> bool:
    """Whether each label of `wanted` is among `names`, whatever their spelling."""
    return set(map(label_key, names)) >= set(map(label_key, wanted))


def with_labels(
    names: Iterable[str], added: Iterable[str], inventory: Iterable[str]
) -> frozenset[str]:
    """Return the labels of an issue after `added`, each as the repository spells it."""
    spelt = {label_key(name): name for name in inventory}
    on = frozenset(names)
    new = {name for name in added if not has_labels(on, [name])}
    return on | {spelt.get(label_key(name), name) for name in new}


def content_digest(title: str, body: str, state: str, *, locked: bool) -> str:
    """Return the digest that an approval binds an issue's content by.

    It covers what a reviewer judged: title, body, state and lock. Labels are left out, since our
    own write changes them.
    """
    return digest_of({"title": title, "body": body, "state": state, "locked": locked})
