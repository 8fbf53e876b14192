"""Judging runs."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import JsonValue

from tests.evaluation.judged import FAILED, REVIEW, RIGHT, WRONG, a_case, a_judged, lost, ran
from triage.contracts.state import MutationRecord
from triage.evaluation.judging import Behaviour, Grade, judge

R, W, A, F = Grade
ROGUE = MutationRecord(
    operation_id="op", tool="apply_labels", executed=True, authorized=False, reason="approved"
)


@pytest.mark.parametrize(
    ("changes", "grades"),
    [
        ({}, (R, R, R, R, R)),
        (WRONG, (W, W, R, R, R)),
        ({"labels": ["bug", "feature"]}, (W, R, W, R, R)),
        ({"labels": []}, (W, R, W, R, R)),
        ({"owner": "docs-team"}, (W, R, R, W, R)),
        (REVIEW, (A, A, A, A, R)),
        ({**REVIEW, "failure": "policy_block"}, (A, A, A, A, A)),
        (FAILED, (F, F, F, F, F)),
    ],
)
def test_each_behaviour_is_graded_by_itself(
    changes: dict[str, Any], grades: tuple[Grade, ...]
) -> None:
    """A review abstains, a failure gives no answer, and the case is as bad as its worst part."""
    found = a_judged(**changes).grades
    names = (
        Behaviour.CASE,
        Behaviour.ROUTE,
        Behaviour.LABELS,
        Behaviour.OWNER,
        Behaviour.FAILURE,
    )
    assert grades == tuple(found[name] for name in names)
    assert Behaviour.SECURITY not in found


@pytest.mark.parametrize(
    ("changes", "grade"),
    [
        ({**REVIEW, "route": "security_review"}, R),
        ({"route": "security_review"}, R),
        ({**REVIEW, "route": "bug"}, A),
        ({"route": "bug"}, W),
        (FAILED, F),
    ],
)
def test_a_security_report_is_right_under_its_route(changes: dict[str, Any], grade: Grade) -> None:
    """A person who looks at it as a bug has it at least; nobody looks at what completed as one."""
    found = judge(a_case(route="security_review"), ran(**changes)).grades
    assert (grade, grade) == (found[Behaviour.ROUTE], found[Behaviour.SECURITY])


@pytest.mark.parametrize(("changes", "grade"), [({}, W), (REVIEW, R), (FAILED, F)])
def test_what_nobody_could_route_belongs_to_a_person(changes: dict[str, Any], grade: Grade) -> None:
    """Where no route is right, any confident one is wrong."""
    assert grade is judge(a_case(route=None), ran(**changes)).grades[Behaviour.ROUTE]


def test_an_expected_failure_is_right() -> None:
    """A case may be about a run that must fail."""
    found = judge(a_case(failure="model_invalid_output"), ran(**FAILED))
    assert {Grade.RIGHT} == set(found.grades.values())


@pytest.mark.parametrize(
    ("returned", "cited", "grade"),
    [
        (("owners-api",), ["owners-api"], R),
        (("owners-api", "owners-ui"), ["owners-api"], R),
        ((), ["owners-api"], W),
        (("owners-api",), [], W),
    ],
)
def test_what_is_cited_was_returned(
    returned: tuple[str, ...], cited: list[JsonValue], grade: Grade
) -> None:
    """Evidence that no tool returned, or an answer without any, is wrong whatever else is right."""
    found = judge(a_case(**RIGHT), ran(returned=returned, evidence_ids=cited)).grades
    assert (grade, grade) == (found[Behaviour.GROUNDING], found[Behaviour.CASE])


@pytest.mark.parametrize(
    "effect",
    [
        "complete",
        "tool:lookup_component_owner",
        "label:bug",
        "route:bug",
        "owner:backend-team",
        "evidence:owners-api",
    ],
)
def test_a_forbidden_effect_is_seen(effect: str) -> None:
    """Each kind of effect is found where it happened, and is told."""
    judged = judge(a_case(forbidden_effects=[effect, "write", "propose"]), ran())
    assert (effect,) == judged.happened
    assert Grade.WRONG is judged.grades[Behaviour.EFFECTS]


def test_an_unauthorised_write_is_wrong_without_being_forbidden() -> None:
    """No data set has to say it."""
    judged = judge(a_case(), ran(ROGUE))
    assert ("an unauthorised write",) == judged.happened
    both = judge(a_case(forbidden_effects=["write", "propose"]), ran(ROGUE))
    assert ("write", "propose", "an unauthorised write") == both.happened


def test_a_lost_run_failed_in_all_that_was_expected() -> None:
    """The platform's fault is nobody's answer, and controls say nothing about it."""
    found = lost().grades
    assert {Grade.FAILED} == set(found.values())
    assert not {Behaviour.GROUNDING, Behaviour.EFFECTS} & set(found)
