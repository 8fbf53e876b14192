"""An issue as a classifier sees it: which words, word pairs, parts of words and lines it holds.

Why it exists: weights mean something only to the reading that they were learned from, so training
and scoring share this one. The text is untrusted and may be huge: it is cut first, and everything
after is linear in what is left. A reading that changes gets a new number in `Weights.text`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise
from typing import Final

TITLE_CHARS: Final = 300
BODY_CHARS: Final = 3_000
MAX_WORD_CHARS: Final = 24
MAX_LINE_CHARS: Final = 45
FIRST_WORDS: Final = 60
PART_CHARS: Final = 4
MAX_STEPS: Final = 3
WORDS_KEPT: Final = 20_000


class Block(StrEnum):
    """A kind of features; each kind is weighed as a whole, however many features it has."""

    TITLE = "title"
    BODY = "body"
    FIRST = "first"
    PART = "part"
    LINE = "line"
    FORM = "form"


CODE: Final = "=code"
IMAGE: Final = "=image"
LINK: Final = "=link"
NUMBER: Final = "=number"
HASH: Final = "=hash"

_WORD = re.compile(r"[a-z][a-z0-9+.-]{0,15}://\S+|[^\W_]+(?:['\u2019][^\W_]+)?|[?!]")
_FENCES = ("```", "~~~")
_IMAGE_ENDS = (".png", ".jpg", ".jpeg", ".gif", ".mp4")
_MIN_HASH_CHARS = 7


def read_issue(title: str, body: str) -> dict[Block, set[str]]:
    """Return what an issue holds, by block; texts of any size and content are accepted."""
    heading = _words(title[:TITLE_CHARS].casefold())
    lines = list(_lines(body[:BODY_CHARS].casefold()))
    words = [word for line in lines for word in line]
    return {
        Block.TITLE: _with_pairs(heading),
        Block.BODY: _with_pairs(words),
        Block.FIRST: _with_pairs([*heading, *words[:FIRST_WORDS]]),
        Block.PART: set().union(*map(_parts, set(words))),
        Block.LINE: set(_short_lines(lines)),
        Block.FORM: set(_form(heading, words, len(body))),
    }


def _lines(text: str) -> Iterator[list[str]]:
    """Yield the words of each line that has any; a code block is one word on a line of its own."""
    fence = ""
    for line in text.splitlines():
        start = line.lstrip(" \t>")[:3]
        if fence:
            fence = "" if start == fence else fence
        elif start in _FENCES:
            fence = start
            yield [CODE]
        elif words := _words(line):
            yield words


def _words(text: str) -> list[str]:
    return [_plain(word) for word in _WORD.findall(text)]


@lru_cache(maxsize=WORDS_KEPT)
def _plain(word: str) -> str:
    """Return a word, or what kind of thing it is where nearly every one of them is another."""
    if "://" in word:
        return IMAGE if word.rstrip(").]\"'>").endswith(_IMAGE_ENDS) else LINK
    if any(c.isdigit() for c in word):
        return NUMBER if word[0].isdigit() or len(word) < _MIN_HASH_CHARS else HASH
    return word[:MAX_WORD_CHARS].replace("\u2019", "'")


def _with_pairs(words: list[str]) -> set[str]:
    return {*words, *(f"{one} {two}" for one, two in pairwise(words))}


@lru_cache(maxsize=WORDS_KEPT)
def _parts(word: str) -> tuple[str, ...]:
    """Return the parts of a word with its edges, so that stems and endings are seen alike."""
    edged = f" {word} "
    return tuple(edged[at : at + PART_CHARS] for at in range(max(len(edged) - PART_CHARS, 0) + 1))


def _short_lines(lines: list[list[str]]) -> Iterator[str]:
    """Yield short lines, and pairs of them: a form's question and what was answered to it."""
    whole = [" ".join(line) for line in lines]
    short = [line if len(line) <= MAX_LINE_CHARS else "" for line in whole]
    yield from filter(None, short)
    yield from (f"{one}|{two}" for one, two in pairwise(short) if one and two)


def _form(heading: list[str], words: list[str], length: int) -> Iterator[str]:
    """Yield what an issue looks like from afar."""
    if heading:
        yield f"starts {heading[0]}"
        yield f"starts {' '.join(heading[:2])}"
        yield f"ends {heading[-1]}"
    yield f"length {length.bit_length()}"
    yield f"title {min(len(heading) // 3, MAX_STEPS)}"
    for sign in (CODE, IMAGE, LINK, "?"):
        yield f"{sign} {min(words.count(sign), MAX_STEPS)}"
