"""Prices and quotes: what is charged, and what a budget still holds."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from triage.contracts.payloads import Usage
from triage.models.prices import MAX_FILE_BYTES, Price, PricesError, load_prices
from triage.models.quotes import MIN_OUTPUT_TOKENS, Quote, Room, charge, fitted

PRICE: Final = Price(input=150_000, output=600_000)
QUOTE: Final = Quote(1_000, 2_000, PRICE)


def test_a_call_is_charged_by_its_tokens_and_rounded_up() -> None:
    """A price is for a million tokens; a fraction of a millionth counts as one."""
    assert Usage(tokens=3_000, cost_micros=1_350) == QUOTE.reservation
    assert Usage(tokens=2, cost_micros=1) == charge(PRICE, 1, 1)


ROOMS: dict[str, tuple[list[Room], int | str]] = {
    "no bound": ([Room("run")], 2_000),
    "enough": ([Room("run", 3_000, 1_350)], 2_000),
    "fewer tokens": ([Room("run", 1_900)], 900),
    "less money": ([Room("run", None, 750)], 1_000),
    "the tightest counts": ([Room("run", 2_900), Room("day", 1_900), Room("author", 2_000)], 900),
    "too few for an answer": ([Room("run", 1_000 + MIN_OUTPUT_TOKENS - 1)], "run"),
    "just enough": ([Room("run", 1_000 + MIN_OUTPUT_TOKENS)], MIN_OUTPUT_TOKENS),
    "not even the question": ([Room("run", 999)], "run"),
    "nothing left": ([Room("run"), Room("day", None, 0)], "day"),
}


@pytest.mark.parametrize("name", ROOMS)
def test_a_call_is_fitted_into_what_is_left(name: str) -> None:
    """It answers in as many tokens as every budget leaves, or the first that is spent is named."""
    rooms, expected = ROOMS[name]
    found = fitted(QUOTE, rooms)
    assert expected == (found if isinstance(found, str) else found.output_tokens)
    if isinstance(found, Quote):
        assert all(
            room.cost_micros is None or found.reservation.cost_micros <= room.cost_micros
            for room in rooms
        )


def test_a_free_model_is_bounded_by_tokens_alone() -> None:
    """Where nothing costs anything, a budget in money that is spent forbids nothing."""
    free = Quote(1_000, 2_000, Price(input=0, output=0))
    assert free == fitted(free, [Room("run", None, 0)])


def test_a_short_answer_may_be_all_that_is_wanted() -> None:
    """A setting below the least useful answer is what counts as useful."""
    short = Quote(10, 64, PRICE)
    assert short == fitted(short, [Room("run", 74)])


LISTED: Final = ["gpt-5-mini", "gpt-5-mini-2025-08-07"]


@pytest.mark.parametrize("model", LISTED)
def test_a_listed_model_has_its_price(model: str) -> None:
    """A name with a date at its end is the model without it."""
    assert Price(input=250_000, output=2_000_000) == load_prices().known("openai", model)


@pytest.mark.parametrize("model", ["gpt-5-mini-turbo", "claude-sonnet-5", "x"])
def test_a_model_that_nobody_lists_costs_the_most(model: str) -> None:
    """What is not known is never cheap: the highest price for input, and for output."""
    prices = load_prices()
    assert None is prices.known("openai", model)
    assert Price(input=15_000_000, output=75_000_000) == prices.of("openai", model)


def test_prices_of_one_s_own_come_first(tmp_path: Path) -> None:
    """A file adds models and replaces prices, and both tables are on record."""
    own = tmp_path / "prices.toml"
    own.write_text('version = "mine"\n[openai]\nllama = { input = 0, output = 0 }\n')
    prices = load_prices(own)
    assert Price(input=0, output=0) == prices.of("openai", "llama")
    assert None is not prices.known("anthropic", "claude-sonnet-5")
    assert prices.name.startswith("mine@")
    assert prices.name.endswith("," + load_prices().name)


BAD: Final = [
    "",
    "version = 1",
    'version = "1"\n[openai]\nm = { input = -1, output = 0 }',
    "[",
    "a = " + "[" * 5_000,
    "\xff",
]


@pytest.mark.parametrize("text", BAD)
def test_a_file_that_holds_no_prices_is_refused(tmp_path: Path, text: str) -> None:
    """Nothing of it is quoted, and no price is guessed."""
    own = tmp_path / "prices.toml"
    own.write_text(text, encoding="latin-1")
    with pytest.raises(PricesError, match="holds a version"):
        load_prices(own)


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    """It is not cut: what stands at its end would go missing, and nobody would be told."""
    own = tmp_path / "prices.toml"
    own.write_text(f'version = "mine"\n{"#" * MAX_FILE_BYTES}\n[openai]\n')
    with pytest.raises(PricesError, match="File too large"):
        load_prices(own)


def test_a_file_that_is_gone_is_refused(tmp_path: Path) -> None:
    """It says that it cannot be read."""
    with pytest.raises(PricesError, match="cannot be read"):
        load_prices(tmp_path / "none.toml")
