"""What a comment says: only a plain line of its own, by a person, in a comment just made."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from tests.web.hooks import FIXTURES, encoded
from triage.contracts.approval import Verdict
from triage.web.comments import (
    MAX_COMMENT_CHARS,
    Order,
    is_by_machine,
    order_in,
    parse_comment_event,
)

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
        f"Looks right to me.\n\n{LINE}\n\nThanks!",
        f"{LINE}\r\n",
        "/triage \t approve  op-6\tv6",
        f"{LINE}\n\n```\n/triage reject op-6 v6\n```",
        f"> /triage reject op-6 v6\n\n{LINE}",
    ],
)
def test_a_line_of_its_own_is_an_order(text: str) -> None:
    """Beside other paragraphs, code and quotes, one plain line counts."""
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
        f"{LINE}\n\n" + "x" * MAX_COMMENT_CHARS,
    ],
)
def test_anything_else_is_none(text: str) -> None:
    """Not in code, quotes, lists, tables or HTML, not hidden, not twice, and not nearly."""
    assert order_in(text) is None


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
