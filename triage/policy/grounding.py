"""Evidence rules: what a review or a final answer must rest on.

Pure. `cited` asks that every cited id was returned by a tool in this run (the source document's
rule); `entailed` also recomputes owner and route from the cited evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from triage.contracts.decision import FinalAnswer
from triage.contracts.payloads import EvidenceRef


def is_cited(evidence_ids: Iterable[str], known: frozenset[str]) -> bool:
    """Whether every id was returned by a tool in this run."""
    return known.issuperset(evidence_ids)


def entailment_problem(
    answer: FinalAnswer, evidence: Sequence[EvidenceRef], routes: frozenset[str]
) -> str | None:
    """Say how the cited evidence does not yield the answer's owner and route, or None if it does.

    A route follows from a policy's own route, or from an ownership rule whose allowed labels
    name it.
    """
    cited = [item.facts for item in evidence if item.id in answer.evidence_ids]
    # A tool may return any JSON as owner, a list too, so nothing here needs to be hashable.
    if not any(facts.get("owner") == answer.owner for facts in cited):
        return "the cited evidence names another owner"
    entailed: set[str] = set()
    for facts in cited:
        route, allowed = facts.get("route"), facts.get("allowed_labels")
        if isinstance(route, str):
            entailed.add(route)
        if isinstance(allowed, list):
            entailed.update(name for name in allowed if isinstance(name, str) and name in routes)
    return None if answer.route in entailed else "the cited evidence yields another route"
