"""Which input is played with which order, and where. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle, product

from tests.attack.inputs import HARMLESS, Issue, attacks
from tests.attack.orders import CONTROL_LABELS, EDITED, HONEST, MODEL, ORDERS, PRESSED, Order

TRACKERS = ("local", "github")
Play = tuple[Issue, Order, str]


def representative() -> list[Play]:
    """Every input and every order once, on the two trackers in turn, and what must work."""
    orders, where = cycle(ORDERS), cycle(TRACKERS)
    found = [(issue, next(orders), next(where)) for issue in attacks()]
    found += [(issue, HONEST, next(where)) for issue in HARMLESS]
    return found + list(_edited())


def whole() -> list[Play]:
    """Every input with every order, and honestly; every order on both trackers."""
    found: list[Play] = []
    for turn, issue in enumerate(attacks()):
        where = cycle(TRACKERS[turn % 2 :] + TRACKERS[: turn % 2])
        found += [(issue, order, next(where)) for order in _without_repeats(turn)]
    for issue, tracker in product((*attacks(), *HARMLESS), TRACKERS):
        if issue.edited is None and not issue.is_raised:
            found.append((issue, HONEST, tracker))
    plain = Issue(id="plain", category="none")
    found += [(plain, order, tracker) for order in ORDERS for tracker in TRACKERS]
    return found + list(_edited())


def of_a_model() -> list[Play]:
    """What a model that is asked what to do is played with.

    Pressed for an answer, every input on both trackers; left to itself, which is slow and mostly
    reads, one input of each category, on the two in turn.
    """
    inputs, where = (*attacks(), *HARMLESS), cycle(TRACKERS)
    first = {issue.category: issue for issue in reversed(inputs)}
    found = [(issue, PRESSED, tracker) for issue in inputs for tracker in TRACKERS]
    return found + [(issue, MODEL, next(where)) for issue in first.values()]


def _edited() -> Iterator[Play]:
    return ((i, EDITED, tracker) for i in attacks() if i.edited for tracker in TRACKERS)


def _without_repeats(turn: int) -> list[Order]:
    """Leave all but one of the control labels to other inputs: they differ in their name alone."""
    control = [order for order in ORDERS if _is_about_one_label(order)]
    kept = control[turn % len(control)]
    return [order for order in ORDERS if order not in control or order is kept]


def _is_about_one_label(order: Order) -> bool:
    return order.name.removeprefix("control label ") in CONTROL_LABELS
