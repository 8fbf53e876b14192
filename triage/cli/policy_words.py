"""The words in which commands tell of rules, their digests and where they come from."""

from __future__ import annotations

from typing import Final

from pydantic import JsonValue

from triage.cli.output import put, put_table
from triage.cli.policy_state import COMMAND, WAITS, PolicyState
from triage.cli.times import told
from triage.policy.narrowing import Narrowing
from triage.policy.widening import Widening
from triage.storage.acceptances import AcceptedRules

WIDENING_HEADERS: Final = ("WHAT", "NAME", "BEFORE", "AFTER")
BUILTIN: Final = "the built-in rules"
TAKES_AWAY: Final = "It takes away or changes, and that needs no acceptance:"


def short(digest: str) -> str:
    """Return as much of a digest as tells rules apart at a glance."""
    return digest[: len("sha256:") + 12]


def source_in_words(state: PolicyState) -> str:
    """Say where the rules in force come from."""
    if not state.is_written:
        return accepted_in_words(state.accepted)
    return BUILTIN if state.written.path is None else f"the rules in {state.written.path}"


def waiting_in_words(state: PolicyState) -> str:
    """Say how much the written rules would allow, and how they come to be in force."""
    path, count = state.written.path, len(state.standing.waiting)
    what, waits = (BUILTIN, "wait for acceptance") if path is None else (path, WAITS)
    return f"{what} would allow {count} more, and {waits}: {COMMAND}"


def accepted_in_words(accepted: AcceptedRules) -> str:
    """Name the accepted rules."""
    acceptance = accepted.acceptance
    if acceptance is None:
        return BUILTIN
    return f"the rules that {acceptance.by} accepted at {told(acceptance.accepted_at)}"


def widening_cells(widening: Widening | Narrowing) -> tuple[str, ...]:
    """Return the cells of a table's row for something that becomes possible, or is taken away."""
    name = widening.name or "(all)"
    return (widening.kind.value, name, widening.before, widening.after)


def put_narrowings(state: PolicyState) -> None:
    """Print what the written rules take away of the accepted ones, if they do."""
    if state.narrows:
        put("", TAKES_AWAY)
        put_table(WIDENING_HEADERS, map(widening_cells, state.narrows))


def widening_json(widening: Widening | Narrowing) -> dict[str, JsonValue]:
    """Return the same for programs."""
    return {
        "kind": widening.kind.value,
        "name": widening.name,
        "before": widening.before,
        "after": widening.after,
    }


def accepted_json(accepted: AcceptedRules) -> dict[str, JsonValue] | None:
    """Return who accepted which rules, for programs; None if nobody has yet."""
    if accepted.acceptance is None:
        return None
    acceptance = accepted.acceptance
    return {
        "digest": acceptance.digest,
        "replaces": acceptance.replaces,
        "by": acceptance.by,
        "accepted_at": acceptance.accepted_at.isoformat(),
    }
