"""What tells more of a label may say more of it, and what tells nothing is held down."""

from __future__ import annotations

import math

import pytest

from triage.learning.telling import LEAST, Row, telling
from triage.models.learned_text import Block

LABELS = ("bug", "bug", "feature", "feature")


def _rows(*columns: tuple[int, ...], block: Block = Block.TITLE) -> list[Row]:
    return [[(block, row)] for row in columns]


def test_a_sign_of_one_label_may_say_more_than_a_word_of_all() -> None:
    """The first is in the bugs alone, the second in every issue."""
    sign, word = telling(_rows((0, 1), (0, 1), (1,), (1,)), LABELS, 2)
    assert sign > 2 * word > 0


def test_a_block_stays_as_strong_as_it_was() -> None:
    """In the mean over issues, whatever its features tell; one without any is as it was."""
    rows: list[Row] = [
        [(Block.TITLE, (0, 1)), (Block.BODY, ())],
        [(Block.TITLE, (0,)), (Block.BODY, (2,))],
        [(Block.TITLE, (1,)), (Block.BODY, (2,))],
        [(Block.TITLE, ()), (Block.BODY, (2,))],
    ]
    tells = telling(rows, LABELS, 4)
    for block in (Block.TITLE, Block.BODY):
        held = [columns for row in rows for at, columns in row if at is block and columns]
        squares = [sum(tells[at] ** 2 for at in columns) / len(columns) for columns in held]
        assert math.isclose(1, sum(squares) / len(squares))
    assert LEAST == tells[3]


@pytest.mark.parametrize("labels", [("a", "a", "a", "b"), ("a", "b", "c", "d")])
def test_a_rare_label_is_no_sign_of_anything(labels: tuple[str, ...]) -> None:
    """What all issues hold tells least, however few of a label there are."""
    everywhere, once = telling(_rows((0, 1), (0,), (0,), (0,)), labels, 2)
    assert everywhere < once
