"""Evidence rules: what an answer cites, and what its evidence entails."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from tests.unit.contracts.strategies import JSON_VALUES, PROPERTY
from triage.contracts.decision import FinalAnswer
from triage.contracts.payloads import EvidenceRef
from triage.policy.grounding import (
    OTHER_OWNER,
    OTHER_PATH,
    OTHER_ROUTE,
    WANTS_REVIEW,
    about_path,
    entailment_problem,
    is_cited,
)
from triage.policy.named_paths import NamedPaths
from triage.policy.tools import FACT_NAMES, PATHS, REVIEW

ROUTES = frozenset({"bug", "documentation", "feature", "security_review"})
NAMED = NamedPaths.of("Export fails in src/export.py", "As in docs/a.md.", ["backend/api.py"])
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


def _evidence(
    evidence_id: str, facts: dict[str, JsonValue], path: str | None = None, tool: str = "t"
) -> EvidenceRef:
    found = EvidenceRef(
        id=evidence_id, tool=tool, source="local", locator="l", digest="d", facts=facts
    )
    return about_path(found, {} if path is None else {"path": path})


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
    assert problem == entailment_problem(answer, EVIDENCE, ROUTES, NAMED)


def test_evidence_without_facts_entails_nothing() -> None:
    """A write's receipt may be cited, but yields neither owner nor route."""
    receipt = (_evidence("mutation-receipt", {}),)
    answer = _answer("bug", "backend-team", "mutation-receipt")
    assert entailment_problem(answer, receipt, ROUTES, NAMED) == OTHER_OWNER


@PROPERTY
@given(st.dictionaries(st.sampled_from((*FACT_NAMES, "path", PATHS)), JSON_VALUES, max_size=4))
def test_odd_facts_never_break_the_check(facts: dict[str, JsonValue]) -> None:
    """Facts are whatever a tool returned: wrong types entail nothing and raise nothing."""
    answer = _answer("bug", "backend-team", "e")
    problem = entailment_problem(answer, (_evidence("e", facts),), ROUTES, NAMED)
    assert problem in {OTHER_OWNER, OTHER_ROUTE, OTHER_PATH, None}
    named = [facts.get("owner"), facts.get("owners")]
    if "backend-team" not in [
        name for it in named for name in (it if isinstance(it, list) else [it])
    ]:
        assert problem == OTHER_OWNER


LOOKUP = "lookup_component_owner"


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("backend/api.py", None),
        ("./backend/api.py", None),
        ("/src/export.py", None),
        ("docs/a.md", None),
        ("backend/apixpy", OTHER_PATH),
        ("backend", OTHER_PATH),
        ("evil/owner.py", OTHER_PATH),
        ("", OTHER_PATH),
        (None, OTHER_PATH),
    ],
)
def test_only_a_path_that_the_issue_names_speaks_for_it(
    path: str | None, problem: str | None
) -> None:
    """A true rule about another path says nothing of this issue, nor one about who knows what."""
    cited = (_evidence("owners-api", API, path, LOOKUP),)
    answer = _answer("bug", "backend-team", "owners-api")
    assert problem == entailment_problem(answer, cited, ROUTES, NAMED)


def test_one_id_may_stand_for_several_paths() -> None:
    """The same rule about a named path and another one speaks by the first alone."""
    other = _evidence("owners-default", API, "x/y.py", LOOKUP)
    answer = _answer("bug", "backend-team", "owners-default")
    assert OTHER_PATH == entailment_problem(answer, (other,), ROUTES, NAMED)
    both = (other, _evidence("owners-default", API, "backend/api.py", LOOKUP))
    assert entailment_problem(answer, both, ROUTES, NAMED) is None


def test_a_path_of_another_rule_yields_no_route() -> None:
    """Labels count as routes only where their record is about the issue."""
    owner = _evidence("owners-api", {**API, "allowed_labels": []}, "backend/api.py", LOOKUP)
    other = _evidence("owners-docs", {"allowed_labels": ["bug"]}, "x/y.py", LOOKUP)
    answer = _answer("bug", "backend-team", "owners-api", "owners-docs")
    assert OTHER_ROUTE == entailment_problem(answer, (owner, other), ROUTES, NAMED)


def test_the_issue_as_it_was_read_names_paths_too() -> None:
    """A path of the cited reading of the issue counts; one that is not cited does not."""
    read = _evidence("read_issue-1", {PATHS: ["x/y.py"]}, tool="read_issue")
    owner = _evidence("owners-api", API, "x/y.py", LOOKUP)
    known, both = (read, owner), ("owners-api", "read_issue-1")
    assert entailment_problem(_answer("bug", "backend-team", *both), known, ROUTES, NAMED) is None
    alone = _answer("bug", "backend-team", "owners-api")
    assert OTHER_PATH == entailment_problem(alone, known, ROUTES, NAMED)


@pytest.mark.parametrize(
    ("cited", "route", "problem"),
    [
        (("policy-security",), "security_review", WANTS_REVIEW),
        (("owners-api", "policy-security"), "bug", WANTS_REVIEW),
        (("owners-raised",), "security_review", WANTS_REVIEW),
        (("owners-api",), "bug", None),
    ],
)
def test_a_policy_that_wants_a_person_gets_one(
    cited: tuple[str, ...], route: str, problem: str | None
) -> None:
    """No answer rests on such a policy, and no route gets past it by citing another."""
    known = (
        _evidence("policy-security", {"route": "security_review", "owner": "backend-team",
                                      REVIEW: True}),
        _evidence("owners-api", API, "backend/api.py", LOOKUP),
        _evidence("owners-raised", {"owner": "backend-team", "allowed_labels": ["security_review"]},
                  "backend/api.py", LOOKUP),
    )  # fmt: skip
    answer = _answer(route, "backend-team", *cited)
    assert problem == entailment_problem(answer, known, ROUTES, NAMED)
