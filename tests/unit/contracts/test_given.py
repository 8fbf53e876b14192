"""Records share their note of which fields were given, and nobody can change it for the others."""

from __future__ import annotations

import copy

import pytest

from triage.contracts.options import BudgetLimits

ONE = BudgetLimits(tokens=1, seconds=2)


@pytest.mark.parametrize(
    "other",
    [
        BudgetLimits(seconds=3, tokens=4),
        BudgetLimits.model_validate_json('{"tokens": 5, "seconds": 6}'),
        BudgetLimits(tokens=7).model_copy(update={"seconds": 8}),
        BudgetLimits(tokens=9, seconds=10, cost_micros=1).as_if_not_given({"cost_micros"}),
        copy.deepcopy(ONE),
    ],
)
def test_records_of_which_the_same_was_given_share_the_note(other: BudgetLimits) -> None:
    """However a record was made, its note is the one of all like it, and is written like theirs."""
    assert {"tokens", "seconds"} == other.model_fields_set
    assert ["tokens", "seconds"] == sorted(other.model_dump(exclude_unset=True), reverse=True)


def test_the_note_is_one_object() -> None:
    """What is read, made and copied alike has one note between them."""
    read = BudgetLimits.model_validate_json('{"tokens": 5, "seconds": 6}')
    copied = BudgetLimits(tokens=7).model_copy(update={"seconds": 8})
    assert ONE.model_fields_set is read.model_fields_set is copied.model_fields_set


def test_a_copy_leaves_the_note_of_the_others() -> None:
    """A copy with another field has another note; the first record's stays."""
    copied = ONE.model_copy(update={"cost_micros": 3})
    assert {"tokens", "seconds", "cost_micros"} == copied.model_fields_set
    assert {"tokens", "seconds"} == ONE.model_fields_set


def test_a_note_cannot_be_changed() -> None:
    """Whoever tries to change what was given of one record is refused."""
    with pytest.raises(TypeError, match="copy the record"):
        ONE.model_fields_set.difference_update({"tokens"})
    assert {"tokens", "seconds"} == ONE.model_fields_set
