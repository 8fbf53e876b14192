"""Checks that text of strangers is shown as it is, and drives nothing."""

import pytest

from triage.cli.text import shorten, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, café, 日本語, ✔︎, ❤️", "plain text, café, 日本語, ✔︎, ❤️"),
        ("\x1b[31mred", r"\u{1b}[31mred"),
        ("\x9b31m", r"\u{9b}31m"),
        ("two\nlines\ttab\r\x00", r"two\u{a}lines\u{9}tab\u{d}\u{0}"),
        ("user\u202etxt.exe", r"user\u{202e}txt.exe"),
        ("\u2066isolate\u2069", r"\u{2066}isolate\u{2069}"),
        ("zero\u200bwidth\ufeff", r"zero\u{200b}width\u{feff}"),
        ("line\u2028separator", r"line\u{2028}separator"),
        ("lone \ud800", r"lone \u{d800}"),
        ("no\xa0break", r"no\u{a0}break"),
        ("filler \u3164", r"filler \u{3164}"),
        ("hidden \U000e0041", r"hidden \u{e0041}"),
        ("bytes \U000e0101", r"bytes \u{e0101}"),
        ("private \ue000", r"private \u{e000}"),
    ],
)
def test_what_cannot_be_seen_is_written_out(text: str, shown: str) -> None:
    """Whatever has no shape of its own on a terminal is shown by its code point."""
    assert shown == visible(text)


def test_every_character_has_a_shape_or_a_code() -> None:
    """No code point at all gets to a terminal as a control character."""
    text = "".join(map(chr, range(0x3000)))
    assert visible(text).isprintable()


def test_a_cut_is_marked() -> None:
    """Text that was cut cannot be taken for the whole."""
    assert ("abc", "ab…") == (shorten("abc", 3), shorten("abcd", 3))
