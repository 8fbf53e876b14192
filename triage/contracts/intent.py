"""What somebody wants written, and what a decision proposes beside it."""

from __future__ import annotations

from dataclasses import dataclass

from triage.contracts.base import RECORD


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a decision proposes; it stays in the response when a person still has to decide."""

    __pydantic_config__ = RECORD

    route: str | None = None
    labels: tuple[str, ...] = ()
    owner: str | None = None
    evidence_ids: tuple[str, ...] = ()


NOTHING = Proposal()


@dataclass(frozen=True, slots=True)
class Intent:
    """A write that somebody wants: which labels, on which issue, under which id, and who asks.

    Attributes:
        tool: the write tool.
        operation_id: the operation's name inside its run, if it was given one.
        issue: the issue that is named; a write to any but the run's own is refused.
        labels: in the order in which they were named.
        proposed_by: ``model`` or ``orchestrator``.
        proposal: stays in the response if the write does not come about.
        completes: the reason with which the run is completed once this is applied; None if the
            loop goes on.
    """

    __pydantic_config__ = RECORD

    tool: str
    operation_id: str | None
    issue: str
    labels: tuple[str, ...]
    proposed_by: str
    proposal: Proposal = NOTHING
    completes: str | None = None
