"""The floor: the smallest workflow that does what a triage does, with activities that do nothing.

Whatever is durable on Temporal costs at least this much; what a product adds is what it costs more.
It runs in the SDK's sandbox with the SDK's own converter, and holds one module.
"""

from __future__ import annotations

from datetime import timedelta

from temporalio import activity, workflow

QUEUE = "floor"


@activity.defn
async def nothing() -> None:
    """Do nothing, durably."""


@workflow.defn
class Floor:
    """Some empty activities; then, if a person has to approve, a wait and one more."""

    def __init__(self) -> None:
        self._approved = False

    @workflow.run
    async def run(self, activities: int, waits: bool) -> None:  # noqa: FBT001 - arguments are positional
        """Run `activities` empty activities, and an approved one if it `waits`."""
        for _ in range(activities):
            await _nothing()
        if waits:
            await workflow.wait_condition(lambda: self._approved)
            await _nothing()

    @workflow.signal
    def approve(self) -> None:
        """Let it go on."""
        self._approved = True


async def _nothing() -> None:
    await workflow.execute_activity(nothing, start_to_close_timeout=timedelta(seconds=10))
