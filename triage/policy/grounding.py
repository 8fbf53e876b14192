"""Evidence rules: what a review or a final answer must rest on.

Pure. `cited` asks that every cited id was returned by a tool in this run (the source document's
rule); `entailed` also recomputes owner and route from the cited evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from pydantic import JsonValue

from triage.contracts.decision import FinalAnswer
from triage.contracts.payloads import EvidenceRef

_OWNERS: Final = ("owner", "owners")
"""Where a record names who owns something: the first of several stands in both."""


def is_cited(evidence_ids: Iterable[str], known: frozenset[str]) -> bool:
    """Whether every id was returned by a tool in this run."""
    return known.issuperset(evidence_ids)


def entailment_problem(
    answer: FinalAnswer, evidence: Sequence[EvidenceRef], routes: frozenset[str]
) -> str | None:
    """Say how the cited evidence does not yield the answer's owner and route, or None if it does.

    An owner follows from a record that names it, alone or among several. A route follows from a
    policy's own route, or from an ownership rule whose allowed labels name it.
    """
    cited = [item.facts for item in evidence if item.id in answer.evidence_ids]
    owners = {name for facts in cited for key in _OWNERS for name in _names(facts.get(key))}
    if answer.owner not in owners:
        return "the cited evidence names another owner"
    entailed = {name for facts in cited for name in _names(facts.get("route"))}
    allowed = {name for facts in cited for name in _names(facts.get("allowed_labels"))}
    is_entailed = answer.route in entailed | (allowed & routes)
    return None if is_entailed else "the cited evidence yields another route"


def _names(fact: JsonValue) -> Iterator[str]:
    """Yield the names in a fact; a tool may return any JSON, and what is no name says nothing."""
    for name in fact if isinstance(fact, list) else [fact]:
        if isinstance(name, str):
            yield name
