"""Pydantic AI on Temporal, as docs/durable_execution/temporal.md of its release 2.68 says.

An agent with the capability `TemporalDurability` (the wrapper `TemporalAgent` is deprecated), its
plugin on client and worker, a function tool, an output type, a `FunctionModel` for a script. Of its
usage limits, that of requests is raised where a long run has more questions.
"""

from __future__ import annotations

from typing import Final

from pydantic_ai import Agent
from pydantic_ai.durable_exec.temporal import (
    PydanticAIPlugin,
    PydanticAIWorkflow,
    TemporalDurability,
)
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import UsageLimits
from temporalio import workflow
from temporalio.workflow import ActivityConfig

from benchmarks.peers.case import (
    ANSWER,
    ARGUMENTS,
    INSTRUCTIONS,
    TOOL,
    TOOL_PURPOSE,
    Ownership,
    Verdict,
    call_number,
    owner_of,
    questions,
)
from benchmarks.peers.peer import STEP_TIMEOUT, Peer

PACKAGES: Final = ("pydantic-ai-slim",)
_REQUESTS: Final = UsageLimits().request_limit or 0


def _scripted(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    asked = next(part for part in messages[0].parts if isinstance(part, UserPromptPart))
    answered = sum(isinstance(message, ModelResponse) for message in messages)
    if call_number(str(asked.content), answered) is None:
        return ModelResponse(parts=[ToolCallPart(info.output_tools[0].name, ANSWER)])
    return ModelResponse(parts=[ToolCallPart(TOOL, ARGUMENTS)])


AGENT: Final = Agent(
    FunctionModel(_scripted),
    name="triage",
    instructions=INSTRUCTIONS,
    output_type=Verdict,
    capabilities=[
        TemporalDurability(activity_config=ActivityConfig(start_to_close_timeout=STEP_TIMEOUT))
    ],
)


@AGENT.tool_plain(name=TOOL, description=TOOL_PURPOSE)
async def lookup(path: str) -> Ownership:
    """Read who owns a path."""
    return owner_of(path)


@workflow.defn
class PydanticAITriage(PydanticAIWorkflow):
    """One run of the agent."""

    __pydantic_ai_agents__ = (AGENT,)

    @workflow.run
    async def run(self, request: str) -> Verdict:
        """Return the agent's answer."""
        limits = UsageLimits(request_limit=max(_REQUESTS, questions(request)))
        return (await AGENT.run(request, usage_limits=limits)).output


PEER: Final = Peer("pydantic-ai", __name__, PydanticAITriage, PydanticAIPlugin)
opened = PEER.opened
