"""What there is to know of a peer, for the process that measures it and for its worker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from temporalio.plugin import SimplePlugin

if TYPE_CHECKING:
    from benchmarks.arms import Arm
    from benchmarks.plan import Plan

QUEUE: Final = "peer"
PEER_VARIABLE: Final = "BENCH_PEER"
"""Names the module that a worker serves."""
STEP_TIMEOUT: Final = timedelta(seconds=10)
"""What an activity may take: the floor's bound."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A framework on Temporal, set up as its own documentation does it.

    Attributes:
        name: as the report calls it.
        module: where its workflow is.
        workflow: takes a request as JSON, and returns what `case.Verdict` holds.
        plugin: makes the framework's plugin, once for a client.
        activities: those that the plugin does not bring along.
        environment: variables of its worker, which keep it from the network.
    """

    name: str
    module: str
    workflow: type
    plugin: Callable[[], SimplePlugin]
    activities: Sequence[Callable[..., Any]] = ()
    environment: tuple[tuple[str, str], ...] = ()

    def opened(self, plan: Plan, folder: Path) -> AbstractAsyncContextManager[Arm]:
        """Open its arm, as ``--peer`` calls it."""
        from benchmarks.peers.arm import opened_peer  # noqa: PLC0415 - a worker needs none of it

        return opened_peer(self, plan, folder)
