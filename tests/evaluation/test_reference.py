"""The model that the loop is compared with, checked by hand."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.evaluation.cases import EXPECTED, case, final, read_owner, write_labels
from tests.evaluation.reference import expected_run
from tests.evaluation.scripts import random_fixture
from triage.contracts.failures import FailureClass


def _run(*decisions: object, **options: object) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    return expected_run(case(decisions=list(decisions), options=options))


def test_the_model_knows_the_good_path() -> None:
    """A read and a grounded final complete in two steps."""
    response, mutations = expected_run(case())
    assert EXPECTED == {name: response[name] for name in EXPECTED}
    assert (2, []) == (response["steps"], mutations)


def test_an_approval_counts_at_its_version_only() -> None:
    """The first tool is pending at version 3 and the second at 6."""
    script = (read_owner(), write_labels(["bug"]), final("mutation-receipt"))
    response, [approved] = _run(*script, approvals={"op-1": 6})
    assert ("completed", True) == (response["status"], approved["executed"])
    response, [blocked] = _run(*script, approvals={"op-1": 3})
    assert ("approval_required", False) == (response["failure"], blocked["executed"])


def test_a_timeout_costs_a_step_and_no_version() -> None:
    """A retried timeout leaves the version of the next call as it would have been."""
    timeout = {"error": "model_timeout"}
    response, [approved] = _run(timeout, write_labels(["bug"]), approvals={"op-1": 3})
    assert (1, 3, True) == (response["retries"], response["steps"], approved["authorized"])


def test_random_fixtures_are_repeatable() -> None:
    """A seed names a fixture for good."""
    assert random_fixture(5, 40) == random_fixture(5, 40)
    assert random_fixture(5, 40) != random_fixture(6, 40)


def test_random_fixtures_reach_every_outcome_that_a_script_can_cause() -> None:
    """The generator is worth something: no class of failure is left out, and writes happen."""
    outcomes = [expected_run(item) for item in random_fixture(1, 400)["cases"]]
    seen = Counter(response["failure"] for response, _ in outcomes)
    # Faults of a tool and conflicts of state cannot be written into a script; budgets are options.
    beyond = {"tool_timeout", "tool_error", "state_conflict", "budget_exceeded"}
    assert {None, *(item.value for item in FailureClass)} - beyond == set(seen)
    reasons = Counter(item["reason"] for _, mutations in outcomes for item in mutations)
    assert reasons["approved"] > 10
    assert reasons["approval_required"] > 10
