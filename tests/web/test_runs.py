"""From a delivery to its run: started once, edited while it goes on, and never lost."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import httpx2
import pytest
from sqlalchemy import update
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError

from tests.cli.conftest import clean_environment
from tests.ports import kept_port
from tests.web.hooks import EARLY, LATER, LATEST, SECRET, Hook, an_event, hook_settings, serving
from tests.workflow.world import World, altered_world, dev_server
from triage.contracts.response import TriageResponse
from triage.embedded import EmbeddedServer, ServerOptions
from triage.storage.engine import Store
from triage.storage.schema import requests
from triage.web.starter import PREFIX

T = TypeVar("T")
SECONDS: Final = 30.0
"""Within which what was left is started, once it can be."""
START_SECONDS: Final = 90.0
"""Far longer than a process of its own takes to start, or a run to its end."""

KILLED: Final = """
import os, signal, sys
from triage import faults

place = sys.argv.pop(1)

def kill(point, subject):
    if point == place:
        os.kill(os.getpid(), signal.SIGKILL)

faults.arm(kill)
from triage.cli.main import main
main()
"""
"""The command `triage`, which kills itself at a place."""


async def eventually(look: Callable[[], Awaitable[T | None]]) -> T:
    """Return what `look` finds, as soon as it finds anything."""
    async with asyncio.timeout(SECONDS):
        while (found := await look()) is None:  # noqa: ASYNC110 - processes share no event
            await asyncio.sleep(0.05)
    return found


async def started(hook: Hook, count: int = 1) -> list[dict[str, Any]]:
    """Return the requests once that many of them have a run."""

    async def look() -> list[dict[str, Any]] | None:
        rows = await hook.requests()
        return rows if sum(row["state"] == "started" for row in rows) >= count else None

    return await eventually(look)


@pytest.fixture
async def reaching(
    world: World, light_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Hook]:
    """A server for deliveries that reaches Temporal; no worker polls its queue yet."""
    address = world.client.service_client.config.target_host
    monkeypatch.setenv("TEMPORAL_ADDRESS", address)
    settings = hook_settings(tmp_path, light_url, task_queue=f"hooks-{tmp_path.name}")
    async with serving(settings) as hook:
        yield hook


def _queue(tmp_path: Path) -> str:
    return f"hooks-{tmp_path.name}"


async def _signals(client: Client, workflow_id: str) -> list[str]:
    history = await client.get_workflow_handle(workflow_id).fetch_history()
    found = (event.workflow_execution_signaled_event_attributes for event in history.events)
    return [attributes.signal_name for attributes in found if attributes.signal_name]


async def _response(client: Client, workflow_id: str) -> TriageResponse:
    handle = client.get_workflow_handle(workflow_id, result_type=TriageResponse)
    async with asyncio.timeout(START_SECONDS):
        response: TriageResponse = await handle.result()
    return response


@pytest.fixture
def no_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but a delivery sets a run off."""
    monkeypatch.setattr("triage.web.starter.PERIOD_SECONDS", 3_600.0)


async def test_a_delivery_becomes_one_run(
    no_rounds: None, world: World, reaching: Hook, tmp_path: Path
) -> None:
    """Sent five times and under another id too: one run at once, with a name that says nothing."""
    event = an_event()
    guids = [{"X_GitHub_Delivery": "one"}] * 5 + [{}]
    answers = await asyncio.gather(*(reaching.send(event, **guid) for guid in guids))
    assert [202] * 6 == [answer.status_code for answer in answers]
    [row] = await started(reaching)
    assert f"{PREFIX}{row['request_key']}" == row["workflow_id"]
    described = await world.client.get_workflow_handle(row["workflow_id"]).describe()
    assert (WorkflowExecutionStatus.RUNNING, row["run_id"]) == (described.status, described.run_id)
    async with altered_world(world, queue=_queue(tmp_path)):
        response = await _response(world.client, row["workflow_id"])
    assert "bug" == response.route


