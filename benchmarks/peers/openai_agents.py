"""The OpenAI Agents SDK on Temporal, as the README of temporalio-openai-agents 1.1 says.

Its plugin on client and worker, the tool an activity by `activity_as_tool`, an output type, a
`Model` of our own for a script. Tracing is off, which its documentation offers: it would send to a
server, and nothing else here traces. A long run may take as many turns as it has questions.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, Final

from agents import Agent, Model, ModelProvider, ModelResponse, RunConfig, Runner, Usage
from agents.run_config import DEFAULT_MAX_TURNS
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)
from temporalio import activity, workflow
from temporalio.openai_agents import ModelActivityParameters, OpenAIAgentsPlugin
from temporalio.openai_agents.workflow import activity_as_tool

from benchmarks.peers.case import (
    ANSWER,
    ARGUMENTS,
    INSTRUCTIONS,
    TOOL,
    Ownership,
    Verdict,
    call_number,
    owner_of,
    questions,
)
from benchmarks.peers.peer import STEP_TIMEOUT, Peer

PACKAGES: Final = ("openai-agents", "temporalio-openai-agents")


class ScriptedModel(Model):
    """Asks for the tool as often as the request says, and then answers."""

    async def get_response(  # noqa: D102 - the framework's
        self,
        system_instructions: str | None,  # noqa: ARG002 - a script needs none
        input: str | list[Any],  # noqa: A002 - the framework's name
        *_: Any,  # noqa: ANN401 - as the framework calls it
        **__: Any,  # noqa: ANN401 - likewise
    ) -> ModelResponse:
        items = [{"content": input}] if isinstance(input, str) else input
        answered = sum(item.get("type") == "function_call" for item in items)
        number = call_number(items[0]["content"], answered)
        output = _answer(answered + 1) if number is None else _call(number)
        return ModelResponse(output=[output], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:  # noqa: ANN401 - likewise
        """Refuse: nothing here streams."""
        raise NotImplementedError


class ScriptedProvider(ModelProvider):
    """Knows one model."""

    def get_model(self, model_name: str | None) -> Model:  # noqa: ARG002 - it is that one
        """Return it."""
        return ScriptedModel()


def _call(number: int) -> ResponseFunctionToolCall:
    return ResponseFunctionToolCall(
        arguments=json.dumps(ARGUMENTS),
        call_id=f"call-{number}",
        name=TOOL,
        type="function_call",
        id=f"item-{number}",
        status="completed",
    )


def _answer(number: int) -> ResponseOutputMessage:
    text = ResponseOutputText(text=json.dumps(ANSWER), annotations=[], type="output_text")
    return ResponseOutputMessage(
        id=f"item-{number}",
        content=[text],
        role="assistant",
        status="completed",
        type="message",
    )


@activity.defn
async def lookup_component_owner(path: str) -> Ownership:
    """Say who owns a path of the repository."""
    return owner_of(path)


@workflow.defn
class OpenAIAgentsTriage:
    """One run of the agent."""

    @workflow.run
    async def run(self, request: str) -> Verdict:
        """Return the agent's answer."""
        agent = Agent(
            name="triage",
            instructions=INSTRUCTIONS,
            output_type=Verdict,
            tools=[activity_as_tool(lookup_component_owner, start_to_close_timeout=STEP_TIMEOUT)],
        )
        config = RunConfig(tracing_disabled=True)
        turns = max(DEFAULT_MAX_TURNS, questions(request))
        found = await Runner.run(agent, input=request, max_turns=turns, run_config=config)
        return found.final_output_as(Verdict)


def _plugin() -> OpenAIAgentsPlugin:
    return OpenAIAgentsPlugin(
        model_params=ModelActivityParameters(start_to_close_timeout=STEP_TIMEOUT),
        model_provider=ScriptedProvider(),
    )


PEER: Final = Peer(
    "openai-agents",
    __name__,
    OpenAIAgentsTriage,
    _plugin,
    activities=(lookup_component_owner,),
    environment=(("OPENAI_AGENTS_DISABLE_TRACING", "1"),),
)
opened = PEER.opened
