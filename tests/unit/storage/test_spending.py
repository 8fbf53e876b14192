"""What calls cost: reserved under every bound at once, settled once, and forgotten in time."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Final

import pytest

from triage.contracts.payloads import Usage
from triage.storage.engine import Store
from triage.storage.spending import NOTHING, Account, Call, Fit, Spending, Spent

ANN: Final = Account.of("acme", "github", "acme/api", "Ann")
CALL: Final = Usage(tokens=100, cost_micros=7)


async def _run(spending: Spending, scope: str, account: Account = ANN) -> None:
    await spending.open_account(scope, account)


def _call(scope: str = "run", key: str = "call", attempt: int = 1) -> Call:
    return Call(scope=scope, key=key, attempt=attempt)


def _always(_: Spent) -> Usage:
    return CALL


def _within(limit: int) -> Fit:
    return lambda spent: CALL if spent.day.tokens + CALL.tokens <= limit else None


async def test_a_call_counts_from_its_reservation_on(store: Store) -> None:
    """Each sum has what is reserved, and what is settled in its place, from the next call on."""
    spending = Spending(store)
    await _run(spending, "run")
    assert NOTHING == (await spending.reserve(_call(key="one"), _always)).day
    assert CALL == (await spending.reserve(_call(key="two"), _always)).day
    await spending.settle(_call(key="one"), Usage(tokens=30, cost_micros=2))
    spent = await spending.reserve(_call(key="three"), lambda _: None)
    both = Usage(tokens=130, cost_micros=9)
    assert (both, both, both) == (spent.day, spent.repository, spent.author)


async def test_a_call_that_is_refused_leaves_nothing(store: Store) -> None:
    """No row is written for a call that no budget holds."""
    spending = Spending(store)
    await _run(spending, "run")
    for _ in range(2):
        assert NOTHING == (await spending.reserve(_call(), lambda _: None)).day


async def test_sums_are_of_whom_they_say(store: Store) -> None:
    """Another author counts for the repository, another repository for the day, no other tenant."""
    spending = Spending(store)
    accounts = {
        "mine": ANN,
        "bob": Account.of("acme", "github", "acme/api", "bob"),
        "web": Account.of("acme", "github", "acme/web", "ANN"),
        "other": Account.of("other", "github", "acme/api", "Ann"),
    }
    for name, account in accounts.items():
        await _run(spending, name, account)
        await spending.reserve(_call(name, key=name), _always)
    spent = await spending.reserve(_call("mine", key="next"), lambda _: None)
    assert (300, 200, 200) == (spent.day.tokens, spent.repository.tokens, spent.author.tokens)


async def test_earlier_attempts_are_told_apart(store: Store) -> None:
    """What earlier attempts of this very call were charged or reserved is said by itself."""
    spending = Spending(store)
    await _run(spending, "run")
    for attempt in (1, 2):
        await spending.reserve(_call(attempt=attempt), _always)
    await spending.settle(_call(attempt=1), Usage(tokens=5, cost_micros=1))
    await spending.reserve(_call(key="another"), _always)
    spent = await spending.reserve(_call(attempt=3), lambda _: None)
    assert Usage(tokens=105, cost_micros=8) == spent.lost


async def test_the_last_of_a_budget_is_spent_once(store: Store) -> None:
    """Of many workers that reserve at once, as many as the budget holds may call."""
    spending = Spending(store)
    await _run(spending, "run")
    seen: list[bool] = []

    def fit(spent: Spent) -> Usage | None:
        wanted = _within(350)(spent)
        seen.append(wanted is not None)
        return wanted

    await asyncio.gather(*(spending.reserve(_call(key=f"call {n}"), fit) for n in range(8)))
    assert [True] * 3 + [False] * 5 == sorted(seen, reverse=True)


async def test_a_run_without_an_account_is_nobody_s(store: Store) -> None:
    """Nothing is reserved where nobody knows whose budget it is."""
    with pytest.raises(LookupError):
        await Spending(store).reserve(_call(), _always)


async def test_the_first_account_stands(store: Store) -> None:
    """A run that is pinned again, after an edit, is charged to the same."""
    spending = Spending(store)
    await _run(spending, "run")
    await _run(spending, "run", Account.of("acme", "github", "acme/api", "somebody else"))
    await spending.reserve(_call(), _always)
    assert CALL == (await spending.reserve(_call(key="next"), _always)).author


def test_an_account_says_nothing_of_anybody() -> None:
    """Names are in no key, and a login counts in any letters."""
    assert not [
        word for word in ("ann", "acme") if word in repr(ANN).casefold().split("account")[1]
    ]
    assert ANN == Account.of("acme", "github", "acme/api", "aNN")


def test_a_repository_is_charged_in_any_letters() -> None:
    """Another spelling of a repository is no new budget for a day."""
    assert ANN == Account.of("acme", "github", "Acme/API", "Ann")
    assert ANN.repository_key != Account.of("acme", "github", "acme/web", "Ann").repository_key


async def test_old_calls_are_removed(store: Store) -> None:
    """Rows from before the given time go, a bounded number at once; others stay."""
    spending = Spending(store)
    await _run(spending, "run")
    for n in range(3):
        await spending.reserve(_call(key=str(n)), _always)
    async with store.read() as connection:
        now = await store.now(connection)
    assert 0 == await spending.purge(now - timedelta(hours=1))
    assert [3, 1, 0] == [await spending.purge(now + timedelta(hours=1), limit=2) for _ in range(3)]
