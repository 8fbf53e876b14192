"""Evidence rules: what a review or a final answer must rest on.

Pure. `cited` asks that every cited id was returned by a tool in this run (the source document's
rule); `entailed` also recomputes owner and route from the cited evidence, of which only that speaks
for an issue which is about a path that the issue names.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Final

from pydantic import JsonValue

from triage.contracts.decision import FinalAnswer
from triage.contracts.names import ACTIVITY_LOOKUP_OWNER
from triage.contracts.payloads import EvidenceRef
from triage.policy.tools import PATHS, REVIEW

_OWNERS: Final = ("owner", "owners")
"""Where a record names who owns something: the first of several stands in both."""
_PATH: Final = "path"
"""The argument that says which path a tool was asked about."""

OTHER_OWNER: Final = "the cited evidence names another owner"
OTHER_ROUTE: Final = "the cited evidence yields another route"
OTHER_PATH: Final = "the cited evidence is about a path that the issue does not name"
WANTS_REVIEW: Final = "the policy wants a person to decide on this route"


def is_cited(evidence_ids: Iterable[str], known: frozenset[str]) -> bool:
    """Whether every id was returned by a tool in this run."""
    return known.issuperset(evidence_ids)


def about_path(evidence: EvidenceRef, arguments: Mapping[str, JsonValue]) -> EvidenceRef:
    """Return evidence that knows which path it is about, if its tool was asked about one."""
    path = arguments.get(_PATH)
    if not isinstance(path, str):
        return evidence
    return evidence.model_copy(update={"facts": {**evidence.facts, _PATH: path}})


def entailment_problem(
    answer: FinalAnswer,
    evidence: Sequence[EvidenceRef],
    routes: frozenset[str],
    named: Container[str],
) -> str | None:
    """Say how the cited evidence does not yield the answer's owner and route, or None if it does.

    An owner follows from a record that names it, alone or among several. A route follows from a
    policy's own route, or from an ownership rule whose allowed labels name it. No answer follows
    from, or goes past, a policy of this run that wants a person to decide.

    Args:
        answer: what is checked.
        evidence: all that was returned in this run, each as `about_path` has it.
        routes: those that there are.
        named: the paths that the issue names.
    """
    cited = [item for item in evidence if item.id in answer.evidence_ids]
    seen = {path for item in cited for path in _names(item.facts.get(PATHS))}
    speaking = [item.facts for item in cited if _speaks(item, named, seen)]
    if answer.owner not in _owners(speaking):
        everybody = _owners([item.facts for item in cited])
        return OTHER_PATH if answer.owner in everybody else OTHER_OWNER
    entailed = {name for facts in speaking for name in _names(facts.get("route"))}
    allowed = {name for facts in speaking for name in _names(facts.get("allowed_labels"))}
    if answer.route not in entailed | (allowed & routes):
        return OTHER_ROUTE
    return WANTS_REVIEW if _wants_review(answer, evidence) else None


def _speaks(item: EvidenceRef, named: Container[str], seen: Container[str]) -> bool:
    """Whether evidence is about this issue: of a path, only if the issue as it was read has it."""
    path = item.facts.get(_PATH)
    if path is None:
        return item.tool != ACTIVITY_LOOKUP_OWNER
    return isinstance(path, str) and (path in named or path in seen)


def _owners(records: Iterable[Mapping[str, JsonValue]]) -> set[str]:
    return {name for facts in records for key in _OWNERS for name in _names(facts.get(key))}


def _wants_review(answer: FinalAnswer, evidence: Iterable[EvidenceRef]) -> bool:
    """Whether a policy does that is cited, or that is about the answer's route all the same."""
    return any(
        item.id in answer.evidence_ids or answer.route in _names(item.facts.get("route"))
        for item in evidence
        if item.facts.get(REVIEW)
    )


def _names(fact: JsonValue) -> Iterator[str]:
    """Yield the names in a fact; a tool may return any JSON, and what is no name says nothing."""
    for name in fact if isinstance(fact, list) else [fact]:
        if isinstance(name, str):
            yield name
