"""A store that is busy or away for a while costs a read nothing but time."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput

from activities import guard
from activities.guard import FailureGuard
from activities.reads import read_activities
from activities.services import Services
from tests.clock import PATIENCE_SECONDS, ahead
from tests.still_store import HastyStore
from triage.contracts.names import ACTIVITY_LOOKUP_OWNER
from triage.contracts.payloads import EvidenceRef, ReadRequest
from triage.converter import data_converter
from triage.policy.rules import BUILTIN_RULES
from triage.storage.evidence import EvidenceStore

PATIENCE = "activities.store_patience.LOCAL_WAIT_SECONDS"


@pytest.fixture
async def hasty(services: Services) -> AsyncIterator[Services]:
    """Services on the same file, by a store that gives up on a lock after some milliseconds."""
    url = services.store.address.url.render_as_string(hide_password=False)
    store = await HastyStore.open(url, transaction_seconds=0.2)
    yield replace(services, store=store, evidence=EvidenceStore(store))
    await store.close()


class Read(ActivityInboundInterceptor):
    """The owner lookup, as a worker runs it."""

    def __init__(self, services: Services, request: ReadRequest) -> None:
        self._request = request
        names = [spec.name for spec in services.tools if not spec.side_effect]
        self._read = read_activities(services)[names.index(ACTIVITY_LOOKUP_OWNER)]

    async def execute_activity(self, input: ExecuteActivityInput) -> EvidenceRef:  # noqa: A002 - the SDK's name
        """See base class."""
        return await self._read(self._request)


async def _read(
    services: Services,
    *,
    is_local: bool = True,
    attempt: int = 1,
    told: Sequence[object] = (),
    tells: Callable[[int], None] = print,
) -> EvidenceRef:
    request = ReadRequest(
        scope="5c0fe" * 6,
        version=3,
        arguments={"path": "a"},
        policy_digest=await services.pin_rules(BUILTIN_RULES),
        timeout_ms=20_000,
    )
    env = ActivityEnvironment()
    env.info = replace(
        env.info,
        is_local=is_local,
        attempt=attempt,
        heartbeat_details=await data_converter.decode(await data_converter.encode(told)),
        started_time=datetime.now(UTC),
        start_to_close_timeout=None if is_local else timedelta(seconds=1.5),
    )
    env.on_heartbeat = tells
    given = ExecuteActivityInput(fn=_read, args=(), executor=None, headers={})
    guarded = FailureGuard().intercept_activity(Read(services, request))
    found: EvidenceRef = await env.run(guarded.execute_activity, given)
    return found


class Heard(logging.Handler):
    """Sets an event once something is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.waits = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        """See base class."""
        self.waits.set()


@contextmanager
def heard() -> Iterator[asyncio.Event]:
    """Yield what is set once the log says that the store is waited for."""
    handler, logger = Heard(), logging.getLogger("activities.store_patience")
    logger.addHandler(handler)
    try:
        yield handler.waits
    finally:
        logger.removeHandler(handler)


async def test_waiting_for_a_turn_to_write_is_no_try_of_the_tool(services: Services) -> None:
    """A read whose store is busy for longer than an attempt may take is done by the first one."""
    await services.pin_rules(BUILTIN_RULES)
    turn = services.store._turn
    assert isinstance(turn, asyncio.Lock)
    async with services.store.write():
        reading = asyncio.create_task(_read(services))
        while not turn._waiters:  # noqa: ASYNC110 - a lock tells nobody who waits for it
            await asyncio.sleep(0)
        with ahead(guard.LOCAL_SECONDS + 1):
            done, _ = await asyncio.wait({reading}, timeout=0.1)
        assert not done
    assert ("owners-default", 1) == ((await reading).id, (await reading).attempts)


async def test_a_store_that_does_not_answer_is_asked_again(
    services: Services, hasty: Services, tmp_path: Path
) -> None:
    """Another process holds the file until the store gave up: the read is done all the same."""
    await hasty.pin_rules(BUILTIN_RULES)
    with closing(sqlite3.connect(tmp_path / "triage.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        reading = asyncio.create_task(_read(hasty))
        with heard() as waits:
            await asyncio.wait_for(waits.wait(), PATIENCE_SECONDS)
        other.execute("ROLLBACK")
    assert 1 == (await reading).attempts
    assert 1 == len(await services.evidence.load("5c0fe" * 6, 4))


@pytest.mark.parametrize("is_local", [True, False])
async def test_a_store_that_stays_away_ends_the_attempt_in_time(
    hasty: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_local: bool
) -> None:
    """Before anybody else ends it, by a name of ours, with a pause before the next one.

    A remote one says that it was the store, beside what earlier ones said.
    """
    tells: list[int] = []
    monkeypatch.setattr(PATIENCE, 0.5)
    await hasty.pin_rules(BUILTIN_RULES)
    with closing(sqlite3.connect(tmp_path / "triage.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        async with asyncio.timeout(PATIENCE_SECONDS):
            with pytest.raises(ApplicationError) as caught:
                await _read(hasty, is_local=is_local, told=[1], tells=tells.append)
    assert ([] if is_local else [2]) == tells
    assert ("StorageUnavailable", False) == (caught.value.type, caught.value.non_retryable)
    assert timedelta(seconds=5) == caught.value.next_retry_delay


@pytest.mark.parametrize(
    ("attempt", "told", "charged"), [(1, (), 1), (3, (), 3), (4, (2,), 2), (4, ("half done",), 4)]
)
async def test_what_the_store_ended_is_no_try_of_the_tool(
    services: Services, attempt: int, told: Sequence[object], charged: int
) -> None:
    """Of the attempts of a remote read those count that its tool ended, and the last one.

    What a tool of an extension told the server says nothing of that.
    """
    await services.pin_rules(BUILTIN_RULES)
    found = await _read(services, is_local=False, attempt=attempt, told=told)
    assert charged == found.attempts
