"""Calls that cost something: made within every budget or not at all, and charged whatever comes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final, cast

import pytest
from pydantic import JsonValue
from temporalio.testing import ActivityEnvironment

from activities.decide import DecideActivities
from activities.run_context import RunContextActivities
from activities.services import Services
from tests.fixed_rules import rules_with
from tests.workflow.decisions import a_request, hand_over
from triage.contracts.model_faults import ModelFault
from triage.contracts.options import IssueContext
from triage.contracts.payloads import (
    DecideOutcome,
    DecideRequest,
    DecideResult,
    PinRequest,
    RunContext,
    Usage,
)
from triage.contracts.request import parse_request
from triage.models import factory
from triage.models.base import ModelAdapter, ModelRequest, PaidAnswer, PaidModel
from triage.models.factory import Means, ModelKind
from triage.models.llm_prompt import prompt_body, prompt_digest
from triage.models.llm_setup import Endpoint, LlmSetup
from triage.models.outcomes import failed
from triage.models.prices import Price
from triage.models.quotes import Quote
from triage.policy.rules import DailyBudget
from triage.storage.documents import SHARED, Document, DocumentKind
from triage.storage.errors import StorageUnavailable
from triage.storage.spending import Spending

SCOPE: Final = "5c0fe" * 6
INPUT, OUTPUT = 1_000, 500
MOST: Final = Quote(INPUT, OUTPUT, Price(input=1_000_000, output=2_000_000))
WHOLE: Final = Usage(tokens=1_500, cost_micros=2_000)
"""What a call reserves, at one millionth a token of input and two of output."""

USED: Final = Usage(tokens=40, cost_micros=50)
DECIDED: Final = DecideResult(outcome=DecideOutcome.DECISION, decision=hand_over())


@dataclass
class Metered(PaidModel):
    """A model that costs something and answers what a test says."""

    answer: PaidAnswer | BaseException = field(default_factory=lambda: PaidAnswer(DECIDED, USED))
    most: Quote | BaseException = field(default_factory=lambda: MOST)
    asked: list[Quote] = field(default_factory=list)
    name: str = "metered"
    revision: str = "1"
    prompt: str = "p"
    prices: str = "table-1"
    timeout: timedelta = timedelta(seconds=30)

    def quote(self, request: ModelRequest) -> Quote:
        """Ask for the most."""
        if isinstance(self.most, BaseException):
            raise self.most
        return self.most

    async def decide(self, request: ModelRequest) -> DecideResult:
        """Never be asked past a budget."""
        raise AssertionError

    async def ask(self, request: ModelRequest, quote: Quote) -> PaidAnswer:
        """Note what was reserved, and answer."""
        self.asked.append(quote)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


@dataclass
class Paying:
    """A pinned run, and a way to have its model asked."""

    services: Services
    model: Metered
    daily: DailyBudget = field(default_factory=DailyBudget)

    async def pin(self, **context: str) -> RunContext:
        """Begin the run."""
        services = replace(self.services, rules=rules_with(daily_budget=self.daily))
        request = PinRequest(
            scope=SCOPE,
            request=parse_request(a_request()),
            context=IssueContext(**context),
            model="metered",
        )
        pinned: RunContext = await ActivityEnvironment().run(
            RunContextActivities(services).pin, request
        )
        return pinned

    async def ask(
        self, left: dict[str, JsonValue] | None = None, *, attempt: int = 1, call: str = "1"
    ) -> DecideResult:
        """Make one attempt of a call."""
        pinned = await self.pin()
        request = DecideRequest(
            scope=SCOPE,
            step=1,
            version=2,
            model="metered",
            request_digest=pinned.request_digest,
            policy_digest=pinned.provenance.policy,
        ).model_copy(update=left or {})
        env = ActivityEnvironment()
        env.info = replace(env.info, attempt=attempt, activity_id=call)
        result: DecideResult = await env.run(DecideActivities(self.services).decide, request)
        return result


@pytest.fixture
def paying(services: Services, monkeypatch: pytest.MonkeyPatch) -> Paying:
    """A run whose model costs something."""
    model = Metered()

    async def build(_argument: str, _means: Means) -> ModelAdapter:
        return model

    monkeypatch.setitem(factory.KINDS, "metered", ModelKind("metered", build))
    return Paying(services, model)


async def test_a_call_is_charged_what_it_used(paying: Paying) -> None:
    """The provider's own count, where it has one; the reservation was for the most."""
    result = await paying.ask()
    assert (DecideOutcome.DECISION, USED) == (result.outcome, result.usage)
    assert [OUTPUT] == [quote.output_tokens for quote in paying.model.asked]


def _usage(tokens: object) -> Usage:
    """Return a use that was not validated."""
    return Usage.model_construct(tokens=cast("int", tokens))


