"""Budgets: a limit that is used up lets no further step begin."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.contracts.strategies import PROPERTY
from triage.contracts.options import BudgetLimits
from workflows.budget import Spent, exhausted

NAMES = ("tokens", "cost_micros", "seconds", "evidence_bytes")
NOTHING = dict.fromkeys(NAMES, 0)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("used", "limit", "spent"),
    [
        (0, None, False),
        (10**12, None, False),
        (0, 0, True),
        (9, 10, False),
        (10, 10, True),
        (11, 10, True),
    ],
)
def test_each_budget_binds_by_itself(name: str, used: int, limit: int | None, spent: bool) -> None:
    """A budget is spent when nothing is left of it; one that is absent never is."""
    expected = name if spent else None
    limits = BudgetLimits.model_validate({name: limit})
    assert expected == exhausted(Spent(**{**NOTHING, name: used}), limits)


def test_the_first_spent_budget_is_named() -> None:
    """When several are spent, the answer is always the same one."""
    limits = BudgetLimits(tokens=1, cost_micros=1, seconds=1, evidence_bytes=1)
    assert exhausted(Spent(0, 1, 1, 1), limits) == "cost_micros"
    assert exhausted(Spent(1, 1, 1, 1), limits) == "tokens"
    assert exhausted(Spent(0, 0, 0, 0), limits) is None


_amounts = st.integers(0, 3)


@PROPERTY
@given(
    st.fixed_dictionaries(dict.fromkeys(NAMES, _amounts)),
    st.fixed_dictionaries(dict.fromkeys(NAMES, st.one_of(st.none(), _amounts))),
)
def test_a_step_begins_only_if_something_is_left_of_every_limit(
    used: dict[str, int], limits: dict[str, int | None]
) -> None:
    """No budget stands in for another: all that are set must have something left."""
    left = [limit is None or limit - used[name] > 0 for name, limit in limits.items()]
    problem = exhausted(Spent(**used), BudgetLimits.model_validate(limits))
    assert all(left) is (problem is None)
