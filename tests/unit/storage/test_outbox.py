"""Accepted requests: each held by one process at a time, in the order of their versions."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import select

from triage.storage.admission import Admission, Answer, Content, Delivery, Meaning, Subject
from triage.storage.engine import Store
from triage.storage.outbox import Held, Outbox
from triage.storage.schema import requests

EARLY: Final = datetime(2026, 1, 1, tzinfo=UTC)
SUBJECT: Final = Subject(
    tenant="default", source="github", repository="acme/shop", repository_id="1", number="1"
)


async def _admit(store: Store, version: int, subject: Subject = SUBJECT) -> Answer:
    """Let a text arrive that is newer than the one before it."""
    name = f"{subject.number}-{version}"
    delivery = Delivery(delivery_id=name, event="issues", action="edited", body_digest=name)
    at = EARLY + timedelta(seconds=version)
    content = Content(digest=name, at=at, document=name.encode())
    return await Admission(store, timedelta(days=1)).admit(delivery, subject, content)


async def _rows(store: Store) -> list[dict[str, Any]]:
    async with store.read() as connection:
        found = await connection.execute(select(requests).order_by(requests.c.version))
        return [dict(row) for row in found.mappings()]


async def _taken(outbox: Outbox) -> Held:
    held = await outbox.take()
    assert held is not None
    return held


async def test_one_of_many_takers_gets_a_request(store: Store) -> None:
    """Of ten processes that look at the same moment one gets it, and nobody else for the lease."""
    await _admit(store, 1)
    takers = await asyncio.gather(*(Outbox(store).take() for _ in range(10)))
    assert 1 == sum(held is not None for held in takers)
    assert await Outbox(store).take() is None


async def test_a_dead_holder_s_request_is_taken_over(store: Store) -> None:
    """After the lease somebody else may take it, and what the dead one says no longer counts."""
    await _admit(store, 1)
    dead = await _taken(Outbox(store, lease_seconds=0))
    heir = await _taken(Outbox(store))
    assert (1, 2) == (dead.attempts, heir.attempts)
    assert not await Outbox(store).started(dead, "other", None)
    assert await Outbox(store).started(heir, "workflow", "run")
    [row] = await _rows(store)
    assert ("started", "workflow", "run") == (row["state"], row["workflow_id"], row["run_id"])
    assert not await Outbox(store).failed(heir, "late")


async def test_a_request_waits_as_long_as_it_was_told(store: Store) -> None:
    """One that was put off is not due, then due; its reason is kept while it waits."""
    await _admit(store, 1)
    outbox = Outbox(store)
    await outbox.later(await _taken(outbox), "unavailable", 60)
    assert await outbox.take() is None
    assert ["unavailable"] == [row["code"] for row in await _rows(store)]
    ahead = await Store.open(
        store.address.url.render_as_string(hide_password=False),
        clock_offset=timedelta(seconds=61),
    )
    assert await Outbox(ahead).take() is not None
    await ahead.close()


async def test_what_was_tried_is_finished_before_what_is_newer(store: Store) -> None:
    """Of an attempt nobody knows what came of it, so the next version waits and follows it."""
    await _admit(store, 1)
    outbox = Outbox(store)
    first = await _taken(outbox)
    assert Meaning.ACCEPTED is (await _admit(store, 2)).meaning
    assert await outbox.take() is None
    await outbox.started(first, "workflow", "run")
    second = await _taken(outbox)
    assert (None, "workflow") == (first.predecessor, second.predecessor)


async def test_what_was_never_tried_gives_way_to_what_is_newer(store: Store) -> None:
    """A version that nobody touched is superseded, so only the newest text is started."""
    answers = [await _admit(store, version) for version in (1, 2, 3)]
    outbox = Outbox(store)
    assert answers[-1].request_key == (await _taken(outbox)).request_key
    assert await outbox.take() is None
    assert ["superseded", "superseded", "accepted"] == [row["state"] for row in await _rows(store)]


async def test_one_issue_holds_up_no_other(store: Store) -> None:
    """What cannot be started, or is being started, keeps only its own issue waiting."""
    other = Subject(**{**vars(SUBJECT), "number": "2"})
    await _admit(store, 1)
    await _admit(store, 1, other)
    outbox = Outbox(store)
    held = [await _taken(outbox) for _ in range(2)]
    assert 2 == len({one.request_key for one in held})
    assert await outbox.failed(held[0], "content_gone")
    assert {"failed", "accepted"} == {row["state"] for row in await _rows(store)}


async def test_what_fails_again_and_again_starves_nothing(store: Store) -> None:
    """Whoever was put off and is due again comes after what has waited for longer since."""
    await _admit(store, 1)
    outbox = Outbox(store)
    failing = await _taken(outbox)
    other = await _admit(store, 1, Subject(**{**vars(SUBJECT), "number": "2"}))
    await outbox.later(failing, "internal", 0)
    assert other.request_key == (await _taken(outbox)).request_key
    assert failing.request_key == (await _taken(outbox)).request_key


async def test_twenty_edits_at_once_leave_one_line_of_versions(store: Store) -> None:
    """Deliveries of twenty texts at the same moment: one version each, and the newest is last."""
    answers = await asyncio.gather(*(_admit(store, second) for second in range(1, 21)))
    rows = await _rows(store)
    assert [*range(1, len(rows) + 1)] == [row["version"] for row in rows]
    assert EARLY + timedelta(seconds=20) == rows[-1]["content_at"]
    assert [row["content_at"] for row in rows] == sorted(row["content_at"] for row in rows)
    assert ["accepted"] == [row["state"] for row in rows if row["state"] != "superseded"]
    assert {Meaning.ACCEPTED, Meaning.STALE} >= {answer.meaning for answer in answers}
