"""What a comment says: only a plain line and nothing else, by a person, in one just made."""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import Any, Final

import pytest

from tests.web.hooks import FIXTURES, an_event, encoded
from triage.contracts.approval import Verdict
from triage.web.comments import (
    MAX_COMMENT_CHARS,
    Order,
    is_by_machine,
    order_in,
    parse_comment_event,
)
from triage.web.payload import PayloadError, parse_event

EXAMPLES: Final[list[dict[str, Any]]] = json.loads(
    (FIXTURES / "webhooks" / "issue_comment.json").read_bytes()
)
LINE: Final = "/triage approve op-6 v6"
ORDER: Final = Order(verdict=Verdict.APPROVE, operation_id="op-6", version=6)


@pytest.mark.parametrize(
    "text",
    [
        LINE,
        f"  {LINE}  ",
        f"{LINE}\r\n",
        f"\r\n\n{LINE}\n \n",
        "/triage \t approve  op-6\tv6",
    ],
)
def test_a_line_and_nothing_else_is_an_order(text: str) -> None:
    """White space around it and within it does not matter."""
    assert ORDER == order_in(text)


def test_the_operation_and_its_version_are_taken_to_the_letter() -> None:
    """Nothing is corrected, completed or folded."""
    expected = Order(verdict=Verdict.REJECT, operation_id="Op_1:x/é", version=0)
    assert expected == order_in("/triage reject Op_1:x/é v0")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/triage",
        "/triage approve",
        "/triage approve op-6",
        "/triage approve v6",
        "/triage approve op-6 6",
        "/triage approve op-6 v06",
        "/triage approve op-6 v-6",
        "/triage approve op-6 v6 please",
        "/triage approve op-6 op-7 v6",
        "/triage Approve op-6 v6",
        "/TRIAGE approve op-6 v6",
        "please /triage approve op-6 v6",
        "/triage approve op-6 v\uff19",
        f"@triage {LINE}",
        f"LGTM\n{LINE}",
        f"Looks right to me.\n\n{LINE}",
        f"{LINE}\n\nis what it wants to hear, but no.",
        f"{LINE}\n\n```\n/triage reject op-6 v6\n```",
        f"> /triage reject op-6 v6\n\n{LINE}",
        f"No way.\n\n________________________________\nFrom: stranger\n\n{LINE}\n\n-\nReply",
        f"Never!\n\n-----Original Message-----\nFrom: stranger\n\n{LINE}\n",
        f"No.\n\nOn Monday, stranger wrote:\n\n{LINE}",
        f"No.\n\n-- \n\n{LINE}",
        f"{LINE}\n\n-- \nstranger",
        f"$$\n\n{LINE}\n\n$$",
        f"[x]: /y\n\n{LINE}",
        f"\ufeff{LINE}",
        f"\u00a0\n\n{LINE}",
        f"not this one: \u2028{LINE}",
        f"{LINE}\nLGTM",
        f"{LINE}\n\n/triage approve op-9 v9",
        f"{LINE}\n\n{LINE}",
        f"`{LINE}`",
        f"```\n{LINE}\n```",
        f"~~~\n{LINE}",
        f"    {LINE}",
        f"\t{LINE}",
        f"> {LINE}",
        f"> he said\n{LINE}",
        f"- {LINE}",
        f"1. {LINE}",
        f"# {LINE}",
        f"{LINE}\n===",
        f"**{LINE}**",
        f"_{LINE}_",
        f"[{LINE}](https://example.com)",
        f"[x]: {LINE}",
        f"[^1]: /x\n{LINE}",
        f"[^1]:\n\n{LINE}",
        f"<!-- {LINE} -->",
        f"<!--\n\n{LINE}\n\n-->",
        f"<!--\n\n{LINE}",
        f"<!-- x -->\n\n{LINE}",
        f"<details>\n\n{LINE}\n\n</details>",
        f"<blockquote>\n\n{LINE}\n\n</blockquote>",
        f"<pre>{LINE}</pre>",
        f"<b>{LINE}</b>",
        f"| a |\n|---|\n| {LINE} |",
        f"| a |\n|---|\n{LINE}",
        f"$$\n{LINE}\n$$",
        "/triage&#32;approve op-6 v6",
        "/triage\u200b approve op-6 v6",
        "/triage approve <b>op-6</b> v6",
        "/triage approve *op-6* v6",
        r"/triage approve op\_6 v6",
        "/triage approve op&#95;6 v6",
        f"{LINE}\n\n" + "x" * MAX_COMMENT_CHARS,
    ],
)
def test_anything_else_is_none(text: str) -> None:
    """Not beside other text, in a mail, code, quotes or HTML, not hidden, twice or nearly."""
    assert order_in(text) is None


TIMES: Final = [
    ("2026-01-01T00:00:00Z", True),
    ("2026-01-01T00:00:00.123+14:00", True),
    ("0001-01-01T00:00:00+14:00", False),
    ("9999-12-31T23:59:59Z", False),
    ("2026-01-01T00:00:00+24:00", False),
    ("2026-13-01T00:00:00Z", False),
    ("2026-01-01T00:00:00", False),
    ("2026-01-01", False),
    ("99999999999", False),
    (1_767_225_600, False),
]


@pytest.mark.parametrize(("time", "is_one"), TIMES)
def test_only_a_time_is_taken_for_one(time: object, is_one: bool) -> None:
    """No number, no time without a zone, and none that leaves the calendar in UTC."""
    comment = next(example for example in EXAMPLES if example["action"] == "created")
    comment = {**comment, "comment": {**comment["comment"], "created_at": time}}
    expected = nullcontext() if is_one else pytest.raises(PayloadError)
    with expected:
        parse_comment_event(encoded(comment))
    with expected:
        parse_event(encoded(an_event(updated_at=time)))


def test_recorded_comments_are_read() -> None:
    """GitHub's own examples: only the one that was created says anything."""
    events = [parse_comment_event(encoded(example)) for example in EXAMPLES]
    created = [example["action"] == "created" for example in EXAMPLES]
    assert created == [event is not None for event in events]
    assert 3 <= len(EXAMPLES)
    assert [False] * sum(created) == [is_by_machine(event) for event in events if event]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, False),
        ({"comment": {"performed_via_github_app": {"id": 1}}}, True),
        ({"comment": {"user": None}}, True),
        ({"comment": {"user": {"login": "evil[bot]", "id": 7, "type": "Bot"}}}, True),
        ({"comment": {"user": {"login": "evil[bot]", "id": 7, "type": "User"}}}, True),
        ({"sender": {"login": "other", "id": 8, "type": "User"}}, True),
        ({"sender": {"login": "hook", "id": 7, "type": "Bot"}}, True),
        ({"sender": {"login": "org", "id": 7, "type": "Organization"}}, True),
    ],
)
def test_a_machine_s_word_is_no_person_s(change: dict[str, Any], expected: bool) -> None:
    """Bots, Apps that speak for somebody, and a sender who is not the author count for nobody."""
    [example, *_] = [x for x in EXAMPLES if x["action"] == "created"]
    person = {"login": "octocat", "id": 7, "type": "User"}
    comment = {**example["comment"], "user": person, **change.get("comment", {})}
    event = {**example, "comment": comment, "sender": change.get("sender", person)}
    parsed = parse_comment_event(encoded(event))
    assert parsed is not None
    assert expected == is_by_machine(parsed)