CHARGES: dict[str, tuple[PaidAnswer | BaseException, Usage]] = {
    "unknown use": (PaidAnswer(DECIDED), WHOLE),
    "a fault without a count": (PaidAnswer(failed(ModelFault.RATE_LIMITED, 7)), WHOLE),
    "a fault with a count": (PaidAnswer(failed(ModelFault.CUT_OFF), USED), USED),
    "nothing sent": (PaidAnswer(failed(ModelFault.UNREACHABLE), was_sent=False), Usage()),
    "an adapter that raises": (RuntimeError("sk-secret"), WHOLE),
    "a use below nothing": (PaidAnswer(DECIDED, Usage(tokens=-(10**9))), WHOLE),
    "a use that no database holds": (PaidAnswer(DECIDED, Usage(tokens=2**63)), WHOLE),
    "a use that adds up to too much": (PaidAnswer(DECIDED, Usage(cost_micros=2**62)), WHOLE),
    "a use that is no number": (PaidAnswer(DECIDED, _usage(None)), WHOLE),
    "a use in parts": (PaidAnswer(DECIDED, _usage(1.5)), WHOLE),
    "no answer": (cast("PaidAnswer", None), WHOLE),
    "an answer without a result": (PaidAnswer(cast("DecideResult", None)), WHOLE),
    "a cancellation of its own": (asyncio.CancelledError(), WHOLE),
    "an adapter that times out": (TimeoutError(), WHOLE),
}


@pytest.mark.parametrize("name", CHARGES)
async def test_whatever_comes_of_a_call_is_charged(paying: Paying, name: str) -> None:
    """What nobody can say is charged as reserved, and only what never left is free."""
    paying.model.answer, charged = CHARGES[name]
    result = await paying.ask()
    assert charged == result.usage
    assert "sk-secret" not in result.model_dump_json()
    # And that is what the budgets of the day know, too.
    again = await paying.ask(call="2", attempt=1)
    assert charged == again.usage


QUOTES: dict[str, Quote | BaseException] = {
    "raises": RuntimeError("sk-secret"),
    "times out": TimeoutError(),
    "nothing": cast("Quote", None),
    "no numbers": replace(MOST, output_tokens=cast("int", None)),
    "less than nothing": replace(MOST, input_tokens=-(10**9)),
    "gives something back": Quote(-INPUT, OUTPUT, Price(input=1, output=1)),
    "no answer": Quote(INPUT, -1, Price(input=1, output=1)),
    "more than a database holds": Quote(2**70, OUTPUT, Price(input=1, output=1)),
    "in parts": Quote(cast("int", 1.5), OUTPUT, Price(input=1, output=1)),
}


@pytest.mark.parametrize("name", QUOTES)
async def test_a_call_that_cannot_be_reserved_is_not_made(paying: Paying, name: str) -> None:
    """A model that cannot say what it may use is a named fault, which ends no run of itself."""
    paying.model.most = QUOTES[name]
    result = await paying.ask()
    assert (DecideOutcome.INVALID, ModelFault.PROTOCOL_ERROR, Usage()) == (
        result.outcome,
        result.fault,
        result.usage,
    )
    assert [] == paying.model.asked


async def test_lost_attempts_are_charged_with_the_one_that_arrives(paying: Paying) -> None:
    """An attempt whose worker died was reserved, so it is paid for; one that never asked is not."""
    paying.model.answer = RuntimeError()
    await paying.ask(attempt=1)
    paying.model.answer = PaidAnswer(DECIDED, USED)
    # The second attempt ended before it reserved anything.
    result = await paying.ask(attempt=3)
    assert Usage(tokens=1_540, cost_micros=2_050) == result.usage


LEFT: dict[str, tuple[dict[str, JsonValue], int | None]] = {
    "plenty": ({"tokens_left": 1_500, "cost_micros_left": 2_000}, OUTPUT),
    "fewer tokens": ({"tokens_left": 1_300}, 300),
    "less money": ({"cost_micros_left": 1_800}, 400),
    "too few tokens": ({"tokens_left": 1_200}, None),
    "no money": ({"cost_micros_left": 0}, None),
}


@pytest.mark.parametrize("name", LEFT)
async def test_a_call_fits_into_what_the_run_may_spend(paying: Paying, name: str) -> None:
    """It answers in as many tokens as are left, and is not made where those are too few."""
    left, output = LEFT[name]
    result = await paying.ask(left)
    if output is None:
        assert (DecideOutcome.EXHAUSTED, Usage()) == (result.outcome, result.usage)
        assert "the run's budget does not hold another call of the model" == result.detail
    expected = [] if output is None else [output]
    assert expected == [quote.output_tokens for quote in paying.model.asked]


