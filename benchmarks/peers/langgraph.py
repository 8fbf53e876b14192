"""LangGraph on Temporal, as the README of temporalio-langgraph 0.1 and its sample of an agent say.

A graph of two nodes that call each other, each an activity, with the loop's condition in the
workflow. Messages are plain objects, as in the sample: LangChain's would be larger. This release's
bound on a graph's steps is 10,007, where it once was 25, so nothing here raises it.
"""

from __future__ import annotations

import operator
from typing import Annotated, Any, Final, TypedDict

from langgraph.graph import END, START, StateGraph
from temporalio import workflow
from temporalio.langgraph import LangGraphPlugin, graph

from benchmarks.peers.case import (
    ANSWER,
    ARGUMENTS,
    INSTRUCTIONS,
    TOOL,
    Verdict,
    call_number,
    owner_of,
)
from benchmarks.peers.peer import STEP_TIMEOUT, Peer

PACKAGES: Final = ("langgraph", "temporalio-langgraph")
_GRAPH: Final = "triage"


class State(TypedDict):
    """What travels between the nodes."""

    messages: Annotated[list[dict[str, Any]], operator.add]
    answer: dict[str, Any] | None


async def ask(state: State) -> dict[str, Any]:
    """Ask the scripted model."""
    answered = sum(message["role"] == "assistant" for message in state["messages"])
    number = call_number(state["messages"][1]["content"], answered)
    if number is None:
        return {"answer": Verdict.model_validate(ANSWER).model_dump()}
    call = {"id": f"call-{number}", "name": TOOL, "arguments": ARGUMENTS}
    return {"messages": [{"role": "assistant", "tool_calls": [call]}]}


async def read(state: State) -> dict[str, Any]:
    """Read what the model asked for."""
    call = state["messages"][-1]["tool_calls"][0]
    found = owner_of(**call["arguments"]).model_dump()
    return {"messages": [{"role": "tool", "tool_call_id": call["id"], "content": found}]}


async def _next(state: State) -> str:
    # The sample says why it is async: another kind would need a thread.
    return END if state["answer"] else "read"


def _plugin() -> LangGraphPlugin:
    options = {"execute_in": "activity", "start_to_close_timeout": STEP_TIMEOUT}
    made = StateGraph(State)
    made.add_node("ask", ask, metadata=dict(options))
    made.add_node("read", read, metadata=dict(options))
    made.add_edge(START, "ask")
    made.add_conditional_edges("ask", _next, ["read", END])
    made.add_edge("read", "ask")
    return LangGraphPlugin(graphs={_GRAPH: made})


@workflow.defn
class LangGraphTriage:
    """One run of the graph."""

    @workflow.run
    async def run(self, request: str) -> dict[str, Any]:
        """Return the graph's answer."""
        messages = [
            {"role": "system", "content": INSTRUCTIONS},
            {"role": "user", "content": request},
        ]
        begun: State = {"messages": messages, "answer": None}
        ended = await graph(_GRAPH).compile().ainvoke(begun)
        answer: dict[str, Any] = ended["answer"]
        return answer


PEER: Final = Peer(
    "langgraph",
    __name__,
    LangGraphTriage,
    _plugin,
    environment=(("LANGSMITH_TRACING", "false"),),
)
opened = PEER.opened
