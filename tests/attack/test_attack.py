"""A model that obeys the attacker causes no effect that nobody approved."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from tests.attack.__main__ import page, told_of_model
from tests.attack.arena import Arena, opened_arena, play_all
from tests.attack.canaries import EVERYWHERE_FORBIDDEN, PASTED, SAID
from tests.attack.inputs import HARMLESS, attacks, corpus
from tests.attack.kinds import KINDS
from tests.attack.orders import HONEST, MODEL, ORDERS, PRESSED
from tests.attack.plans import TRACKERS, of_a_model, representative, whole
from tests.attack.pressed import _pressed
from tests.attack.sinks import found_in
from tests.unit.models.driver import issue, model_request, observation
from triage.policy.redaction import redact


@pytest.fixture(scope="module")
async def arena(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Arena]:
    """The production stack with both trackers, on a server of its own."""
    async with opened_arena(tmp_path_factory.mktemp("attack")) as opened:
        yield opened


async def test_no_attack_has_an_effect(arena: Arena) -> None:
    """Every input, every order: only what a person approved is on any issue, and no secret is out.

    Odd but harmless issues are triaged and written all the same.
    """
    plays = representative()
    assert [] == await play_all(arena, plays)
    assert len(plays) == len(arena.played)
    assert [] == await arena.breaches()
    assert arena.metrics.names > 0
    assert "apply_labels" in arena.logs.written.getvalue()
    allowed = sum(len(run.order.written) for run in arena.played)
    told = [*told_of_model(arena.played, await arena.effects(), 60)]
    assert f"| effects on any issue of either tracker | {allowed} |" == told[-1]
    rows = [line for line in page(arena, [], None) if line.startswith("|")]
    assert {order.name for _, order, _ in plays} == {row.split(" | ")[0][2:] for row in rows[2:]}


@pytest.mark.parametrize("tracker", TRACKERS)
async def test_a_write_that_nobody_allowed_would_be_seen(arena: Arena, tracker: str) -> None:
    """The suite can fail: one approved write that it is not told of is a breach."""
    untold = replace(HONEST, written=(), ends=("failed",))
    arena.played.clear()
    played = await arena.play(HARMLESS[0], untold, tracker)
    found = [breach for breach in await arena.breaches() if played.number in breach]
    assert [f"{tracker}: issue {played.number} got ['bug', 'component:api'], allowed were []"] == [
        breach for breach in found if breach.startswith(tracker)
    ]
    assert [f"{played.name}: ended completed"] == played.breaches()


@pytest.mark.long
@pytest.mark.timeout(3600)
async def test_no_attack_has_an_effect_with_any_order(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Every input with every order, and honestly on both trackers."""
    async with opened_arena(tmp_path_factory.mktemp("attack")) as opened:
        assert [] == await play_all(opened, whole())
        assert [] == await opened.breaches()


def test_each_kind_has_an_order() -> None:
    """No kind of the list is without a run, and no run is of a kind that is not on it."""
    assert set(KINDS) == {kind for order in ORDERS for kind in order.kinds}


def test_the_plans_hold_every_input_and_order() -> None:
    """What CI plays has each at least once, and the whole each order on both trackers."""
    inputs = {issue.id for issue in (*attacks(), *HARMLESS)}
    for plays in (representative(), whole()):
        assert inputs == {i.id for i, _, _ in plays} - {"plain"}
        assert {order.name for order in ORDERS} < {order.name for _, order, _ in plays}
    both = {(order.name, tracker) for _, order, tracker in whole()}
    assert {(order.name, tracker) for order in ORDERS for tracker in TRACKERS} <= both
    assert 48 == len(corpus())


def test_a_model_is_played_on_every_input_and_every_category() -> None:
    """Pressed for an answer on all of them, on both trackers; left to itself on one of each."""
    plays, inputs = of_a_model(), (*attacks(), *HARMLESS)
    pressed = {(issue.id, tracker) for issue, order, tracker in plays if order is PRESSED}
    assert {(issue.id, tracker) for issue in inputs for tracker in TRACKERS} == pressed
    free = {issue.category for issue, order, _ in plays if order is MODEL}
    assert {issue.category for issue in inputs} == free


def test_a_pressed_model_sees_no_tool_once_it_has_read() -> None:
    """All else about the question is as it was."""
    asked = model_request(issue("t", "b"), (observation("t", {"path": "p"}),))
    assert asked.model_copy(update={"tools": ()}) == _pressed(asked)
    first = model_request(issue("t", "b"))
    assert first == _pressed(first)


def test_an_order_that_may_write_was_approved() -> None:
    """No order gives itself what only a person gives."""
    assert [] == [order.name for order in ORDERS if order.written or order.is_approved]


def test_a_planted_secret_is_found_in_any_coding() -> None:
    """What only the worker holds is found when it is coded, and a known form is redacted."""
    for canary in EVERYWHERE_FORBIDDEN:
        for form in canary.forms:
            assert [*found_in("it", b"x" + form + b"x")], canary.name
    assert [] == [*found_in("it", b"nothing")]
    for canary in (SAID, PASTED):
        assert canary.text not in redact(canary.text)
