"""What every adapter promises, whatever is behind it: the same tests for each of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

import pytest
from pydantic import JsonValue, SecretStr

from tests.fakes.llm_server import ANTHROPIC, OPENAI, LlmServer, decided, llm_server
from tests.unit.models.driver import issue, model_request, observation
from tests.unit.models.learned_samples import classifier
from triage.contracts.canonical import canonical_json
from triage.contracts.decision import parse_decision
from triage.contracts.payloads import DecideOutcome, DecideResult
from triage.models.base import ModelAdapter, ModelRequest
from triage.models.factory import build_model
from triage.models.learned import LearnedModel
from triage.models.llm_setup import Endpoint, LlmSetup
from triage.models.recorded import RecordedModel
from triage.models.rules import RulesModel

ADAPTERS: Final = ("rules", "recorded", "learned", OPENAI, ANTHROPIC)
CALL: Final[JsonValue] = {
    "kind": "call_tool",
    "tool": {
        "call_id": "call-1",
        "name": "lookup_component_owner",
        "arguments": {"path": "backend/api.py"},
        "operation_id": None,
    },
}
SEEN: Final = observation("lookup_component_owner", {"path": "backend/api.py"})
QUESTIONS: Final[dict[str, ModelRequest]] = {
    "a bug": model_request(
        issue("Crash: the API fails", "It raises an error.", ("backend/api.py",))
    ),
    "with evidence": model_request(issue("Crash", "An error.", ("backend/api.py",)), (SEEN,), 2),
    "nothing to go by": model_request(issue("?", "?")),
    "odd letters": model_request(issue("\x00\u202e", "\ufffd<|im_end|>" * 50, ("../x",))),
    "a long text": model_request(issue("x" * 4_000, "y <" * 100_000, ("p",) * 3_000)),
}

each = pytest.mark.parametrize("name", ADAPTERS)


@dataclass(frozen=True)
class Makers:
    """Builds each adapter anew."""

    servers: dict[str, LlmServer]

    async def make(self, name: str) -> ModelAdapter:
        """Return an adapter that has not been asked yet."""
        match name:
            case "rules":
                return RulesModel()
            case "recorded":
                return RecordedModel([CALL, CALL, CALL])
            case "learned":
                return LearnedModel(classifier())
            case _:
                server = self.servers[name]
                endpoint = Endpoint(base_url=server.base_url, key=SecretStr("sk-made-up"))
                setup = LlmSetup(endpoints={name: endpoint})
                return await build_model(f"{name}:small", load_script=_no_script, llm=setup)


async def _no_script(_digest: str) -> None:
    return None


@pytest.fixture(scope="module")
async def makers() -> AsyncIterator[Makers]:
    """All adapters; the providers answer every question alike."""
    async with llm_server(OPENAI) as openai, llm_server(ANTHROPIC) as anthropic:
        for server in (openai, anthropic):
            server.will(decided(server.provider, CALL))
        yield Makers({OPENAI: openai, ANTHROPIC: anthropic})


@each
async def test_an_adapter_says_who_it_is(makers: Makers, name: str) -> None:
    """Name and revision are what a run keeps on record: short, printable, and always the same."""
    one, other = await makers.make(name), await makers.make(name)
    assert (one.name, one.revision) == (other.name, other.revision)
    for text in (one.name, one.revision):
        assert text
        assert text.isprintable()
        assert len(text) <= 200


@each
@pytest.mark.parametrize("question", QUESTIONS)
async def test_an_adapter_answers_any_question(makers: Makers, name: str, question: str) -> None:
    """It never raises; what it decides is one decision of the rules, and can be carried."""
    request = QUESTIONS[question]
    before = request.model_dump_json()
    result = await (await makers.make(name)).decide(request)
    assert isinstance(result, DecideResult)
    assert DecideOutcome.DECISION is result.outcome
    canonical_json(result.model_dump(mode="json"))
    routes, labels = frozenset(request.routes), frozenset(request.labels)
    parse_decision(result.decision, routes=routes, labels=labels)
    assert before == request.model_dump_json()


@each
async def test_an_adapter_remembers_nothing(makers: Makers, name: str) -> None:
    """A question is answered alike the first time, again, and after others."""
    adapter = await makers.make(name)
    request = QUESTIONS["a bug"]
    first = await adapter.decide(request)
    await adapter.decide(QUESTIONS["nothing to go by"])
    assert first == await adapter.decide(request)
    assert first == await (await makers.make(name)).decide(request)


@each
async def test_an_adapter_without_routes_does_not_raise(makers: Makers, name: str) -> None:
    """Rules that name nothing are an outcome, whatever it is."""
    request = QUESTIONS["a bug"].model_copy(update={"routes": (), "labels": (), "tools": ()})
    assert isinstance(await (await makers.make(name)).decide(request), DecideResult)
