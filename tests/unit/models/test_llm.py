"""One question to a provider: what leaves this machine, and what an ordinary answer becomes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
from pydantic import SecretStr

from tests.fakes.llm_server import ANTHROPIC, OPENAI, LlmServer, answer, decided, llm_server
from tests.unit.models.driver import issue, model_request
from tests.unit.models.llm_faults_plan import DECISION
from triage.contracts.payloads import DecideOutcome, Usage
from triage.models.base import PaidAnswer, PaidModel
from triage.models.factory import NoKey, UnknownModel, build_model
from triage.models.llm import SEED, TEMPERATURE
from triage.models.llm_prompt import system_text, user_text
from triage.models.llm_setup import Endpoint, LlmSetup, endpoint_of
from triage.models.quotes import Quote
from triage.settings import Settings

KEY: Final = "sk-made-up-0123456789"
QUESTION: Final = model_request(issue("A title", "A body", ("backend/api.py",)))
NAMES: Final = {OPENAI: "openai:gpt-4o-mini", ANTHROPIC: "anthropic:claude-haiku-4-5"}
STRANGE: Final = "strange-0123456789"

both = pytest.mark.parametrize("provider", [OPENAI, ANTHROPIC])


@pytest.fixture(scope="module")
async def servers() -> AsyncIterator[dict[str, LlmServer]]:
    """Both providers."""
    async with llm_server(OPENAI) as openai, llm_server(ANTHROPIC) as anthropic:
        yield {OPENAI: openai, ANTHROPIC: anthropic}


async def _no_script(_digest: str) -> None:
    return None


async def _model(server: LlmServer, key: str | None = KEY, name: str = "") -> PaidModel:
    secret = None if key is None else SecretStr(key)
    endpoint = Endpoint(base_url=server.base_url, key=secret)
    setup = LlmSetup(endpoints={server.provider: endpoint})
    model = await build_model(name or NAMES[server.provider], load_script=_no_script, llm=setup)
    assert isinstance(model, PaidModel)
    return model


async def _ask(model: PaidModel, output_tokens: int = 500) -> PaidAnswer:
    quote = model.quote(QUESTION)
    return await model.ask(QUESTION, Quote(quote.input_tokens, output_tokens, quote.price))


@both
async def test_a_decision_comes_back_as_plain_data(
    servers: dict[str, LlmServer], provider: str
) -> None:
    """What stands in the envelope is passed on, with what the provider counted."""
    server = servers[provider]
    server.will(decided(provider, DECISION))
    found = await _ask(await _model(server))
    assert (DecideOutcome.DECISION, DECISION) == (found.result.outcome, found.result.decision)
    assert found.used is not None
    assert 150 == found.used.tokens
    assert found.used.cost_micros > 0


@both
@pytest.mark.parametrize("used", [None, (0, 0), (10, 0), (10**9, 1)])
async def test_a_count_that_cannot_be_believed_is_none(
    servers: dict[str, LlmServer], provider: str, used: tuple[int, int] | None
) -> None:
    """No count, a zero and an absurd one all mean that nobody knows."""
    server = servers[provider]
    server.will(decided(provider, DECISION, used=used))
    found = await _ask(await _model(server))
    assert None is found.used


@both
async def test_a_request_says_what_it_must_and_nothing_else(
    servers: dict[str, LlmServer], provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our own headers alone are sent, whatever the environment holds for the libraries."""
    for name in (
        *("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "ANTHROPIC_API_KEY"),
        *("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE"),
    ):
        monkeypatch.setenv(name, STRANGE)
    for name in ("OPENAI_CUSTOM_HEADERS", "ANTHROPIC_CUSTOM_HEADERS"):
        monkeypatch.setenv(name, f"X-Strange: {STRANGE}\nAuthorization: {STRANGE}")
    for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    server = servers[provider]
    server.will(decided(provider, DECISION))
    found = await _ask(await _model(server))
    assert DecideOutcome.DECISION is found.result.outcome
    [request] = server.requests
    proof = {"authorization": f"Bearer {KEY}"}
    if provider == ANTHROPIC:
        proof = {"x-api-key": KEY, "anthropic-version": "2023-06-01"}
    plain = {"accept", "accept-encoding", "content-length", "content-type", "host", "user-agent"}
    assert plain | set(proof) == set(request.headers)
    assert proof.items() <= request.headers.items()
    assert STRANGE not in f"{request.headers} {request.body!r}"


@both
async def test_the_stranger_s_text_is_in_the_user_s_part_alone(
    servers: dict[str, LlmServer], provider: str
) -> None:
    """The system part is our file to the letter; one user's part holds the data; no tools."""
    server = servers[provider]
    server.will(decided(provider, DECISION))
    await _ask(await _model(server))
    asked = server.asked()
    system, user = _parts(asked)
    assert (system_text(), user_text(QUESTION)) == (system, user)
    assert "tools" not in asked


def _parts(asked: dict[str, Any]) -> tuple[str, str]:
    """Return the system part and the user's part of a request."""
    if "system" in asked:
        [message] = asked["messages"]
        [part] = message["content"]
        assert "text" == part["type"]
        return asked["system"], part["text"]
    system, user = asked["messages"]
    assert ("system", "user") == (system["role"], user["role"])
    return system["content"], user["content"]


@both
async def test_a_request_is_bounded_and_as_repeatable_as_it_can_be(
    servers: dict[str, LlmServer], provider: str
) -> None:
    """The tokens are those that were reserved; temperature and seed are those on record."""
    server = servers[provider]
    server.will(decided(provider, DECISION))
    model = await _model(server)
    await _ask(model, output_tokens=321)
    asked = server.asked()
    assert (321, TEMPERATURE) == (asked["max_tokens"], asked["temperature"])
    if provider == OPENAI:
        assert SEED == asked["seed"]
    assert f"temperature={TEMPERATURE:g},seed={SEED}" in model.revision


async def test_a_server_of_one_s_own_gets_the_bounds_of_the_schema(
    servers: dict[str, LlmServer],
) -> None:
    """The schema arrives as it is made, since such servers follow it to the letter."""
    server = servers[OPENAI]
    server.will(decided(OPENAI, DECISION))
    await _ask(await _model(server))
    schema = server.asked()["response_format"]["json_schema"]["schema"]
    assert ["decision"] == schema["required"]
    assert '"maxItems"' in str(schema).replace("'", '"')
    assert '"maxLength"' in str(schema).replace("'", '"')


@both
async def test_a_server_of_one_s_own_may_need_no_key(
    servers: dict[str, LlmServer], provider: str
) -> None:
    """Without a key nothing is sent in its place."""
    server = servers[provider]
    server.will(decided(provider, DECISION))
    await _ask(await _model(server, key=None))
    [request] = server.requests
    assert not {"authorization", "x-api-key"} & set(request.headers)


async def test_a_model_without_structured_answers_is_asked_in_words(
    servers: dict[str, LlmServer],
) -> None:
    """An older model gets no schema; the prompt says what to answer."""
    server = servers[ANTHROPIC]
    server.will(answer(ANTHROPIC, '{"decision": 1}'))
    found = await _ask(await _model(server, name="anthropic:claude-3-haiku-20240307"))
    assert (1, False) == (found.result.decision, "output_config" in server.asked())


@both
async def test_nothing_shows_the_key(servers: dict[str, LlmServer], provider: str) -> None:
    """Neither the model nor the setup has it in its text."""
    model = await _model(servers[provider])
    endpoint = Endpoint(base_url="http://localhost", key=SecretStr(KEY))
    assert KEY not in f"{model!r} {vars(model)!r} {endpoint!r}"


@both
async def test_a_model_without_a_key_is_not_built(provider: str) -> None:
    """What is missing is said by the name of the setting."""
    with pytest.raises(NoKey, match=f"TRIAGE_{provider.upper()}_API_KEY"):
        await build_model(NAMES[provider], load_script=_no_script)
    with pytest.raises(UnknownModel):
        await build_model(f"{provider}:", load_script=_no_script)


SETUPS: dict[str, tuple[dict[str, str], dict[str, tuple[str | None, str | None]]]] = {
    "nothing": ({}, {OPENAI: (None, None), ANTHROPIC: (None, None)}),
    "one key": (
        {"model": "anthropic:c", "model_api_key": "k"},
        {OPENAI: (None, None), ANTHROPIC: (None, "k")},
    ),
    "a key of its own": (
        {"model": "openai:g", "openai_api_key": "o", "anthropic_api_key": "a"},
        {OPENAI: (None, "o"), ANTHROPIC: (None, "a")},
    ),
    "a server of one's own": (
        {"model": "openai:g", "model_base_url": "http://localhost/v1", "openai_api_key": "o"},
        {OPENAI: ("http://localhost/v1", None), ANTHROPIC: (None, None)},
    ),
    "a fallback": (
        {"model": "anthropic:c", "model_base_url": "http://p", "model_api_key": "k",
         "openai_api_key": "o", "anthropic_api_key": "a"},
        {OPENAI: (None, "o"), ANTHROPIC: ("http://p", "k")},
    ),
    "no provider by default": (
        {"model": "rules", "model_base_url": "http://localhost/v1", "model_api_key": "k"},
        {OPENAI: ("http://localhost/v1", "k"), ANTHROPIC: (None, None)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SETUPS)
def test_a_key_goes_to_its_provider_alone(name: str) -> None:
    """The model's address and key are of one provider, and no named key goes to that address."""
    given, expected = SETUPS[name]
    settings = Settings.model_validate(given)
    found = {}
    for provider in (OPENAI, ANTHROPIC):
        endpoint = endpoint_of(settings, provider)
        key = endpoint.key.get_secret_value() if endpoint.key else None
        found[provider] = (endpoint.base_url, key)
    assert expected == found


async def test_a_model_that_nobody_lists_is_charged_the_most(servers: dict[str, LlmServer]) -> None:
    """A server of one's own is not free by itself: prices of one's own say so."""
    server = servers[OPENAI]
    server.will(decided(OPENAI, DECISION))
    found = await _ask(await _model(server, name="openai:own-llama"))
    assert Usage(tokens=150, cost_micros=4_050) == found.used
