"""Any text and any instant come back exactly as they were stored."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import insert, select
from sqlalchemy.dialects import sqlite

from triage.storage.columns import UtcDateTime, escape_text, unescape_text
from triage.storage.engine import Store
from triage.storage.schema import audit_heads

ANY_TEXT = st.text(st.characters() | st.sampled_from("\x00\\u0\ud800\udfff"))


@given(ANY_TEXT)
def test_escaping_is_reversible(text: str) -> None:
    """The stored form gives the text back, and holds nothing that a database refuses."""
    stored = escape_text(text)
    assert text == unescape_text(stored)
    assert "\x00" not in stored
    stored.encode("utf-8")


@given(ANY_TEXT, ANY_TEXT)
def test_different_texts_have_different_forms(one: str, other: str) -> None:
    """The stored form can be compared in place of the text."""
    assert (one == other) is (escape_text(one) == escape_text(other))


@pytest.mark.parametrize(
    "text", ["", "plain", "a\\b", "\\u0000", "\x00", "\ud83d", "😀", "\\\x00\\"]
)
async def test_both_databases_give_text_back(store: Store, text: str) -> None:
    """NUL, lone surrogates, backslashes and the empty text survive both databases."""
    moment = datetime(2030, 1, 1, 23, 59, 59, 999_999, tzinfo=timezone(timedelta(hours=-5)))
    row = {"tenant_key": "k", "tenant": text, "seq": 0, "hash": "", "updated_at": moment}
    async with store.write() as connection:
        await connection.execute(insert(audit_heads).values(row))
    async with store.read() as connection:
        found = (await connection.execute(select(audit_heads))).mappings().one()
    assert (text, moment) == (found["tenant"], found["updated_at"])
    assert timedelta(0) == found["updated_at"].utcoffset()


def test_a_time_without_a_zone_is_refused() -> None:
    """A naive time names no instant, so it is not stored."""
    with pytest.raises(ValueError, match="time zone"):
        UtcDateTime().process_bind_param(datetime(2030, 1, 1), sqlite.dialect())  # noqa: DTZ001 - the point
    aware = datetime(2030, 1, 1, tzinfo=UTC)
    assert datetime(2030, 1, 1) == UtcDateTime().process_bind_param(aware, sqlite.dialect())  # noqa: DTZ001 - SQLite's form
