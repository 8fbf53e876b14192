"""What a tool's specification is made of, and whether every part is of its type and in its bounds.

Why it exists: a tool may come from a module that is not ours, and Python checks no types. A part of
the wrong one would be found by the first run, or would pass for something else: ``"write"`` is no
`Effect.WRITE`. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from triage.contracts.base import MAX_REASON_CHARS

MAX_TIMEOUT_MS: Final = 600_000
MAX_ATTEMPTS: Final = 100
MAX_SECONDS: Final = 86_400
MAX_ARGUMENTS: Final = 32
NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
"""A name of a tool or an argument: no letter that only looks like another, as providers want it."""


class Kind(StrEnum):
    """The type of one tool argument."""

    TEXT = "str"
    TEXT_LIST = "str_list"


class Effect(StrEnum):
    """What running a tool can change."""

    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True)
class RetryRule:
    """How often a transient fault of a tool is tried again, and for how long.

    `backoff_seconds` is the first pause; it doubles with jitter. Writes are never retried by
    this rule: an uncertain write is settled by reading.
    """

    max_attempts: int
    backoff_seconds: float
    max_elapsed_seconds: float


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one call may take, and how often it is tried, where a tracker answers from afar."""

    timeout_ms: int
    retry: RetryRule


def misshapen(spec: Any) -> Iterator[str]:  # noqa: ANN401 - its parts may be anything
    """Yield what is wrong with the parts of a specification."""
    flags = (spec.idempotency, spec.about_issue, spec.local)
    far = () if spec.remote is None else (spec.remote,)
    bounds = (Bounds(spec.timeout_ms, spec.retry), *far)
    checks = (
        (is_name(spec.name), "it needs a name of at most 64 letters, digits and underscores"),
        (
            _is_purpose(spec.purpose),
            f"it needs a purpose, of at most {MAX_REASON_CHARS} characters",
        ),
        (_are_arguments(spec.arguments), "it needs an argument schema: names, each with its Kind"),
        (isinstance(spec.effect, Effect), "its effect is no Effect"),
        (callable(spec.normalise), "its normaliser cannot be called"),
        (all(type(flag) is bool for flag in flags), "a part of it must be True or False"),
        (all(map(_are_bounds, bounds)), _NO_BOUNDS),
    )
    return (problem for is_right, problem in checks if not is_right)


_NO_BOUNDS: Final = (
    f"it needs a timeout and a retry rule: 1 to {MAX_TIMEOUT_MS:,} whole milliseconds,"
    f" 1 to {MAX_ATTEMPTS} attempts, at most {MAX_SECONDS:,} seconds"
)


def is_name(value: object) -> bool:
    """Return whether a tool or an argument can be called so."""
    return isinstance(value, str) and NAME.fullmatch(value) is not None


def _is_purpose(value: object) -> bool:
    if not isinstance(value, str) or not 0 < len(value.strip()) <= len(value) <= MAX_REASON_CHARS:
        return False
    # Half a character cannot be told to anybody.
    return not any("\ud800" <= char <= "\udfff" for char in value)


def _are_arguments(value: object) -> bool:
    return (
        isinstance(value, Mapping)
        and 0 < len(value) <= MAX_ARGUMENTS
        and all(is_name(name) and isinstance(kind, Kind) for name, kind in value.items())
    )


def _are_bounds(value: object) -> bool:
    if not isinstance(value, Bounds) or not isinstance(value.retry, RetryRule):
        return False
    rule = value.retry
    return (
        _is_whole(value.timeout_ms, MAX_TIMEOUT_MS)
        and _is_whole(rule.max_attempts, MAX_ATTEMPTS)
        and _is_seconds(rule.backoff_seconds)
        and _is_seconds(rule.max_elapsed_seconds)
    )


def _is_whole(value: object, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most


def _is_seconds(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 <= value <= MAX_SECONDS
