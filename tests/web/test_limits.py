"""What cannot be taken is refused in words, at once, and nothing of it is kept."""

from __future__ import annotations

import asyncio
import contextlib
import json
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest

from tests.cli.conftest import NOWHERE
from tests.clock import PATIENCE_SECONDS
from tests.web.hooks import Hook, an_event, encoded, hook_settings, serving, signature
from triage.web.app import MAX_BODY_BYTES, make_app
from triage.web.flood import MAX_BUCKETS, Flood

HUGE: Final = 25 * 1024 * 1024


async def _connection(hook: Hook) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    address = urlsplit(hook.url)
    return await asyncio.open_connection(address.hostname, address.port)


async def test_a_body_that_is_announced_too_large_is_not_read(light_hook: Hook) -> None:
    """413 comes before the first byte of 25 MB was sent, and the connection is closed."""
    reader, writer = await _connection(light_hook)
    writer.write(b"POST /webhooks/github HTTP/1.1\r\nHost: x\r\n")
    writer.write(f"Content-Length: {HUGE}\r\n\r\n".encode())
    assert (await reader.readline()).startswith(b"HTTP/1.1 413")
    assert b'"code":"size"' in await reader.read()
    writer.close()


async def test_a_body_that_grows_too_large_is_cut(
    light_hook: Hook, caplog: pytest.LogCaptureFixture
) -> None:
    """One that is sent in pieces is read up to the limit, and no further."""
    caplog.set_level("INFO")
    _, writer = await _connection(light_hook)
    writer.write(b"POST /webhooks/github HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
    sent = 0
    # Whoever goes on writing may find the connection reset, and never see the answer.
    with contextlib.suppress(ConnectionError):
        while sent < HUGE:
            writer.write(b"10000\r\n" + b"x" * 65_536 + b"\r\n")
            await writer.drain()
            sent += 65_536
    assert MAX_BODY_BYTES <= sent < HUGE
    assert [413] == [
        vars(record)["status"] for record in caplog.records if "status" in vars(record)
    ]


async def test_a_body_that_does_not_arrive_is_given_up(
    light_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever sends a letter and no more is told so; others are served meanwhile."""
    monkeypatch.setenv("TEMPORAL_ADDRESS", NOWHERE)
    monkeypatch.setattr("triage.web.serving.make_app", partial(make_app, body_seconds=1.0))
    async with serving(hook_settings(tmp_path, light_url)) as hook:
        reader, writer = await _connection(hook)
        head = b"POST /webhooks/github HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n"
        writer.write(head + b"x")
        assert 202 == (await hook.send(an_event())).status_code
        assert (await reader.readline()).startswith(b"HTTP/1.1 408")
        writer.close()


async def test_strangers_fill_no_memory(light_hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    """Past what all bodies together may have, 503 and when to come again; then there is room."""
    body = encoded(an_event())
    monkeypatch.setattr("triage.web.app.MAX_HELD_BYTES", len(body))
    for _ in range(2):
        answer = await light_hook.post(body + b" ")
        assert (503, "crowded") == (answer.status_code, answer.json()["code"])
        assert int(answer.headers["Retry-After"]) > 0
    assert 202 == (await light_hook.post(body)).status_code
    _, writer = await _connection(light_hook)
    writer.write(b"POST /webhooks/github HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nx")
    await writer.drain()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (await light_hook.post(body)).status_code == 202:
            pass
        writer.close()
        while (await light_hook.post(body)).status_code == 503:
            pass


NO_DELIVERIES: Final = (
    b"",
    b"[]",
    b'"text"',
    b"\xff\xfe{}",
    b'{"action": "opened", "action": "opened"}',
    json.dumps({**an_event(), "x": float("nan")}).encode(),
    encoded({**an_event(), "x": "X"}).replace(b'"X"', b"1e999"),
    encoded({**an_event(), "x": 2**63}),
    encoded({**an_event(), "x": [{"y": -(2**64)}]}),
    b'{"action": "opened", "x": ' + b"9" * 5_000 + b"}",
    b'{"x":' * 60 + b"1" + b"}" * 60,
    b"[" * 1_000_000,
    b'{"action": "opened"}',
    encoded(an_event(updated_at="yesterday")),
    encoded(an_event(updated_at="2026-01-01T00:00:00")),
    encoded(an_event(number=True)),
    encoded(an_event(number=0)),
    encoded(an_event()).replace(b'"Orders fail"', b"null"),
    encoded({**an_event(), "repository": {"id": 1, "full_name": "acme/../shop"}}),
    encoded({**an_event(), "sender": None}),
)


async def test_what_is_not_a_delivery_is_refused(
    light_hook: Hook, subtests: pytest.Subtests
) -> None:
    """400 with one word, whatever is wrong; none of it comes back, and nothing is kept."""
    expected = (400, {"outcome": "refused", "code": "payload", "request": None})
    for body in NO_DELIVERIES:
        with subtests.test(ascii(body[:50])):
            answer = await light_hook.post(body)
            assert expected == (answer.status_code, answer.json())
    assert [] == await light_hook.deliveries()


STRANGE_HEADERS: Final[tuple[tuple[dict[str, str | None], int, str], ...]] = (
    ({"X_GitHub_Delivery": None}, 400, "delivery_id"),
    ({"X_GitHub_Delivery": "a b"}, 400, "delivery_id"),
    ({"X_GitHub_Delivery": "a" * 65}, 400, "delivery_id"),
    ({"Content_Type": "application/x-www-form-urlencoded"}, 415, "content_type"),
    ({"Content_Type": None}, 415, "content_type"),
)


async def test_headers_have_a_form(light_hook: Hook) -> None:
    """A delivery names itself, and comes as JSON."""
    for headers, status, code in STRANGE_HEADERS:
        answer = await light_hook.send(an_event(), **headers)
        assert (status, code) == (answer.status_code, answer.json()["code"]), headers


async def test_other_ways_in_do_not_exist(light_hook: Hook) -> None:
    """There are three pages, each with one method; nothing says what serves them."""
    answers = [await light_hook.get(path) for path in ("/webhooks/github", "/", "/docs")]
    assert [405, 404, 404] == [answer.status_code for answer in answers]
    assert all("server" not in answer.headers for answer in answers)


async def test_a_flood_of_one_repository_hurts_no_other(
    light_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Past its rate a repository gets 429 and when to come again; another is served."""
    monkeypatch.setenv("TEMPORAL_ADDRESS", NOWHERE)
    # A bucket fills again with time, which a slow machine has a lot of.
    monkeypatch.setattr("triage.web.serving.Flood", partial(Flood, clock=lambda: 0.0))
    async with serving(hook_settings(tmp_path, light_url, webhook_rate_per_minute=3)) as hook:
        flood = [await hook.send(an_event(number=number)) for number in range(1, 11)]
        other = await hook.send(an_event(repository="acme/other"))
        assert [202] * 3 + [429] * 7 == [answer.status_code for answer in flood]
        assert all(1 <= int(answer.headers["Retry-After"]) <= 60 for answer in flood[3:])
        assert 202 == other.status_code
        assert 4 == len(await hook.deliveries())


def test_a_flood_ends_and_is_counted_in_bounded_space() -> None:
    """A bucket fills again with time, and a million senders need no more room than some."""
    now = 0.0
    flood = Flood(2, lambda: now)
    assert [0, 0, 30] == [flood.wait_for("a") for _ in range(3)]
    now = 30.0
    assert [0, 30] == [flood.wait_for("a") for _ in range(2)]
    for number in range(MAX_BUCKETS + 10):
        flood.wait_for(number)
    assert MAX_BUCKETS == len(flood._buckets)


def test_a_first_minute_takes_up_to_twice_as_many_and_a_later_one_does_not() -> None:
    """A repository's store is full at first, and fills evenly: what stands in the page."""
    now = 0.0
    flood = Flood(120, lambda: now)
    taken = [0, 0]
    for minute in range(2):
        for tick in range(240):
            now = minute * 60 + tick / 4
            taken[minute] += sum(not flood.wait_for("a") for _ in range(121))
    assert [239, 120] == taken


async def test_nothing_that_was_sent_is_logged(
    light_hook: Hook, caplog: pytest.LogCaptureFixture
) -> None:
    """The log says what was answered, and holds no word of a delivery, good or bad."""
    caplog.set_level("DEBUG")
    word = "canary-7f3a"
    await light_hook.send(an_event(title=word, body=word), X_GitHub_Delivery=word)
    await light_hook.post(f'{{"{word}": '.encode())
    await light_hook.post(word.encode(), X_Hub_Signature_256=signature(b"", word))
    ours = [record for record in caplog.records if record.name.startswith("triage.web")]
    assert ["answered a delivery"] * 3 == [
        record.getMessage() for record in ours if record.name.endswith("app")
    ]
    assert word not in json.dumps([vars(record) for record in ours], default=str)


async def test_no_answer_names_another_address(light_hook: Hook) -> None:
    """A path with a slash at its end is another one: nothing redirects to the host asked for."""
    answer = await light_hook.client.post(
        f"{light_hook.url}/webhooks/github/", headers={"Host": "evil.example"}
    )
    assert (404, None) == (answer.status_code, answer.headers.get("location"))
