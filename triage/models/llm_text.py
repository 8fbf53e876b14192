"""What a model behind an API is shown of an issue and of evidence: bounded, plain and marked.

Why it exists: the text is a stranger's, and it leaves this machine. So hidden parts, control
characters and secrets are taken out first, every part has a bound, and what is sent is one JSON
document in ASCII: nothing in it can end the data, open a turn of a chat template, or hide.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Final
from unicodedata import category

from pydantic import JsonValue

from triage.contracts.canonical import canonical_json, digest_of_bytes
from triage.contracts.names import ACTIVITY_READ_ISSUE
from triage.models.base import ModelRequest, Observation
from triage.models.llm_schema import offered
from triage.models.rules_text import canonical, without_comments
from triage.policy.redaction import redact, redact_value

TITLE_BYTES: Final = 2_000
BODY_BYTES: Final = 16_000
TAIL_BYTES: Final = 4_000
"""Of a longer body, the end is shown as well: logs are pasted in the middle."""

MAX_PATHS: Final = 100
PATH_BYTES: Final = 400
OBSERVED_BYTES: Final = 32_000
"""Of all evidence; the latest comes first, and what does not fit is said to be left out."""

RAW_CHARS: Final = 60_000
"""Of a raw text, from each end: what is looked at at all."""

_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_ESCAPES: Final = str.maketrans({c: f"\\u{ord(c):04x}" for c in "<>[]"})
_SHORT: Final = '"\\\b\t\n\f\r'


def document(request: ModelRequest) -> str:
    """Return the data of a question, in one line of ASCII.

    No string in it holds an angle or square bracket, so none holds a chat template's token.
    """
    value = {
        "issue": _issue(request),
        "observations": _observed(request.observations),
        "routes": list(request.routes),
        "labels": list(request.labels),
        "tools": [
            tool.model_dump(mode="json", exclude={"side_effect"}) for tool in offered(request)
        ],
    }
    text = canonical_json(value).decode("ascii")
    return _STRING.sub(lambda found: found.group().translate(_ESCAPES), text)


def boundary(data: str) -> str:
    """Return a word that `data` does not hold, the same one for the same data."""
    word = digest_of_bytes(data.encode()).removeprefix("sha256:")[:20]
    while word in data:
        word = digest_of_bytes(word.encode()).removeprefix("sha256:")[:20]
    return word


def _issue(request: ModelRequest) -> dict[str, JsonValue]:
    issue = request.request
    body, left_out = _visible(issue.body)
    shown, cut = _cut_middle(body)
    if cut:
        left_out.append(f"{cut} characters in the middle of the body")
    paths = issue.changed_paths
    if len(paths) > MAX_PATHS:
        left_out.append(f"{len(paths) - MAX_PATHS} paths")
    known: dict[str, JsonValue] = {"issue_id": request.issue_id} if request.issue_id else {}
    return known | {
        "title": _cut(_plain(issue.title), TITLE_BYTES),
        "body": shown,
        "changed_paths": [_cut(_plain(path), PATH_BYTES) for path in paths[:MAX_PATHS]],
        "left_out": [*left_out],
    }


def _visible(body: str) -> tuple[str, list[str]]:
    """Return what a reader sees of a body, and what was taken out of it."""
    raw = body if len(body) <= 2 * RAW_CHARS else f"{body[:RAW_CHARS]}\n{body[-RAW_CHARS:]}"
    shown, closed, tail = without_comments(raw)
    odd = any(category(sign) == "Cf" for sign in shown)
    shown, disguised, rest = without_comments(canonical(shown))
    left_out = []
    if closed.strip() or disguised.strip():
        left_out.append("comments that a reader does not see")
    if tail.strip() or rest.strip():
        left_out.append("the end, which an open comment hides")
    if odd:
        left_out.append("characters that do not show")
    if len(body) > len(raw):
        left_out.append(f"{len(body) - len(raw)} characters in the middle of the text")
    return redact(shown), left_out


def _plain(text: str) -> str:
    return redact(canonical(text[:RAW_CHARS]))


def _observed(observations: Sequence[Observation]) -> list[JsonValue]:
    """Return the observations in order; where they are too many, the latest have content."""
    room = OBSERVED_BYTES
    shown: list[JsonValue] = []
    for item in reversed(observations):
        value = _observation(item)
        size = len(canonical_json(value))
        if size > room:
            value["content"] = None
            value["left_out"] = "its content is too long"
        else:
            room -= size
        shown.append(value)
    return shown[::-1]


def _observation(item: Observation) -> dict[str, JsonValue]:
    value: dict[str, JsonValue] = {
        "evidence_id": item.evidence_id,
        "tool": item.tool,
        "arguments": redact_value(item.arguments),
        "content": redact_value(_as_read(item)),
    }
    if item.content is None:
        value["left_out"] = "its content has expired"
    return value


def _as_read(item: Observation) -> JsonValue:
    """Return what was returned; of an issue, what a reader sees of it."""
    content = item.content
    if item.tool != ACTIVITY_READ_ISSUE or not isinstance(content, dict):
        return content
    body, left_out = _visible(str(content.get("body", "")))
    title = _plain(str(content.get("title", "")))
    return content | {"title": title, "body": body, "left_out": [*left_out]}


def _cut_middle(text: str) -> tuple[str, int]:
    """Bound a text by what it takes as JSON; return also how many characters went."""
    if _size(text) <= BODY_BYTES:
        return text, 0
    head = _cut(text, BODY_BYTES - TAIL_BYTES)
    tail = _cut(text[len(head) :][::-1], TAIL_BYTES)[::-1]
    cut = len(text) - len(head) - len(tail)
    return f"{head}\n... {cut} characters left out ...\n{tail}", cut


def _cut(text: str, limit: int) -> str:
    """Return as much of a text as takes at most `limit` bytes once it is escaped."""
    for position, size in enumerate(_sizes(text)):
        if size > limit:
            return text[:position]
    return text


def _size(text: str) -> int:
    return len(json.dumps(text)) - 2 + 5 * sum(text.count(sign) for sign in "<>[]")


def _sizes(text: str) -> Iterator[int]:
    total = 0
    for sign in text:
        total += _weight(sign)
        yield total


def _weight(sign: str) -> int:
    if sign in _SHORT:
        return 2
    if sign in "<>[]" or not sign.isascii() or not sign.isprintable():
        return 12 if ord(sign) > 0xFFFF else 6  # noqa: PLR2004 - a pair of escapes
    return 1
