"""The arm of a peer: a server and a worker of its own, as the floor has them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from temporalio.client import Client

from benchmarks.arms import Arm, Handle, WrongEnd
from benchmarks.peers.case import ANSWER, Verdict, request_text
from benchmarks.peers.loading import NoPeer
from benchmarks.peers.peer import PEER_VARIABLE, QUEUE, Peer
from benchmarks.plan import W_API, Plan, Shape, W
from benchmarks.stacks import Stack, peer_stack
from tests.workflow.decisions import a_request

_PLAYED: Final = {W.name, W_API.name, "steps", "replay", "embedded", "cold"}
"""The arms in which nobody waits for a person, and those that do not concern a peer. It always asks
its model as one behind an API is asked, in W, too."""


@dataclass(frozen=True, slots=True)
class PeerArm:
    """A framework's runs of W and of more steps."""

    stack: Stack
    peer: Peer
    client: Client

    @property
    def name(self) -> str:
        """The framework's."""
        return self.peer.name

    async def prepare(self, shape: Shape) -> None:
        """Do nothing: nothing is stored anywhere."""

    async def start(self, shape: Shape, run_id: str) -> Handle:
        """Start a run with the product's request, as text."""
        return await self.client.start_workflow(
            self.peer.workflow.__name__,
            request_text(a_request(), shape),
            id=run_id,
            task_queue=QUEUE,
            result_type=Verdict,
        )

    async def is_waiting(self, shape: Shape, run: Handle) -> bool:  # noqa: ARG002 - none waits
        """Say no."""
        return False

    async def approve(self, run: Handle) -> None:
        """Do nothing: none waits."""

    async def finish(self, run: Handle) -> None:
        """Wait for its answer, which has to be the scripted one."""
        verdict: Verdict = await run.result()
        if verdict != Verdict.model_validate(ANSWER):
            raise WrongEnd(f"{run.id} of {self.name} answered something else")


@asynccontextmanager
async def opened_peer(peer: Peer, plan: Plan, folder: Path) -> AsyncIterator[Arm]:
    """Run a peer's server and worker, and connect as the framework's documentation does.

    Raises:
        NoPeer: the plan has arms that no peer plays.
    """
    if other := set(plan.arms) - _PLAYED:
        raise NoPeer(
            f"{peer.name} has no approval, and so does not play {', '.join(sorted(other))}"
        )
    variables = {PEER_VARIABLE: peer.module, **dict(peer.environment)}
    async with peer_stack(plan, folder, "benchmarks.peers.worker", variables) as stack:
        address = stack.connection["TEMPORAL_ADDRESS"]
        client = await Client.connect(address, plugins=[peer.plugin()])
        yield PeerArm(stack, peer, client)
