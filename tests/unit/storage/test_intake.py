"""Where looks stop, and what is removed of deliveries: never what says which text is the newest."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import select

from triage.contracts.approval import Verdict
from triage.storage.admission import Admission, Content, Delivery, Meaning, Subject
from triage.storage.commands import Command, Commands
from triage.storage.cursors import Cursor
from triage.storage.engine import Store
from triage.storage.intake_retention import purge_intake
from triage.storage.outbox import Outbox
from triage.storage.schema import deliveries, requests
from triage.storage.under_way import UnderWay, under_way

EARLY = datetime(2026, 1, 1, tzinfo=UTC)
SUBJECT = Subject(
    tenant="default", source="github", repository="acme/shop", repository_id="1", number="101"
)


async def _admit(store: Store, text: str, at: datetime) -> Meaning:
    delivery = Delivery(delivery_id=text, event="issues", action="edited", body_digest=text)
    content = Content(digest=text, at=at, document=text.encode())
    return (await Admission(store, timedelta(days=1)).admit(delivery, SUBJECT, content)).meaning


async def _start(store: Store, name: str) -> None:
    held = await Outbox(store).take()
    assert held is not None
    assert await Outbox(store).started(held, name, None)


async def _rows(store: Store, table: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - a table
    async with store.read() as connection:
        return [dict(row) for row in (await connection.execute(select(table))).mappings()]


async def test_a_second_hook_of_an_event_that_is_no_news_is_ignored_too(store: Store) -> None:
    """It shares the delivery's id and not its body, and is told why, not that it is refused."""
    await _admit(store, "newest", EARLY + timedelta(hours=1))
    for text, hours, meaning in (("older", 0, Meaning.STALE), ("newest", 2, Meaning.UNCHANGED)):
        content = Content(digest=text, at=EARLY + timedelta(hours=hours), document=text.encode())
        told = [
            await Admission(store, timedelta(days=1)).admit(
                Delivery(delivery_id=meaning, event="issues", action="edited", body_digest=body),
                SUBJECT,
                content,
            )
            for body in ("one", "other")
        ]
        assert [meaning] * 2 == [answer.meaning for answer in told]


async def test_a_cursor_only_moves_forward(store: Store) -> None:
    """Two processes that look at once lose nothing: the one that is behind moves nothing back."""
    cursor = Cursor(store, tenant="default", source="github", repository="acme/shop")
    assert EARLY == await cursor.position(EARLY)
    await cursor.advance(EARLY + timedelta(hours=2))
    await cursor.advance(EARLY + timedelta(hours=1))
    assert EARLY + timedelta(hours=2) == await cursor.position()
    other = Cursor(store, tenant="default", source="github", repository="acme/other")
    assert timedelta(minutes=1) > datetime.now(UTC) - await other.position()


async def test_no_cursor_is_ahead_of_the_clock(store: Store) -> None:
    """A place in the future is not taken, and one that was kept before is moved back to now."""
    cursor = Cursor(store, tenant="default", source="github", repository="acme/shop")
    future = datetime(2099, 1, 1, tzinfo=UTC)
    for _ in range(2):
        assert timedelta(minutes=1) > abs(await cursor.position(future) - datetime.now(UTC))
        await cursor.advance(future)


async def test_what_is_old_goes_and_what_is_newest_stays(store: Store) -> None:
    """Deliveries go and overtaken texts go; the newest started text, and later ones, never do."""
    assert Meaning.ACCEPTED is await _admit(store, "one", EARLY)
    await _start(store, "run-1")
    assert Meaning.ACCEPTED is await _admit(store, "two", EARLY + timedelta(hours=1))
    await _start(store, "run-2")
    assert Meaning.ACCEPTED is await _admit(store, "three", EARLY + timedelta(hours=2))
    assert 0 == await purge_intake(store, datetime.now(UTC) - timedelta(hours=1))
    later = datetime.now(UTC) + timedelta(hours=1)
    assert 2 == await purge_intake(store, later, limit=1)
    assert 2 == await purge_intake(store, later)
    assert [] == await _rows(store, deliveries)
    left = {row["workflow_id"]: row["state"] for row in await _rows(store, requests)}
    assert {"run-2": "started", None: "accepted"} == left
    # What was said before is still no news, and an old recording still stale.
    assert Meaning.UNCHANGED is await _admit(store, "three", EARLY + timedelta(hours=2))
    assert Meaning.STALE is await _admit(store, "one", EARLY)


async def test_no_answer_is_always_in_front(store: Store) -> None:
    """One whose run does not answer comes, when it is due again, after those that have waited."""
    answers = Commands(store)
    for name in ("first", "second"):
        delivery = Delivery(delivery_id=name, event="issue_comment", action="x", body_digest=name)
        said = Command(
            comment_id=name,
            person_id="1",
            login=name,
            operation_id="op-6",
            version=6,
            verdict=Verdict.APPROVE,
            said_at=EARLY,
        )
        await answers.admit(delivery, SUBJECT, said)
    held = await answers.take()
    assert held is not None
    await answers.later(held, "no_answer", 0)
    taken = [await answers.take(), await answers.take()]
    assert ["second", "first"] == [one.login for one in taken if one]


async def test_the_run_of_an_issue_is_found_under_either_name(store: Store) -> None:
    """By the repository's own id after a rename, by its name in any letters, and no other's."""
    await _admit(store, "one", EARLY)
    assert UnderWay(None, is_starting=True) == await under_way(store, SUBJECT)
    await _start(store, "run-1")
    renamed = replace(SUBJECT, repository="acme/store")
    local = replace(SUBJECT, repository="Acme/Shop", repository_id="")
    for same in (SUBJECT, renamed, local):
        assert UnderWay("run-1") == await under_way(store, same)
    for other in (
        replace(renamed, repository_id="2"),
        replace(SUBJECT, number="102"),
        replace(local, tenant="other"),
    ):
        assert UnderWay() == await under_way(store, other)


async def test_a_repository_made_anew_hides_no_run_behind_its_old_one(store: Store) -> None:
    """By its own id an issue has its own run, however many texts one of that name had before."""
    for hours in (1, 2):
        await _admit(store, f"old-{hours}", EARLY + timedelta(hours=hours))
        await _start(store, "run-of-the-old-one")
    anew = replace(SUBJECT, repository_id="2")
    assert UnderWay("run-of-the-old-one") == await under_way(store, anew)
    delivery = Delivery(delivery_id="new", event="issues", action="opened", body_digest="new")
    content = Content(digest="new", at=EARLY, document=b"new")
    await Admission(store, timedelta(days=1)).admit(delivery, anew, content)
    await _start(store, "run-of-the-new-one")
    assert UnderWay("run-of-the-new-one") == await under_way(store, anew)
    assert UnderWay("run-of-the-old-one") == await under_way(store, SUBJECT)
