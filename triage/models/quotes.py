"""What a call may use at most, and what it is charged: sums over budgets and prices. Pure.

Why it exists: a call is paid for before anybody knows what it used. So it is reserved at its most,
it is not made where a budget does not hold that, and what nobody can say afterwards is charged as
reserved.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from triage.contracts.payloads import Usage
from triage.models.prices import Price

MIN_OUTPUT_TOKENS: Final = 256
"""A decision in fewer is cut off more often than not, so such a call is not made."""


@dataclass(frozen=True, slots=True)
class Quote:
    """What a call may use at most.

    Attributes:
        input_tokens: as many as the question can be.
        output_tokens: as many as the answer may be.
        price: what they cost.
    """

    input_tokens: int
    output_tokens: int
    price: Price

    @property
    def reservation(self) -> Usage:
        """All of it."""
        return charge(self.price, self.input_tokens, self.output_tokens)


@dataclass(frozen=True, slots=True)
class Room:
    """What is left of one budget; None is no bound.

    Attributes:
        name: whose, for people: it ends in the response.
        tokens: how many.
        cost_micros: how much.
    """

    name: str
    tokens: int | None = None
    cost_micros: int | None = None


def charge(price: Price, input_tokens: int, output_tokens: int) -> Usage:
    """Return what a call that used so many tokens is charged."""
    cost = price.of(input_tokens, output_tokens)
    return Usage(tokens=input_tokens + output_tokens, cost_micros=cost)


def fitted(quote: Quote, rooms: Iterable[Room]) -> Quote | str:
    """Let a call answer in as many tokens as every budget leaves.

    Returns:
        The quote with fewer output tokens, or none fewer; or the name of the first budget that
        does not hold the question and a useful answer.
    """
    tokens = quote.output_tokens
    least = min(tokens, MIN_OUTPUT_TOKENS)
    for room in rooms:
        tokens = min(tokens, _affordable(quote, room))
        if tokens < least:
            return room.name
    return Quote(quote.input_tokens, tokens, quote.price)


def _affordable(quote: Quote, room: Room) -> int:
    """Return how many output tokens a budget holds beside the question."""
    bounds = [quote.output_tokens]
    if room.tokens is not None:
        bounds.append(room.tokens - quote.input_tokens)
    if room.cost_micros is not None:
        bounds.append(_for_money(quote, room.cost_micros))
    return min(bounds)


def _for_money(quote: Quote, micros: int) -> int:
    price = quote.price
    left = micros * 1_000_000 - quote.input_tokens * price.input
    if left < 0:
        return -1
    return left // price.output if price.output else quote.output_tokens
