"""A run that is cancelled ends as cancelled, wherever it stands."""

from __future__ import annotations

import pytest
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import CancelledError

from tests.activities.scripted_tracker import Add
from tests.workflow.decisions import final, label, lookup
from tests.workflow.runs import eventually
from tests.workflow.test_uncertain_writes import FarEnd, far_end

__all__ = ["far_end"]

SCRIPT = [lookup(), label(), final("mutation-receipt", labels=("bug",))]


async def test_a_cancel_during_a_write_ends_the_run(far_end: FarEnd) -> None:
    """It is no timeout: the run says nothing of the write, which is settled without it."""
    far_end.tracker.will(Add.HANGS)
    run = await far_end.run(*SCRIPT)

    async def is_writing() -> bool:
        return far_end.tracker.calls > 0

    await eventually(is_writing)
    await run.handle.cancel()
    with pytest.raises(WorkflowFailureError) as ended:
        await run.response()
    assert isinstance(ended.value.cause, CancelledError)
    assert 1 == far_end.tracker.calls
