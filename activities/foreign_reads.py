"""Read tools of extensions, held to what ours do by themselves.

Why it exists: a handler of somebody else's runs in this process. What it gets is its own, so that a
slip of it changes no rules for other runs and no arguments on record; and what it says of where it
read goes into histories that outlive access rules, as what it read does.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from copy import deepcopy
from functools import wraps
from typing import Any, Final

from pydantic import JsonValue

from activities.raw_reads import RawRead, ReadHandler, TransientReadError
from triage.contracts.base import MAX_PATH_CHARS
from triage.policy.redaction import redact
from triage.policy.rules import Rules
from triage.policy.tools import ToolResultError

_PLACES: Final = "a read says where it found what it returns: a source and a locator"


def held(handler: Callable[..., Awaitable[Any]]) -> ReadHandler:
    """Return a handler of an extension as one of ours.

    It gets copies. A source or locator that is no text, or longer than a path may be, is a
    `ToolResultError`; it becomes one line without secrets. A pause that is none is passed over.
    """

    @wraps(handler)
    async def read(arguments: Mapping[str, JsonValue], rules: Rules) -> RawRead:
        try:
            found: object = await handler(deepcopy(dict(arguments)), _own(rules))
        except TransientReadError as error:
            raise TransientReadError(_pause(error.retry_after_seconds)) from None
        if not isinstance(found, RawRead):
            raise ToolResultError(_PLACES)
        return RawRead(found.value, _place(found.source), _place(found.locator))

    return read


def _own(rules: Rules) -> Rules:
    """Copy what can be changed of rules: they are frozen but for what their mappings hold."""
    return rules.model_copy(
        update={name: dict(part) for name, part in rules if isinstance(part, dict)}
    )


def _place(words: object) -> str:
    if not isinstance(words, str) or not 0 < len(words) <= MAX_PATH_CHARS:
        raise ToolResultError(_PLACES)
    return redact("".join(char if char.isprintable() else " " for char in words))


def _pause(seconds: object) -> float | None:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    return seconds if seconds >= 0 and math.isfinite(seconds) else None