async def test_an_edit_during_a_run_reaches_it(
    world: World, reaching: Hook, tmp_path: Path
) -> None:
    """A newer text goes into the run that is under way, once, and that run decides on it."""
    await reaching.send(an_event(at=EARLY))
    [first] = await started(reaching)
    wish = an_event("edited", title="Feature request: dark mode", body="Please add it.", at=LATER)
    for _ in range(2):
        await reaching.send(wish)
    _, second = await started(reaching, 2)
    assert first["workflow_id"] == second["workflow_id"]
    assert ["edit"] == await _signals(world.client, first["workflow_id"])
    async with altered_world(world, queue=_queue(tmp_path)):
        response = await _response(world.client, first["workflow_id"])
    assert "feature" == response.route


async def test_an_edit_that_is_sent_again_is_one(world: World, reaching: Hook) -> None:
    """Whoever repeats what a dead process had sent changes nothing: the server drops it."""
    await reaching.send(an_event(at=EARLY))
    [first] = await started(reaching)
    await reaching.send(an_event("edited", title="Other", at=LATER))
    _, second = await started(reaching, 2)
    await _forget(reaching.store, second["request_key"])
    _, again = await started(reaching, 2)
    assert first["workflow_id"] == again["workflow_id"]
    assert ["edit"] == await _signals(world.client, first["workflow_id"])


