"""Taking this machine out of a history: no path, host, process or build of it is kept.

What is left is what `temporal workflow show --output json` prints, as one line an event.
"""

from __future__ import annotations

import json
import re
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pydantic import JsonValue
from temporalio.client import WorkflowHistory

from tests.replay.stage import IDENTITY

ROOT: Final = Path(__file__).parents[2]
BUILD: Final = "recorded"
_FOLDERS: Final = (
    *(sysconfig.get_path(name) for name in ("purelib", "platlib", "stdlib")),
    str(ROOT),
)
_IN_FOLDERS: Final = re.compile("(?:" + "|".join(re.escape(f) for f in _FOLDERS) + ")/")
_ABSOLUTE_PATH: Final = re.compile(r'(?:^|[\s"\'(=])(/[\w.-]+/[^\s"\']*)')


def without_traces(history: WorkflowHistory) -> str:
    """Return a history as text in which nothing tells where it was recorded."""
    events = [_cleaned(event) for event in json.loads(history.to_json())["events"]]
    lines = ",\n".join(json.dumps(event, sort_keys=True) for event in events)
    return f'{{"events":[\n{lines}\n]}}\n'


def traces(value: JsonValue, name: str = "") -> Iterator[str]:
    """Find what still tells: identities other than the recorder's, builds and absolute paths."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from traces(item, key)
    elif isinstance(value, list):
        for item in value:
            yield from traces(item)
    elif isinstance(value, str):
        if name in _EXPECTED and value != _EXPECTED[name]:
            yield f"{name}: {value}"
        yield from _ABSOLUTE_PATH.findall(value)


_EXPECTED: Final = {"identity": IDENTITY, "buildId": BUILD}


def _cleaned(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    match value:
        case dict():
            return {name: _cleaned_field(name, item) for name, item in value.items()}
        case list():
            return [_cleaned(item) for item in value]
        case _:
            return value


def _cleaned_field(name: str, value: Any) -> Any:  # noqa: ANN401 - any JSON value
    match name:
        case "buildId":
            return BUILD
        case "stackTrace":
            return _IN_FOLDERS.sub("", value)
        case _:
            return _cleaned(value)
