"""Taking secrets and personal data out of text before it is stored or shown.

Why it exists: what a tool returns and what an issue quotes may hold a credential, and a store, a
log or a reviewer's screen is no place for one. Each hit becomes ``[redacted:<kind>]``.

What to rely on: every kind of `fixtures/security/redaction_vectors.json` is found, also when it is
glued to other letters, written in full-width letters or laced with invisible characters; labels,
digests, UUIDs and version numbers stay as they are; the work grows linearly with the text.

What not to rely on, as the vectors mark it: a secret that is split by a line break, or that is
JSON-escaped or URL-encoded, is not found. So redact parsed values, not their encoded form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Final
from unicodedata import normalize

from pydantic import JsonValue

from triage.policy.redaction_patterns import Span, personal, secrets


def redact(text: str) -> str:
    """Return `text` with each secret replaced by its kind; text without any comes back as is.

    What was put in place of a secret is left alone when the text is redacted again.
    """
    return _redacted(text, _find)


def redact_secrets(text: str) -> str:
    """Return `text` with each credential replaced by its kind; personal data stays.

    For what other code looks up or compares, such as a path: it may hold an address.
    """
    return _redacted(text, _find_secrets)


def redact_value(value: JsonValue, how: Callable[[str], str] = redact) -> JsonValue:
    """Return a JSON value with every string in it redacted, keys included."""
    if isinstance(value, str):
        return how(value)
    if isinstance(value, list):
        return [redact_value(item, how) for item in value]
    if isinstance(value, dict):
        return _redact_object(value, how)
    return value


def _redact_object(value: dict[str, JsonValue], how: Callable[[str], str]) -> dict[str, JsonValue]:
    result: dict[str, JsonValue] = {}
    for key, item in value.items():
        name = how(key)
        # Two keys may become one; neither of their values is dropped for that.
        while name in result:
            name += "+"
        result[name] = redact_value(item, how)
    return result


def _redacted(text: str, find: _Find) -> str:
    if len(text) <= _SHORT and _is_clean(text, find):
        return text
    shadow, positions = _shadow(text)
    found = [
        Span(positions[span.start], positions[span.end - 1] + 1, span.kind) for span in find(shadow)
    ]
    return _replace(text, found, lambda span: f"[redacted:{span.kind}]")


def _is_clean(text: str, find: _Find) -> bool:
    try:
        _see_nothing(find, text)
    except _Found:
        return False
    return True


_Find = Callable[[str], list[Span]]


class _Found(Exception):  # noqa: N818 - says what happened
    """There is something in a text: an answer that no cache keeps."""


@lru_cache(maxsize=4_096)
def _see_nothing(find: _Find, text: str) -> None:
    """Return if nothing is found in a text: names of tools, labels and owners come with every run.

    Raises:
        _Found: something is, and so nobody keeps this text.
    """
    if find(_shadow(text)[0]):
        raise _Found


_SHORT: Final = 80
_INVISIBLE: Final = frozenset(
    chr(code)
    for first, last in (
        (0x00AD, 0x00AD),
        (0x180E, 0x180E),
        (0x200B, 0x200F),
        (0x202A, 0x202E),
        (0x2060, 0x2069),
        (0xFE00, 0xFE0F),
        (0xFEFF, 0xFEFF),
        (0xE0000, 0xE007F),
    )
    for code in range(first, last + 1)
)
_FOLD: Final = {
    **{code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},
    **{code: normalize("NFKC", chr(code)) for code in range(0x1D400, 0x1D800)},
    **dict.fromkeys(map(ord, _INVISIBLE)),
}
"""Letters that only look different, one for one, and characters that do not show."""


_MASK: Final = "\0"


def _shadow(text: str) -> tuple[str, range | list[int]]:
    """Return the text that is searched, and where each of its characters stands in `text`."""
    if text.isascii():
        return text, range(len(text))
    shadow = text.translate(_FOLD)
    if len(shadow) == len(text):
        return shadow, range(len(text))
    return shadow, [index for index, char in enumerate(text) if char not in _INVISIBLE]


def _find_secrets(text: str) -> list[Span]:
    return _union(secrets(text))


def _find(text: str) -> list[Span]:
    """Return what to replace, in order; personal data is looked for in what secrets leave."""
    found = _find_secrets(text)
    rest = _replace(text, found, lambda span: _MASK * (span.end - span.start))
    return sorted([*found, *_union(personal(rest))])


def _replace(text: str, spans: Sequence[Span], put: Callable[[Span], str]) -> str:
    pieces: list[str] = []
    end = 0
    for span in spans:
        pieces += (text[end : span.start], put(span))
        end = span.end
    return "".join((*pieces, text[end:]))


def _union(spans: Iterator[Span]) -> list[Span]:
    """Return the spans in order, those that overlap as one of the first one's kind."""
    merged: list[Span] = []
    for span in sorted(spans):
        if merged and span.start < merged[-1].end:
            first = merged.pop()
            merged.append(Span(first.start, max(first.end, span.end), first.kind))
        else:
            merged.append(span)
    return merged
