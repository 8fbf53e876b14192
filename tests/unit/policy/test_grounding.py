"""Evidence rules: what an answer cites, and what its evidence entails."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from tests.unit.contracts.strategies import JSON_VALUES, PROPERTY
from triage.contracts.decision import FinalAnswer
from triage.contracts.payloads import EvidenceRef
from triage.policy.grounding import entailment_problem, is_cited
from triage.policy.tools import FACT_NAMES

ROUTES = frozenset({"bug", "documentation", "feature", "security_review"})
OTHER_OWNER = "the cited evidence names another owner"
OTHER_ROUTE = "the cited evidence yields another route"
API: dict[str, JsonValue] = {"owner": "backend-team", "allowed_labels": ["bug", "component:api"]}
FEATURE: dict[str, JsonValue] = {"owner": "product-team", "route": "feature"}
SHARED: dict[str, JsonValue] = {
    "owner": "@acme/api",
    "owners": ["@acme/api", "@ann"],
    "allowed_labels": ["bug"],
}
UNKNOWN: dict[str, JsonValue] = {}


def _answer(route: str, owner: str, *evidence_ids: str) -> FinalAnswer:
    return FinalAnswer(
        kind="final",
        route=route,
        labels=(),
        owner=owner,
        evidence_ids=evidence_ids,
        reason="because",
    )


def _evidence(evidence_id: str, facts: dict[str, JsonValue]) -> EvidenceRef:
    return EvidenceRef(
        id=evidence_id, tool="t", source="local", locator="l", digest="d", facts=facts
    )


EVIDENCE = (
    _evidence("owners-api", API),
    _evidence("policy-feature", FEATURE),
    _evidence("codeowners-1", SHARED),
    _evidence("codeowners-2", UNKNOWN),
)


@pytest.mark.parametrize(
    ("cited", "known", "expected"),
    [
        ((), (), True),
        ((), ("a",), True),
        (("a",), ("a",), True),
        (("a", "a"), ("a", "b"), True),
        (("a", "b"), ("a",), False),
        (("a",), (), False),
        (("A",), ("a",), False),
        (("",), ("a",), False),
    ],
)
def test_only_returned_ids_are_cited(
    cited: tuple[str, ...], known: tuple[str, ...], expected: bool
) -> None:
    """Every cited id, to the letter, was returned by a tool in this run."""
    assert expected is is_cited(cited, frozenset(known))


@PROPERTY
@given(st.lists(st.sampled_from("abcd")), st.frozensets(st.sampled_from("abcd")))
def test_citation_is_the_subset_rule(cited: list[str], known: frozenset[str]) -> None:
    """Citing is the source's rule: the cited ids are a subset of the returned ones."""
    assert set(cited).issubset(known) is is_cited(cited, known)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (_answer("bug", "backend-team", "owners-api"), None),
        (_answer("feature", "product-team", "policy-feature"), None),
        (_answer("feature", "backend-team", "owners-api", "policy-feature"), None),
        (_answer("bug", "product-team", "owners-api"), OTHER_OWNER),
        (_answer("bug", "Backend-Team", "owners-api"), OTHER_OWNER),
        (_answer("feature", "backend-team", "owners-api"), OTHER_ROUTE),
        (_answer("documentation", "backend-team", "owners-api"), OTHER_ROUTE),
        (_answer("component:api", "backend-team", "owners-api"), OTHER_ROUTE),
        (_answer("bug", "product-team", "policy-feature"), OTHER_ROUTE),
        (_answer("bug", "backend-team"), OTHER_OWNER),
        (_answer("bug", "backend-team", "mutation-receipt"), OTHER_OWNER),
        (_answer("bug", "@acme/api", "codeowners-1"), None),
        (_answer("bug", "@ann", "codeowners-1"), None),
        (_answer("bug", "@bob", "codeowners-1"), OTHER_OWNER),
        (_answer("bug", "@ann", "codeowners-2"), OTHER_OWNER),
        (_answer("feature", "@ann", "codeowners-1"), OTHER_ROUTE),
        (_answer("feature", "@ann", "codeowners-1", "policy-feature"), None),
        (_answer("bug", "@acme/api @ann", "codeowners-1"), OTHER_OWNER),
    ],
)
def test_owner_and_route_follow_from_the_cited_evidence(
    answer: FinalAnswer, problem: str | None
) -> None:
    """Evidence that was returned but not cited entails nothing, and a label is no route."""
    assert problem == entailment_problem(answer, EVIDENCE, ROUTES)


def test_evidence_without_facts_entails_nothing() -> None:
    """A write's receipt may be cited, but yields neither owner nor route."""
    receipt = (_evidence("mutation-receipt", {}),)
    answer = _answer("bug", "backend-team", "mutation-receipt")
    assert entailment_problem(answer, receipt, ROUTES) == OTHER_OWNER


@PROPERTY
@given(st.dictionaries(st.sampled_from(FACT_NAMES), JSON_VALUES, max_size=4))
def test_odd_facts_never_break_the_check(facts: dict[str, JsonValue]) -> None:
    """Facts are whatever a tool returned: wrong types entail nothing and raise nothing."""
    answer = _answer("bug", "backend-team", "e")
    problem = entailment_problem(answer, (_evidence("e", facts),), ROUTES)
    assert problem in {OTHER_OWNER, OTHER_ROUTE, None}
    named = [facts.get("owner"), facts.get("owners")]
    if "backend-team" not in [
        name for it in named for name in (it if isinstance(it, list) else [it])
    ]:
        assert problem == OTHER_OWNER
