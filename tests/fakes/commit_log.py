"""What a fake tracker really did: one JSON line for each change, flushed to the disk, never edited.

Why it exists: a worker that is killed cannot tell what it wrote, and an answer can lie. The line is
the commit: what has no line did not happen. So the fake keeps no other state, and the checker
of the invariants reads the same lines.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any


class Action(StrEnum):
    """What changed."""

    OPENED = "opened"
    EDITED = "edited"
    LABELED = "labeled"
    REPEATED = "repeated"
    """A request to add a label that was on the issue: carried out, and nothing changed."""
    UNLABELED = "unlabeled"
    LOCKED = "locked"
    UNLOCKED = "unlocked"
    TRANSFERRED = "transferred"
    DELETED = "deleted"
    LABEL_DEFINED = "label_defined"
    LABEL_CREATED = "label_created"
    """The repository did not have the label that a request added, and got it by that."""
    LABEL_DROPPED = "label_dropped"
    LABEL_RENAMED = "label_renamed"
    """The label has another name everywhere, and is the same one."""


class Via(StrEnum):
    """Which door a change came through."""

    API = "api"
    CONTROL = "control"


@dataclass(frozen=True, kw_only=True)
class Change:
    """A change before it has a place in the log.

    Attributes:
        action: what changed.
        actor: who did it.
        repository: where.
        issue: on which issue; None for a change of the repository's own labels.
        label: which label, spelt as in the repository.
        via: through which door.
        request: the request that brought it.
        operation: the operation key that the request named.
        data: what else belongs to it, such as a title.
    """

    action: Action
    actor: str
    repository: str
    issue: str | None = None
    label: str | None = None
    via: Via = Via.CONTROL
    request: str = ""
    operation: str | None = None
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Entry(Change):
    """A change that happened: the how-manieth, and when in seconds since 1970."""

    seq: int
    time: float

    @property
    def at(self) -> datetime:
        """When it happened, aware and in UTC."""
        return datetime.fromtimestamp(self.time, UTC)

    def to_json(self) -> dict[str, Any]:
        """The form in which it is kept."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Entry:
        """Read what `to_json` gave."""
        names = {"action": Action(value["action"]), "via": Via(value["via"])}
        return cls(**{**value, **names})


class CommitLog:
    """A log that one process appends to; what was there before is kept."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a+b")
        self.entries = _whole_lines(self._cut_torn_tail())

    def append(self, changes: Sequence[Change]) -> list[Entry]:
        """Commit `changes` together; they are on the disk when this returns."""
        now = time.time()
        first = len(self.entries) + 1
        added = [
            Entry(**vars(change), seq=seq, time=now) for seq, change in enumerate(changes, first)
        ]
        lines = [json.dumps(entry.to_json()).encode("ascii") + b"\n" for entry in added]
        self._file.write(b"".join(lines))
        self._file.flush()
        os.fsync(self._file.fileno())
        self.entries += added
        return added

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _cut_torn_tail(self) -> bytes:
        """Remove a last line that was cut while it was written: it never was a commit."""
        self._file.seek(0)
        data = self._file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._file.truncate(len(whole))
        return whole


def read_log(path: Path) -> list[Entry]:
    """Return everything that was committed so far, also while the fake runs or after its death."""
    return _whole_lines(path.read_bytes())


def _whole_lines(data: bytes) -> list[Entry]:
    lines = data[: data.rfind(b"\n") + 1].splitlines()
    return [Entry.from_json(json.loads(line)) for line in lines]
