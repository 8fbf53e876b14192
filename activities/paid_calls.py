"""Calls that cost something: reserved, made once, settled, and charged to whoever must pay.

Why it exists: a budget is kept before the money is spent or not at all. So no call is made that a
budget does not hold at its most; what a provider does not say is charged as reserved; and the
attempts of this call that were lost with their worker are charged with the one that arrives.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Final, TypeGuard

from temporalio import activity

from activities.model_answers import AdapterError, asked
from activities.services import Services
from triage.contracts.canonical import short_hash
from triage.contracts.model_faults import ModelFault
from triage.contracts.payloads import DecideOutcome, DecideRequest, DecideResult, Usage
from triage.models.base import ModelRequest, PaidAnswer, PaidModel
from triage.models.outcomes import failed
from triage.models.quotes import Quote, Room, fitted
from triage.policy.rules import Rules
from triage.storage.errors import StorageError
from triage.storage.spending import NOTHING, Call, Spent

GRACE: Final = timedelta(seconds=1)
"""A model keeps its own deadline; this much later it is not waited for any more."""

MOST: Final = 2**53
"""Of tokens or of millionths: more is no use that can have been, nor one that can be added up."""


@dataclass
class _Refused:
    """Which budget does not hold a call; empty if all do."""

    budget: str = ""


async def call(
    services: Services,
    model: PaidModel,
    question: ModelRequest,
    request: DecideRequest,
    rules: Rules,
) -> DecideResult:
    """Make one call, if every budget holds it.

    Returns:
        What came of it, charged; `exhausted` if a budget does not hold it, and a fault if the
        model cannot say what it may use: then no call was made.

    Raises:
        StorageError: nothing could be reserved, so no call was made.
    """
    mine, refused = _this_call(request), _Refused()
    try:
        most = await asked(partial(_quoted, model, question), GRACE)
    except (TimeoutError, AdapterError):
        return failed(ModelFault.PROTOCOL_ERROR)
    plan = most

    def fit(spent: Spent) -> Usage | None:
        nonlocal plan
        found = fitted(most, _rooms(request, rules, spent))
        if isinstance(found, str):
            refused.budget = found
            return None
        plan = found
        return found.reservation

    spent = await services.spending.reserve(mine, fit)
    if refused.budget:
        detail = f"{refused.budget} does not hold another call of the model"
        return DecideResult(outcome=DecideOutcome.EXHAUSTED, detail=detail, usage=spent.lost)
    answer = await _ask(model, question, plan)
    charged = _charged(answer, plan)
    try:
        await services.spending.settle(mine, charged)
    except StorageError as error:
        # The answer is paid for, and the reservation stands in its place.
        activity.logger.error("a call could not be settled: %s", type(error).__name__)
    return answer.result.model_copy(update={"usage": _sum(charged, spent.lost)})


def _this_call(request: DecideRequest) -> Call:
    info = activity.info()
    key = short_hash("call", info.workflow_run_id or "", info.activity_id)
    return Call(scope=request.scope, key=key, attempt=info.attempt)


def _rooms(request: DecideRequest, rules: Rules, spent: Spent) -> Iterator[Room]:
    """Yield what each budget leaves, the run's own first."""
    lost, daily = spent.lost, rules.daily_budget
    yield Room(
        "the run's budget",
        _left(request.tokens_left, lost.tokens),
        _left(request.cost_micros_left, lost.cost_micros),
    )
    yield Room(
        "the author's budget of the day",
        _left(daily.author_tokens, spent.author.tokens),
        _left(daily.author_cost_micros, spent.author.cost_micros),
    )
    yield Room(
        "the repository's budget of the day",
        _left(daily.repository_tokens, spent.repository.tokens),
        _left(daily.repository_cost_micros, spent.repository.cost_micros),
    )
    yield Room(
        "the budget of the day",
        _left(daily.tokens, spent.day.tokens),
        _left(daily.cost_micros, spent.day.cost_micros),
    )


def _left(limit: int | None, used: int) -> int | None:
    return None if limit is None else max(0, limit - used)


async def _quoted(model: PaidModel, question: ModelRequest) -> Quote:
    """Return what a call may use at most, if that is something that can be reserved."""
    found: object = model.quote(question)
    if not isinstance(found, Quote) or min(found.input_tokens, found.output_tokens) < 0:
        raise TypeError
    if not _is_believable(found.reservation):
        raise TypeError
    return found


async def _ask(model: PaidModel, question: ModelRequest, plan: Quote) -> PaidAnswer:
    """Hold a model to its deadline; one that raises may have called or not."""
    try:
        deadline = model.timeout + GRACE
        return _answer(await asked(partial(model.ask, question, plan), deadline))
    except TimeoutError:
        return PaidAnswer(failed(ModelFault.TIMEOUT))
    except AdapterError:
        return PaidAnswer(failed(ModelFault.PROTOCOL_ERROR))


def _answer(found: object) -> PaidAnswer:
    """Return an adapter's answer if it is one."""
    if isinstance(found, PaidAnswer) and isinstance(found.result, DecideResult):
        return found
    return PaidAnswer(failed(ModelFault.PROTOCOL_ERROR))


def _charged(answer: PaidAnswer, plan: Quote) -> Usage:
    if not answer.was_sent:
        return NOTHING
    return answer.used if _is_believable(answer.used) else plan.reservation


def _is_believable(used: object) -> TypeGuard[Usage]:
    """Return whether it can have been used: no call gives anything back.

    What an adapter made past its own checks may hold any type, and the call is made by then: an
    error would have it made, and paid for, again.
    """
    numbers = (used.tokens, used.cost_micros) if isinstance(used, Usage) else ()
    return bool(numbers) and all(type(each) is int and 0 <= each <= MOST for each in numbers)


def _sum(one: Usage, other: Usage) -> Usage:
    return Usage(tokens=one.tokens + other.tokens, cost_micros=one.cost_micros + other.cost_micros)
