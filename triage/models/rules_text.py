"""Issue text as the rules model weighs it: bounded, canonical and split by what it is.

Why it exists: the text is untrusted and may be huge. It is cut before anything else, and each
later pass is linear, so no input is expensive to judge. Nothing here is ever shown or stored.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from triage.models.rules_keywords import DOC_FOLDERS, DOC_SUFFIXES

TITLE_CHARS: Final = 1_000
HEAD_CHARS: Final = 20_000
TAIL_CHARS: Final = 4_000
"""Of a longer body, the end is read for security words as well: logs are pasted in the middle."""

MAX_PATHS: Final = 200
MAX_PATH_CHARS: Final = 300
_ENTITY_ROUNDS: Final = 3

_ANSI = re.compile(r"\x1b(?:\[[0-?]{0,32}[ -/]{0,8}[@-~]|\][^\x07\x1b]{0,2000}(?:\x07|\x1b\\)?)")
_ENTITY = re.compile(r"&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|(lt|gt|amp|quot|apos|nbsp))\b;?")
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'", "nbsp": " "}
_LINE_ENDS = dict.fromkeys(map(ord, "\r\v\f\x85\u2028\u2029"), "\n")
_URL = re.compile(r"\b[A-Za-z][A-Za-z0-9+.-]{0,15}://\S+")
_PATH = re.compile(
    r"(?<![\w./:@\\-])(?:[\w.-]{1,64}/){1,12}[\w.-]{1,64}\.[A-Za-z][A-Za-z0-9]{0,5}\b"
)
_ROOT_DOC = re.compile(r"(?<![\w./:@\\-])[A-Za-z][\w-]{0,40}\.(?:md|mdx|rst|adoc)\b")
_WORD = re.compile(r"[^\W_]+")
_APOSTROPHE = re.compile(r"(?<=\w)['\u2019](?=\w)")


@dataclass(frozen=True, slots=True)
class IssueText:
    """One issue, each part as words: lower case, one space between and at both ends.

    Attributes:
        title: the title.
        prose: the visible body without code blocks, quotes, addresses and paths.
        code: what stands in code blocks.
        aside: quoted lines, what odd comments hide, and the end of a long body.
        everything: all of it with addresses, except closed comments, which templates are full of.
        paths: usable path-like words of title and body, in order.
    """

    title: str
    prose: str
    code: str
    aside: str
    everything: str
    paths: tuple[str, ...]


def read_issue(title: str, body: str) -> IssueText:
    """Split an issue into the parts that are weighed differently."""
    clean_title = canonical(title[:TITLE_CHARS])
    visible, _, hidden = without_comments(body[:HEAD_CHARS])
    visible, hidden = canonical(visible), canonical(hidden)
    # Only what looked like a comment from the start is a template's; the rest is readable text.
    shown, disguised, rest = without_comments(visible)
    tail = canonical(body[HEAD_CHARS:][-TAIL_CHARS:])
    prose, code, quoted = _by_block(shown)
    aside = f"{quoted}\n{disguised}\n{rest}\n{hidden}\n{tail}"
    return IssueText(
        title=words(_without_addresses(clean_title)),
        prose=words(_without_addresses(prose)),
        code=words(code),
        aside=words(_without_addresses(aside)),
        everything=words(f"{clean_title}\n{visible}\n{hidden}\n{tail}"),
        paths=tuple(_mentioned_paths(f"{clean_title}\n{shown}")),
    )


def words(text: str) -> str:
    """Return the words of `text`, unaccented and in lower case, each between single spaces."""
    folded = unicodedata.normalize("NFKD", _APOSTROPHE.sub("", text.casefold()))
    plain = "".join(c for c in folded if not unicodedata.combining(c))
    return f" {' '.join(_WORD.findall(plain))} "


def canonical(text: str) -> str:
    """Undo what makes equal text look different: entities, other forms, hidden characters."""
    limit = len(text)
    text = _ANSI.sub("", text).translate(_LINE_ENDS)
    for _ in range(_ENTITY_ROUNDS):
        text = _ENTITY.sub(_entity, text)
    if not text.isascii():
        # One character can become eighteen, so the bound is set anew.
        text = unicodedata.normalize("NFKC", text)[:limit]
    return "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in {"Cc", "Cf"})


def without_comments(text: str) -> tuple[str, str, str]:
    """Return what a reader sees, what closed comments hold, and what an unclosed one hides."""
    shown: list[str] = []
    closed: list[str] = []
    position = 0
    while (start := text.find("<!--", position)) >= 0:
        shown.append(text[position:start])
        end = text.find("-->", start + 4)
        if end < 0:
            return " ".join(shown), " ".join(closed), text[start + 4 :]
        closed.append(text[start + 4 : end])
        position = end + 3
    shown.append(text[position:])
    return " ".join(shown), " ".join(closed), ""


def usable_paths(paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return the paths that an owner can be looked up for, in order and without duplicates."""
    cleaned = (path.removeprefix("./") for path in paths[:MAX_PATHS])
    return tuple(dict.fromkeys(path for path in cleaned if _is_usable(path)))


def is_doc_path(path: str) -> bool:
    """Whether a path is documentation by its folder or its suffix."""
    *folders, name = path.casefold().split("/")
    return name.endswith(DOC_SUFFIXES) or any(folder in DOC_FOLDERS for folder in folders)


def _is_usable(path: str) -> bool:
    plain = 0 < len(path) <= MAX_PATH_CHARS and path.isprintable() and not path.startswith("/")
    return plain and path == path.strip() and ".." not in path.split("/")


def _entity(match: re.Match[str]) -> str:
    decimal, hexadecimal, name = match.groups()
    if name:
        return _NAMED[name]
    code = int(decimal) if decimal else int(hexadecimal, 16)
    return chr(code) if code <= 0x10FFFF else " "  # noqa: PLR2004 - the last code point there is


def _by_block(text: str) -> tuple[str, str, str]:
    """Split Markdown into prose, code blocks and quotes; an open fence runs to the end."""
    prose: list[str] = []
    code: list[str] = []
    quoted: list[str] = []
    fence = ""
    for line in text.split("\n"):
        start = line.lstrip()
        if fence:
            code.append(line)
            fence = "" if start.startswith(fence) else fence
        elif start.startswith(("```", "~~~")):
            fence = start[:3]
        elif start.startswith(">"):
            quoted.append(line)
        else:
            prose.append(line)
    return "\n".join(prose), "\n".join(code), "\n".join(quoted)


def _without_addresses(text: str) -> str:
    return _PATH.sub(" ", _URL.sub(" ", text))


def _mentioned_paths(text: str) -> Iterator[str]:
    text = _URL.sub(" ", text)
    found = (match.group().rstrip(".") for p in (_PATH, _ROOT_DOC) for match in p.finditer(text))
    yield from usable_paths(tuple(found))