async def test_what_was_lost_is_not_spent_again(paying: Paying) -> None:
    """A lost attempt counts against the run's budget before it is charged, and is then charged."""
    paying.model.answer = RuntimeError()
    await paying.ask(attempt=1)
    paying.model.asked.clear()
    result = await paying.ask({"tokens_left": 2_700}, attempt=2)
    assert (DecideOutcome.EXHAUSTED, WHOLE, []) == (
        result.outcome,
        result.usage,
        paying.model.asked,
    )


DAILY: dict[str, tuple[DailyBudget, str]] = {
    "author": (DailyBudget(author_tokens=2_000), "the author's budget of the day"),
    "repository": (DailyBudget(repository_cost_micros=2_000), "the repository's budget of the day"),
    "day": (DailyBudget(cost_micros=2_000), "the budget of the day"),
}


@pytest.mark.parametrize("name", DAILY)
async def test_a_daily_budget_that_is_spent_forbids_a_call(paying: Paying, name: str) -> None:
    """Another run's call counts; the one that does not fit is not made, and says which is spent."""
    paying.daily, spent = DAILY[name]
    paying.model.answer = PaidAnswer(DECIDED)
    assert DecideOutcome.DECISION is (await paying.ask(call="1")).outcome
    result = await paying.ask(call="2")
    assert (DecideOutcome.EXHAUSTED, f"{spent} does not hold another call of the model") == (
        result.outcome,
        result.detail,
    )
    assert 1 == len(paying.model.asked)


async def test_without_a_reservation_there_is_no_call(
    paying: Paying, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that does not answer is a fault of the platform, and costs nothing."""

    async def down(*_: object) -> None:
        raise StorageUnavailable("down")

    monkeypatch.setattr(Spending, "reserve", down)
    with pytest.raises(StorageUnavailable):
        await paying.ask()
    assert [] == paying.model.asked


async def test_an_answer_is_kept_where_it_cannot_be_settled(
    paying: Paying, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is paid for: asking again would pay twice. What was reserved stays charged to the day."""

    async def down(*_: object) -> None:
        raise StorageUnavailable("down")

    monkeypatch.setattr(Spending, "settle", down)
    result = await paying.ask()
    assert (DecideOutcome.DECISION, USED) == (result.outcome, result.usage)


async def test_an_answer_that_cannot_be_carried_is_charged(paying: Paying) -> None:
    """A decision beyond its bound becomes a named outcome, with what it used."""
    huge = DecideResult(outcome=DecideOutcome.DECISION, decision="x" * 70_000)
    paying.model.answer = PaidAnswer(huge, USED)
    result = await paying.ask()
    assert (DecideOutcome.INVALID, None, USED) == (result.outcome, result.decision, result.usage)


async def test_a_run_of_a_paid_model_is_pinned_with_prompt_prices_and_time(paying: Paying) -> None:
    """All three are on record, the prompt can be read by its digest, and a call gets its time."""
    pinned = await paying.pin()
    assert (prompt_digest(), "table-1", "metered@1", 30_000) == (
        pinned.provenance.prompt,
        pinned.provenance.prices,
        pinned.provenance.model,
        pinned.model_timeout_ms,
    )
    kept = await paying.services.documents.get(SHARED, DocumentKind.PROMPT, prompt_digest())
    assert isinstance(kept, Document)
    assert prompt_body() == kept.body


async def test_a_run_whose_fallback_cannot_be_asked_is_refused(services: Services) -> None:
    """A missing key is said when a run begins, not when the fallback would be needed."""
    ruled = replace(services, rules=rules_with(fallback_models=("openai:gpt-5-mini",)))
    request = PinRequest(
        scope=SCOPE, request=parse_request(a_request()), context=IssueContext(), model="rules"
    )
    pinned: RunContext = await ActivityEnvironment().run(RunContextActivities(ruled).pin, request)
    assert pinned.refused is not None
    assert "TRIAGE_OPENAI_API_KEY" in pinned.refused
    llm = LlmSetup(endpoints={"openai": Endpoint(base_url="http://localhost:1")})
    usable = replace(ruled, llm=llm)
    again: RunContext = await ActivityEnvironment().run(RunContextActivities(usable).pin, request)
    assert (None, 60_000) == (again.refused, again.model_timeout_ms)
    assert "rules@" in again.provenance.model
    assert ", then openai:gpt-5-mini@" in again.provenance.model


async def test_a_key_that_is_gone_is_a_fault_by_its_name(paying: Paying) -> None:
    """A worker without the key that a run began with hands the call to the next model."""
    result = await paying.ask({"model": "openai:gpt-5-mini"})
    assert (DecideOutcome.TIMEOUT, ModelFault.AUTH) == (result.outcome, result.fault)
