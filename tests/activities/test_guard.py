"""What the worker's guard does around every activity."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput

from activities import guard
from activities.guard import FailureGuard
from triage.contracts.failures import FailureClass


class Body(ActivityInboundInterceptor):
    """An activity that takes a tenth of a second, or raises what a library may."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002, ANN401 - the SDK's signature
        """See base class."""
        if self.error is not None:
            raise self.error
        await asyncio.sleep(0.1)
        return "done"


async def _run(body: Body, *, is_local: bool) -> Any:  # noqa: ANN401 - whatever it returns
    env = ActivityEnvironment()
    env.info = replace(env.info, is_local=is_local)
    given = ExecuteActivityInput(fn=_run, args=(), executor=None, headers={})

    async def activity_body() -> Any:  # noqa: ANN401 - likewise
        assert activity.info().is_local is is_local
        return await FailureGuard().intercept_activity(body).execute_activity(given)

    return await env.run(activity_body)


@pytest.mark.parametrize(("is_local", "type_"), [(True, FailureClass.TOOL_TIMEOUT), (False, None)])
async def test_a_local_activity_is_held_to_its_deadline(
    monkeypatch: pytest.MonkeyPatch, is_local: bool, type_: str | None
) -> None:
    """One that takes too long times out by our own clock; any other one has the server's."""
    monkeypatch.setattr(guard, "LOCAL_SECONDS", 0.01)
    if type_ is None:
        assert "done" == await _run(Body(), is_local=is_local)
        return
    with pytest.raises(ApplicationError) as caught:
        await _run(Body(), is_local=is_local)
    assert (type_, False) == (caught.value.type, caught.value.non_retryable)


async def test_an_exit_is_told_by_its_name() -> None:
    """Code that is not ours ends no worker, and its last words go nowhere."""
    with pytest.raises(ApplicationError) as caught:
        await _run(Body(SystemExit("secret host")), is_local=False)
    assert ("SystemExit", False) == (caught.value.type, "secret" in str(caught.value))


@pytest.mark.parametrize("is_local", [True, False])
async def test_a_foreign_timeout_is_told_by_its_name(is_local: bool) -> None:
    """What a library calls a timeout is not the deadline, and its words go nowhere."""
    with pytest.raises(ApplicationError) as caught:
        await _run(Body(TimeoutError("secret host")), is_local=is_local)
    assert ("TimeoutError", False) == (caught.value.type, "secret" in str(caught.value))


class Waiting(Body):
    """An activity that waits for a tenth of a second off the clock, and then goes on."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002, ANN401 - the SDK's signature
        """See base class."""
        with guard.clock_stopped():
            await asyncio.sleep(0.1)
        await asyncio.sleep(self.seconds)
        return "done"


async def test_what_is_waited_for_off_the_clock_takes_none_of_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An attempt has all of its time after the wait, and no more than that."""
    monkeypatch.setattr(guard, "LOCAL_SECONDS", 0.05)
    assert "done" == await _run(Waiting(0), is_local=True)
    assert "done" == await _run(Waiting(0), is_local=False)
    with pytest.raises(ApplicationError, match="it took too long"):
        await _run(Waiting(10), is_local=True)
