"""What this system writes to its log: JSON lines of known fields, safe to print anywhere.

Why it exists: logs outlive access rules and are read in terminals. So a field appears only if it
is listed here, text is escaped until nothing in it can move a cursor or reorder a line, and of an
exception only its type and place are kept: its message may hold whatever a stranger sent.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, TextIO, cast

import temporalio.activity
import temporalio.workflow
from temporalio.runtime import (
    LogForwardingConfig,
    LoggingConfig,
    Runtime,
    TelemetryConfig,
    TelemetryFilter,
)


@contextmanager
def _hidden(package: str) -> Iterator[None]:
    """Let what is loaded meanwhile find no such package, unless it is loaded already."""
    modules = cast("dict[str, object]", sys.modules)
    if package in modules:
        yield
        return
    modules[package] = None
    try:
        yield
    finally:
        del modules[package]


# It would load the library for coloured tracebacks, which nobody sees here: 4 MB.
with _hidden("rich"):
    import structlog

FIELDS: Final = (
    "activity_id",
    "activity_type",
    "address",
    "attempt",
    "code",
    "count",
    "digest",
    "duration_ms",
    "epoch",
    "error",
    "error_at",
    "namespace",
    "operation_id",
    "operation_key",
    "outcome",
    "pid",
    "port",
    "roles",
    "run_id",
    "scope",
    "state",
    "status",
    "step",
    "task_queue",
    "tool",
    "update_id",
    "version",
    "waiting",
    "workflow_id",
    "workflow_type",
)
"""The fields that a record may have beside time, level, logger and event: ids, counts and codes."""

MAX_EVENT_CHARS: Final = 500
MAX_VALUE_CHARS: Final = 200
_OURS: Final = ("activities", "triage", "worker", "workflows", "temporalio.activity", "__main__")
_CORE: Final = "temporalio.core"
_SDK_FIELDS: Final = {"workflow_run_id": "run_id"}

Event = MutableMapping[str, Any]
ErrorInfo = tuple[type[BaseException], BaseException, TracebackType | None]


def configure(level: str = "info", *, console: bool = False, stream: TextIO | None = None) -> None:
    """Send every log record of this process to stderr in our form.

    Call it before anything connects to Temporal: the SDK's core otherwise prints by itself, to
    stdout. Calling it again replaces what was set.

    Args:
        level: the least level of our own records, such as ``info``; those of libraries start at
            ``warning``, or at `level` if that is higher.
        console: write lines for people instead of JSON.
        stream: where to write instead of stderr.
    """
    number = logging.getLevelNamesMapping()[level.upper()]
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_Formatter(console=console))
    root = logging.getLogger()
    for old in [h for h in root.handlers if isinstance(h.formatter, _Formatter)]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(max(number, logging.WARNING))
    for name in (*_OURS, "temporalio.workflow"):
        logging.getLogger(name).setLevel(number)
    temporalio.workflow.logger.workflow_info_on_message = False
    temporalio.activity.logger.activity_info_on_message = False
    _configure_structlog()
    _forward_core()


def get_logger(name: str) -> structlog.stdlib.BoundLogger:
    """Return the logger of a module: ``get_logger(__name__).info("server started", port=7233)``."""
    logger: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger(name)
    return logger


def tell_once(name: str, problems: Sequence[str]) -> None:
    """Write one warning of all that is odd where a process begins, if anything is."""
    if problems:
        get_logger(name).warning("; ".join(problems))


def escape(text: str, limit: int = MAX_VALUE_CHARS) -> str:
    r"""Return at most `limit` characters of `text`, with all that cannot be seen as ``\u{...}``."""
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    return "".join(c if c.isprintable() else f"\\u{{{ord(c):x}}}" for c in cut)


class _Formatter(logging.Formatter):
    """Writes a record as one line of allowed fields."""

    def __init__(self, *, console: bool) -> None:
        super().__init__()
        self._console = console

    def format(self, record: logging.LogRecord) -> str:
        event = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": escape(record.name),
            "event": escape(_message(record), MAX_EVENT_CHARS),
        }
        fields = _allowed(_fields(record)) | _error(record.exc_info)
        return _for_people(event, fields) if self._console else json.dumps(event | fields)


def _message(record: logging.LogRecord) -> str:
    """Return our own message whole; of another's only the first line, without its arguments."""
    if isinstance(record.msg, str) and not _is_ours(record.name):
        return next(iter(record.msg.splitlines()), "")
    try:
        return record.getMessage()
    except Exception:  # noqa: BLE001 - a record that cannot be formatted must not end the program
        return str(record.msg)


def _is_ours(name: str) -> bool:
    return name.partition(".")[0] in _OURS or name in _OURS or name == "temporalio.workflow"


def _fields(record: logging.LogRecord) -> dict[str, object]:
    """Collect what structlog, ``extra`` and the SDK's own attributes say about `record`."""
    given = vars(record)
    found: dict[str, object] = {}
    for source in ("temporal_workflow", "temporal_activity"):
        about = given.get(source)
        found |= about if isinstance(about, Mapping) else {}
    core = getattr(given.get("temporal_log"), "fields", None) or {}
    found |= {name: core[name] for name in ("run_id", "workflow_id") if name in core}
    found = {_SDK_FIELDS.get(name, name): value for name, value in found.items()}
    return found | {name: value for name, value in given.items() if name in FIELDS}


def _allowed(found: Mapping[str, object]) -> dict[str, object]:
    return {name: _plain(found[name]) for name in FIELDS if found.get(name) is not None}


def _plain(value: object) -> object:
    match value:
        case bool() | int() | float():
            return value
        case str():
            return escape(value)
        case _:
            return type(value).__name__


def _error(info: ErrorInfo | tuple[None, None, None] | None) -> dict[str, object]:
    """Name an exception's type and the innermost place in our code, never its text."""
    if not info or info[0] is None:
        return {}
    found: dict[str, object] = {"error": escape(info[0].__qualname__)}
    frames = traceback.extract_tb(info[2])
    ours = [f for f in frames if "site-packages" not in f.filename] or frames
    if ours:
        found["error_at"] = escape(f"{Path(ours[-1].filename).name}:{ours[-1].lineno}")
    return found


def _for_people(event: Mapping[str, str], fields: Mapping[str, object]) -> str:
    pairs = "".join(f"  {name}={value}" for name, value in fields.items())
    return f"{event['time'][11:19]} {event['level']:<7} {event['event']}{pairs}"


def _configure_structlog() -> None:
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, _to_record],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )


def _to_record(_logger: object, _method: str, event: Event) -> tuple[tuple[str], dict[str, Any]]:
    """Hand structlog's fields to the formatter as a record's attributes."""
    message = str(event.pop("event", ""))
    info = event.pop("exc_info", None)
    extra = {name: value for name, value in event.items() if name in FIELDS}
    return (message,), {"extra": extra, "exc_info": info}


def _forward_core() -> None:
    """Let the SDK's core log through us, without the fields that hold failures as text."""
    forwarding = LogForwardingConfig(
        logger=logging.getLogger(_CORE),
        append_target_to_name=False,
        prepend_target_on_message=False,
        append_log_fields_to_message=False,
    )
    telemetry = TelemetryConfig(
        logging=LoggingConfig(
            filter=TelemetryFilter(core_level="WARN", other_level="ERROR"), forwarding=forwarding
        )
    )
    Runtime.set_default(Runtime(telemetry=telemetry), error_if_already_set=False)
