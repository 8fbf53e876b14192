"""A read tool of an extension: it gets copies, and what it says of itself is held to bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

import pytest
from pydantic import JsonValue

from activities.foreign_reads import held
from activities.raw_reads import RawRead, TransientReadError
from triage.contracts.base import MAX_PATH_CHARS
from triage.policy.rules import BUILTIN_RULES, Rules
from triage.policy.tools import ToolResultError

SECRET: Final = "ghp_" + "a1B2" * 9
VALUE: Final[JsonValue] = {"a": 1}


def saying(found: object) -> Any:  # noqa: ANN401 - a handler of somebody else's
    """Return a handler that returns this, or raises it."""

    async def handler(_arguments: Mapping[str, JsonValue], _rules: Rules) -> object:
        if isinstance(found, Exception):
            raise found
        return found

    return handler


async def test_a_slip_of_a_handler_changes_nothing_for_others() -> None:
    """Neither the arguments that are put on record nor the rules that other runs are held to."""
    arguments: dict[str, JsonValue] = {"paths": ["a", "b"]}
    digest = BUILTIN_RULES.digest()

    async def handler(mine: Any, rules: Rules) -> RawRead:  # noqa: ANN401 - as it comes
        mine.pop("paths").clear()
        rules.owners.clear()
        rules.labels.clear()
        return RawRead(VALUE, "here", "here@1")

    await held(handler)(arguments, BUILTIN_RULES)
    assert ({"paths": ["a", "b"]}, digest) == (arguments, BUILTIN_RULES.digest())


async def test_a_place_is_one_line_without_secrets() -> None:
    """Source and locator go into the history, where a credential in an address would stay."""
    read = RawRead(VALUE, f"db {SECRET}", f"https://u:{SECRET}@host/a\n\x1b[2Jb")
    found = await held(saying(read))({}, BUILTIN_RULES)
    assert (VALUE, "db [redacted:github_pat_classic]") == (found.value, found.source)
    assert SECRET not in found.locator
    assert found.locator.endswith("/a  [2Jb")


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(None, id="nothing"),
        pytest.param({"value": 1, "source": "s", "locator": "l"}, id="no read"),
        pytest.param(RawRead(VALUE, cast("str", None), "l"), id="no source"),
        pytest.param(RawRead(VALUE, "s", ""), id="no locator"),
        pytest.param(RawRead(VALUE, "s", "l" * (MAX_PATH_CHARS + 1)), id="a long locator"),
    ],
)
async def test_a_read_that_does_not_say_where_is_none(found: object) -> None:
    """What cannot stand in a history is refused before anything is stored."""
    with pytest.raises(ToolResultError, match="a source and a locator"):
        await held(saying(found))({}, BUILTIN_RULES)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [(3, 3), (None, None), (-1e9, None), (float("nan"), None), (1e999, None), ("soon", None)],
)
async def test_a_pause_that_is_none_is_passed_over(asked: Any, expected: float | None) -> None:  # noqa: ANN401 - of any type
    """The read may still pass; nobody waits for a time that is no time."""
    with pytest.raises(TransientReadError) as told:
        await held(saying(TransientReadError(asked)))({}, BUILTIN_RULES)
    assert expected == told.value.retry_after_seconds
