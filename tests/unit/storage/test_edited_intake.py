"""A row of what comes in that somebody edited by hand holds up nothing of anybody else's."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import text

from tests.conftest_storage import template
from triage.contracts.approval import Verdict
from triage.storage.admission import Admission, Content, Delivery, Subject
from triage.storage.commands import UNREADABLE, Command, Commands
from triage.storage.engine import Store
from triage.storage.outbox import Outbox

AT = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
async def edited(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Store]:
    """A store on SQLite, whose columns take anything."""
    path = tmp_path / "triage.db"
    shutil.copyfile(await template(tmp_path_factory), path)
    store = await Store.open(f"sqlite:///{path}")
    yield store
    await store.close()


def _subject(number: str) -> Subject:
    return Subject(
        tenant="default",
        source="github",
        repository="acme/shop",
        repository_id="1",
        number=number,
    )


def _delivery(name: str) -> Delivery:
    return Delivery(delivery_id=name, event="x", action="x", body_digest=name)


async def _edit(store: Store, table: str, values: str) -> None:
    async with store.write() as connection:
        await connection.execute(text(f"UPDATE {table} SET {values}"))  # noqa: S608 - of this file


@pytest.mark.parametrize("values", ["content_at = 'x'", "attempts = 'x'", "updated_at = 5"])
async def test_a_request_is_taken_whatever_stands_before_it(edited: Store, values: str) -> None:
    """The edited one is a request like any other, since nothing of what was edited is needed."""
    admission, keys = Admission(edited, timedelta(days=1)), set[str | None]()
    for number in ("1", "2"):
        content = Content(digest=number, at=AT, document=number.encode())
        answer = await admission.admit(_delivery(number), _subject(number), content)
        keys.add(answer.request_key)
        if number == "1":
            await _edit(edited, "requests", values)
    taken = [await Outbox(edited).take() for _ in range(3)]
    assert keys == {held.request_key for held in taken if held}
    assert taken[2] is None


@pytest.mark.parametrize("values", ["said_at = 'x'", "attempts = 'x'", "person_id = x'ff'"])
async def test_an_answer_is_taken_whatever_stands_before_it(edited: Store, values: str) -> None:
    """The edited one counts for nothing, and says why."""
    answers = Commands(edited)
    for name in ("edited", "good"):
        said = Command(
            comment_id=name,
            person_id="1",
            login=name,
            operation_id="op-6",
            version=6,
            verdict=Verdict.APPROVE,
            said_at=AT,
        )
        await answers.admit(_delivery(name), _subject("1"), said)
        if name == "edited":
            await _edit(edited, "commands", values)
    taken = [await answers.take() for _ in range(2)]
    assert ["good"] == [held.login for held in taken if held]
    assert {f"refused/{UNREADABLE}": 1, "waiting": 1} == await answers.counts()
