"""Random decision scripts and options: mostly sensible, so that runs get far, at times wrong."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st
from pydantic import JsonValue

from tests.workflow.decisions import (
    ISSUE,
    TIMEOUT,
    Script,
    call,
    final,
    hand_over,
    label,
    lookup,
    policy,
)

BROKEN: Final = {"broken": "tool_error", "slow": "tool_timeout", "flaky": "tool_error"}
"""Paths whose lookup fails, and how."""

_READS: Final = {
    "owners-api": lookup(),
    "owners-docs": lookup("docs/getting-started.md"),
    "owners-default": lookup("no/such/file"),
    "policy-security": policy("security"),
    "policy-feature": policy("feature"),
    "policy-default": policy("weather"),
}
_EVIDENCE: Final = (*_READS, "mutation-receipt", "invented")
_LABEL_SETS: Final = (("bug",), ("bug", "component:api"), ("component:api", "bug", "bug"))
_WRONG: Final[tuple[JsonValue, ...]] = (
    None,
    7,
    "final",
    [],
    {},
    {"kind": "call_tool"},
    {"kind": "merge"},
    {"error": "model_crash"},
    {"error": "model_timeout", "kind": "final"},
    *(lookup(path) for path in BROKEN),
    label("bug", "triage:automerge"),
    label("bug", issue="ISSUE-2"),
    call("delete_everything", {}),
    call("lookup_component_owner", {}),
    call("search_triage_policy", {"topic": ""}),
    call("apply_labels", {"issue_id": ISSUE, "labels": []}, "op-1"),
    final("owners-api", route="vip"),
    final("owners-api", labels=("wontfix",)),
)
_MODES: Final = ("shadow", "suggest", "suggest", "approve", "approve", "approve")


def _often(draw: st.DrawFn, of: int) -> bool:
    """Be false once in `of` times."""
    return draw(st.integers(1, of)) < of


@st.composite
def scripts(draw: st.DrawFn) -> Script:
    """Draw up to six calls and, mostly, an ending that cites what they returned."""
    known: list[str] = []
    script = [_call(draw, known) for _ in range(draw(st.integers(0, 6)))]
    if _often(draw, 8):
        script.append(_ending(draw, known))
    if not _often(draw, 6):
        script.insert(draw(st.integers(0, len(script))), draw(st.sampled_from(_WRONG)))
    return script


def _call(draw: st.DrawFn, known: list[str]) -> JsonValue:
    """Draw a read, a write or a timeout, and note the evidence that it would return."""
    match draw(st.sampled_from(("read", "read", "write", "write", "timeout"))):
        case "read":
            evidence = draw(st.sampled_from(sorted(_READS)))
            known.append(evidence)
            return _READS[evidence]
        case "write":
            known.append("mutation-receipt")
            labels = draw(st.sampled_from(_LABEL_SETS))
            operation = draw(st.sampled_from(("op-1", "op-1", "op-1", "op-2", "op-6", "", None)))
            return label(*labels, operation_id=operation)
        case _:
            return TIMEOUT


def _ending(draw: st.DrawFn, known: list[str]) -> JsonValue:
    cited = draw(st.lists(st.sampled_from(known), min_size=1, max_size=3)) if known else []
    if not _often(draw, 8):
        cited = draw(st.lists(st.sampled_from(_EVIDENCE), max_size=2))
    route = draw(st.sampled_from(("bug", "feature", "security_review")))
    if draw(st.integers(0, 3)) == 0:
        return hand_over(*cited, route=route)
    return final(*cited, route=route, labels=draw(st.sampled_from(((), *_LABEL_SETS))))


def options() -> st.SearchStrategy[dict[str, Any]]:
    """Draw what a run is held to."""
    operations = st.sampled_from(("op-1", "op-2", "op-6", ""))
    return st.fixed_dictionaries(
        {
            "max_steps": st.sampled_from((9, 9, 9, 9, 5, 3, 2, 1, 0)),
            "max_model_retries": st.sampled_from((9, 9, 2, 1, 0)),
            "mode": st.sampled_from(_MODES),
            "approvals": st.dictionaries(operations, st.sampled_from((3, 6, 9)), max_size=2),
        }
    )


def verdicts() -> st.SearchStrategy[list[str]]:
    """Draw what a person answers, in turn."""
    words = st.sampled_from(("approve", "approve", "approve", "approve", "reject"))
    return st.lists(words, min_size=1, max_size=4)
