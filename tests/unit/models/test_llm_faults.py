"""Every fault of a provider is one name of ours, over real HTTP, in both protocols."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Final

import pytest
from pydantic import SecretStr

from tests.clock import ahead
from tests.fakes.faults import Reply
from tests.fakes.llm_server import ANTHROPIC, OPENAI, SPOKEN, LlmServer, llm_server
from tests.unit.models.driver import issue, model_request
from tests.unit.models.llm_faults_plan import ROWS, Row
from triage.contracts.model_faults import MODEL_FAULTS, ModelFault
from triage.contracts.payloads import DecideOutcome
from triage.models.base import PaidAnswer, PaidModel
from triage.models.factory import build_model
from triage.models.llm_setup import Endpoint, LlmSetup

KEY: Final = "sk-made-up-0123456789"
QUESTION: Final = model_request(
    issue("Creating an order fails", "Status 500.", ("backend/api.py",))
)
SECONDS: Final = 20.0
NO_END: Final = {Reply.SILENCE, Reply.DRIP}
NAMES: Final = {OPENAI: "openai:gpt-4o-mini", ANTHROPIC: "anthropic:claude-haiku-4-5"}
CASES: Final = [(row, name) for row in ROWS for name in row.plan]


@pytest.fixture(scope="module")
async def servers() -> AsyncIterator[dict[str, LlmServer]]:
    """Both providers."""
    async with llm_server(OPENAI) as openai, llm_server(ANTHROPIC) as anthropic:
        yield {OPENAI: openai, ANTHROPIC: anthropic}


async def no_script(_digest: str) -> None:
    """There are no scripts here."""


async def model_of(server: LlmServer) -> PaidModel:
    """Return the model that a setting would name, on this server."""
    endpoint = Endpoint(base_url=server.base_url, key=SecretStr(KEY))
    setup = LlmSetup(endpoints={server.provider: endpoint}, timeout=timedelta(seconds=SECONDS))
    model = await build_model(NAMES[server.provider], load_script=no_script, llm=setup)
    assert isinstance(model, PaidModel)
    return model


async def ask(server: LlmServer) -> PaidAnswer:
    """Ask it the usual question."""
    model = await model_of(server)
    return await model.ask(QUESTION, model.quote(QUESTION))


async def ask_in_vain(server: LlmServer) -> PaidAnswer:
    """Ask it, and wait for as long as an answer may take."""
    asking = asyncio.create_task(ask(server))
    while not server.requests and not asking.done():  # noqa: ASYNC110 - they are a plain list
        await asyncio.sleep(0.001)
    with ahead(SECONDS + 1):
        return await asking


@pytest.mark.parametrize(
    ("row", "provider"), CASES, ids=[f"{row.what}-{name}".replace(" ", "-") for row, name in CASES]
)
async def test_a_fault_has_one_name(
    servers: dict[str, LlmServer],
    caplog: pytest.LogCaptureFixture,
    row: Row,
    provider: str,
) -> None:
    """One request, one name, a clamped pause, and not a word of the provider's anywhere."""
    server = servers[provider]
    server.will(row.plan[provider])
    with caplog.at_level(logging.DEBUG):
        answer = await (ask_in_vain if row.plan[provider].sent_as.reply in NO_END else ask)(server)
    result = answer.result
    assert (row.fault, row.pause) == (result.fault, result.retry_after_seconds)
    assert (None, "") == (result.decision, result.detail)
    is_silent = MODEL_FAULTS[row.fault].failure.value == "model_timeout"
    assert (DecideOutcome.TIMEOUT if is_silent else DecideOutcome.INVALID) is result.outcome
    assert 1 == len(server.requests)
    assert answer.was_sent
    told = f"{answer!r} {caplog.text}"
    assert not [word for word in (SPOKEN, SPOKEN.split()[-1], KEY) if word in told]


def test_every_fault_is_seen() -> None:
    """Each name is given for something that a provider really does."""
    assert set(ModelFault) == {row.fault for row in ROWS}


def test_both_providers_do_everything() -> None:
    """But for an answer that ends as filtered, which one of them calls a refusal, a row above."""
    alone = {row.what: set(row.plan) for row in ROWS if set(row.plan) != {OPENAI, ANTHROPIC}}
    assert {"a filter": {OPENAI}} == alone


@pytest.mark.parametrize("provider", [OPENAI, ANTHROPIC])
async def test_a_provider_that_is_not_there_was_sent_nothing(provider: str) -> None:
    """Where nothing listens, nothing has left, so nothing is charged."""
    async with llm_server(provider) as gone:
        pass
    answer = await ask(gone)
    assert (ModelFault.UNREACHABLE, False) == (answer.result.fault, answer.was_sent)