@pytest.mark.slow
async def test_an_edit_that_the_run_has_no_room_for_waits(
    light_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that may be sent no more signals loses no text: that waits, and others go on."""
    full = ("--dynamic-config-value", "history.maximumSignalsPerExecution=1")
    async with await dev_server(*full) as env:
        monkeypatch.setenv("TEMPORAL_ADDRESS", env.client.service_client.config.target_host)
        async with serving(hook_settings(tmp_path, light_url)) as hook:
            await hook.send(an_event(at=EARLY))
            [first] = await started(hook)
            run = env.client.get_workflow_handle(first["workflow_id"])
            await run.signal("noise")
            await hook.send(an_event("edited", title="Other", at=LATER))
            await hook.send(an_event(number=2))
            waiting = [row for row in await started(hook, 2) if row["version"] == 2]
            assert [("accepted", "no_room")] == [(row["state"], row["code"]) for row in waiting]
            await run.terminate()
            await _end_lease(hook.store)
            await started(hook, 3)


async def _forget(store: Store, request_key: str) -> None:
    """Leave a request as a process that died after it had sent it would, lease over."""
    async with store.write() as connection:
        await connection.execute(
            update(requests)
            .where(requests.c.request_key == request_key)
            .values(state="accepted", workflow_id=None, run_id=None, next_attempt_at=None)
        )


async def test_after_a_run_only_a_new_text_starts_another(
    world: World, reaching: Hook, tmp_path: Path
) -> None:
    """The same text after the run ended starts nothing; another one gets a run of its own."""
    async with altered_world(world, queue=_queue(tmp_path)):
        await reaching.send(an_event(at=EARLY))
        [first] = await started(reaching)
        await _response(world.client, first["workflow_id"])
        for action, at in (("opened", EARLY), ("reopened", LATER)):
            assert "unchanged" == (await reaching.send(an_event(action, at=at))).json()["code"]
        await reaching.send(an_event("edited", title="The API returns 503", at=LATEST))
        _, second = await started(reaching, 2)
        await _response(world.client, second["workflow_id"])
    assert first["workflow_id"] != second["workflow_id"]
    assert [] == await _signals(world.client, first["workflow_id"])
    assert 2 == len(await reaching.requests())


@pytest.mark.parametrize("ends", [False, True], ids=["goes on", "ended"])
async def test_a_run_that_was_started_is_found_again(
    world: World, reaching: Hook, tmp_path: Path, ends: bool
) -> None:
    """A request whose start was not recorded is repeated, rejected, and counts as started."""
    await reaching.send(an_event())
    [first] = await started(reaching)
    if ends:
        async with altered_world(world, queue=_queue(tmp_path)):
            await _response(world.client, first["workflow_id"])
    await _forget(reaching.store, first["request_key"])
    [again] = await started(reaching)
    names = ("workflow_id", "run_id", "state")
    assert [first[name] for name in names] == [again[name] for name in names]
    assert (1, 2) == (first["attempts"], again["attempts"])


@asynccontextmanager
async def _temporal(folder: Path, port: int) -> AsyncIterator[EmbeddedServer]:
    options = ServerOptions(port=port, db_filename=folder / "temporal.db")
    async with EmbeddedServer(options) as opened:
        yield opened


@pytest.fixture
def port() -> Iterator[int]:
    """A port that nobody else gets while no server listens on it."""
    with kept_port() as kept:
        yield kept


@pytest.mark.slow
async def test_what_came_without_temporal_is_started_afterwards(
    light_url: str, port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """202 before it was ever there and while it was gone; within 30 s of its return, the runs."""
    monkeypatch.setenv("TEMPORAL_ADDRESS", f"127.0.0.1:{port}")
    async with serving(hook_settings(tmp_path, light_url)) as hook:
        assert 202 == (await hook.send(an_event(number=1))).status_code
        async with _temporal(tmp_path, port):
            await started(hook)
            assert "ok" == (await _server_seen(hook, "ok"))
        assert 202 == (await hook.send(an_event(number=2))).status_code
        await _server_seen(hook, "unreachable")
        async with _temporal(tmp_path, port) as back:
            rows = await started(hook, 2)
            for row in rows:
                described = await back.client.get_workflow_handle(row["workflow_id"]).describe()
                assert row["run_id"] == described.run_id


async def _server_seen(hook: Hook, how: str) -> str:
    async def look() -> str | None:
        told: str = (await hook.get("/readyz")).json()["server"]
        return told if told == how else None

    return await eventually(look)


@asynccontextmanager
async def _command(home: Path, address: str, *place: str) -> AsyncIterator[tuple[Any, str]]:
    """Run `triage serve` as a process of its own, which a place may kill."""
    whole = ("-c", "from triage.cli.main import main; main()")
    environment = clean_environment(
        home, TEMPORAL_ADDRESS=address, TRIAGE_WEBHOOK_SECRET=SECRET, TRIAGE_TASK_QUEUE="nobody"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *(("-c", KILLED, *place) if place else whole),
        *("serve", "--port", "0"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=environment,
        cwd=home,
    )
    try:
        assert process.stdout
        async with asyncio.timeout(START_SECONDS):
            line = (await process.stdout.readline()).decode()
        yield process, line.strip().removeprefix("serving on ")
    finally:
        if process.returncode is None:
            os.kill(process.pid, signal.SIGTERM)
        await process.wait()


@pytest.mark.slow
@pytest.mark.parametrize("place", ["admit.after_commit", "outbox.before_send", "outbox.after_send"])
async def test_a_kill_loses_nothing_and_doubles_nothing(
    world: World, light_url: str, tmp_path: Path, place: str
) -> None:
    """Killed after the row, before the start or after it: restarted, there is one run."""
    address = world.client.service_client.config.target_host
    store = await Store.open(light_url)
    (tmp_path / "triage.db").symlink_to(tmp_path / "hook.db")
    event = an_event()
    async with httpx2.AsyncClient() as client:
        async with _command(tmp_path, address, place) as (process, url):
            hook = Hook(url, client, store)
            # The process may be gone before it can answer.
            answers = await asyncio.gather(hook.send(event), return_exceptions=True)
            assert -signal.SIGKILL == await process.wait()
        [row] = await hook.requests()
        assert ("accepted", place != "outbox.after_send") == (
            row["state"],
            not await _exists(world.client, f"{PREFIX}{row['request_key']}"),
        )
        await _end_lease(store)
        async with _command(tmp_path, address) as (_, url):
            hook = Hook(url, client, store)
            [row] = await started(hook)
            again = await hook.send(event)
    assert row["request_key"] == again.json()["request"]
    assert place == "admit.after_commit" or 202 == getattr(answers[0], "status_code", 202)
    described = await world.client.get_workflow_handle(row["workflow_id"]).describe()
    assert row["run_id"] == described.run_id
    await store.close()


async def _exists(client: Client, workflow_id: str) -> bool:
    try:
        await client.get_workflow_handle(workflow_id).describe()
    except RPCError:
        return False
    return True


async def _end_lease(store: Store) -> None:
    """Let the dead process's lease be over, which otherwise takes some seconds."""
    async with store.write() as connection:
        await connection.execute(update(requests).values(next_attempt_at=None))
