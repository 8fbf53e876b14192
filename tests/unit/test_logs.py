"""What a log line may hold, and what it never does."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from temporalio import activity
from temporalio.testing import ActivityEnvironment

from triage import logs

SECRET = "sk-never-shown"


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """Where the log goes; the loggers are put back afterwards."""
    root = logging.getLogger()
    level, written = root.level, io.StringIO()
    logs.configure("info", stream=written)
    yield written
    for handler in [h for h in root.handlers if isinstance(h.formatter, logs._Formatter)]:
        root.removeHandler(handler)
    root.setLevel(level)


def _lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_structlog_fields(stream: io.StringIO) -> None:
    """A structlog event is one JSON line with its known fields; others are left out."""
    logs.get_logger("triage.embedded").info("server started", port=7233, body=SECRET)
    [line] = _lines(stream)
    assert line.pop("time").endswith("+00:00")
    assert line == {
        "level": "info",
        "logger": "triage.embedded",
        "event": "server started",
        "port": 7233,
    }


def test_what_is_odd_at_the_start_is_one_warning(stream: io.StringIO) -> None:
    """All of it stands in one line, and nothing is written where nothing is odd."""
    logs.tell_once("worker", ())
    logs.tell_once("worker", ("TRIAGE_X is no setting", "TRIAGE_Y is no setting"))
    [line] = _lines(stream)
    told = "TRIAGE_X is no setting; TRIAGE_Y is no setting"
    assert ("warning", told) == (line["level"], line["event"])


def test_stdlib_fields(stream: io.StringIO) -> None:
    """A standard library record of ours is formatted, and its `extra` held to the same fields."""
    logging.getLogger("triage.web").warning("step %d", 3, extra={"tool": "read", "body": SECRET})
    [line] = _lines(stream)
    assert (line["event"], line["tool"]) == ("step 3", "read")
    assert SECRET not in stream.getvalue()


@pytest.mark.parametrize(
    "sign",
    ["\n", "\r", "\x1b[31m", "\x00", "\u202e", "\u2066", "\u200b", "\u2028", "\u2029", "\x9b"],
)
@pytest.mark.parametrize("console", [False, True])
def test_nothing_moves_the_cursor(console: bool, sign: str) -> None:
    """Control, direction and line signs are escaped in events and values, in both forms."""
    written = io.StringIO()
    logs.configure("info", console=console, stream=written)
    logs.get_logger("triage.x").info(f"a{sign}b", tool=f"c{sign}d")
    text = written.getvalue()
    assert text.removesuffix("\n").isprintable()
    escaped = f"\\u{{{ord(sign[0]):x}}}"
    assert escaped in (text if console else json.loads(text)["tool"])


def test_exceptions_keep_type_and_place(stream: io.StringIO) -> None:
    """Of an exception the log has its type and where it was raised, never its text."""
    try:
        raise ValueError(SECRET)
    except ValueError:
        logs.get_logger("triage.x").exception("it failed")
        logging.getLogger("triage.y").exception("it failed")
        logging.getLogger("foreign").exception("it failed")
    assert [line["error"] for line in _lines(stream)] == ["ValueError"] * 3
    assert all(line["error_at"].startswith("test_logs.py:") for line in _lines(stream))
    assert SECRET not in stream.getvalue()


def test_foreign_messages_lose_their_arguments(stream: io.StringIO) -> None:
    """Of a library's message only the first line of its template is kept, from warning on."""
    logging.getLogger("sqlalchemy.engine").info(SECRET)
    logging.getLogger("sqlalchemy.engine").warning("bad row %s", SECRET)
    message = f"Task exception was never retrieved\n{SECRET}"
    logging.getLogger("asyncio").error(message)
    assert [line["event"] for line in _lines(stream)] == [
        "bad row %s",
        "Task exception was never retrieved",
    ]


def test_long_text_is_cut(stream: io.StringIO) -> None:
    """No event and no value grows without bound; what is no plain value shows as its type."""
    logs.get_logger("triage.x").info("e" * 9_000, tool="t" * 9_000, state={SECRET: 1})
    [line] = _lines(stream)
    assert (len(line["event"]), len(line["tool"]), line["state"]) == (500, 200, "dict")


def test_level_comes_from_the_settings() -> None:
    """Records below the level are not written."""
    written = io.StringIO()
    logs.configure("error", stream=written)
    logs.get_logger("triage.x").warning("too low")
    logging.getLogger("triage.x").warning("too low")
    logs.get_logger("triage.x").error("high enough")
    assert [line["event"] for line in _lines(written)] == ["high enough"]


def test_record_that_cannot_be_formatted() -> None:
    """A record with wrong arguments is written as it is."""
    record = logging.LogRecord("triage.x", logging.INFO, "x.py", 1, "step %d", ("three",), None)
    assert json.loads(logs._Formatter(console=False).format(record))["event"] == "step %d"


def test_console_form() -> None:
    """The form for people has time, level, event and fields on one line."""
    written = io.StringIO()
    logs.configure("info", console=True, stream=written)
    logs.get_logger("triage.x").info("server started", port=7233)
    assert written.getvalue()[8:] == " info    server started  port=7233\n"


async def test_activity_logger_names_its_run(stream: io.StringIO) -> None:
    """The SDK's activity logger adds ids as fields, not as text."""

    @activity.defn
    async def work() -> None:
        activity.logger.warning("slow", extra={"tool": "read"})

    await ActivityEnvironment().run(work)
    [line] = _lines(stream)
    assert (line["event"], line["tool"], line["attempt"]) == ("slow", "read", 1)
    assert line["workflow_id"] == "test"
