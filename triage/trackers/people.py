"""Who somebody is at a tracker, and what they may do: for trackers whose word on it counts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, runtime_checkable


class Right(StrEnum):
    """What a person may do in a repository, from the least on."""

    NONE = "none"
    READ = "read"
    TRIAGE = "triage"
    WRITE = "write"
    MAINTAIN = "maintain"
    ADMIN = "admin"


@dataclass(frozen=True, kw_only=True)
class Person:
    """Somebody, as a tracker knows them now.

    Attributes:
        id: the stable id, which a new name does not change.
        login: the name.
        is_human: whether the tracker says that it is a person's account.
        right: what they may do in the repository that was asked about.
        is_us: whether it is the account that our own writes are made with.
    """

    id: str
    login: str
    is_human: bool
    right: Right
    is_us: bool = False

    @property
    def may_answer(self) -> bool:
        """Whether it is a person, and not ourselves."""
        return self.is_human and not self.is_us


@runtime_checkable
class KnowsPeople(Protocol):
    """A tracker whose word on somebody's rights counts."""

    async def person(self, repository: str, login: str) -> Person | None:
        """Return who has a login now and what they may do in a repository; None if nobody has.

        Raises:
            TrackerError: it cannot be said.
        """
        ...
