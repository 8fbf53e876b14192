"""Checks that text of strangers is shown as it is, and drives nothing."""

import pytest

from triage.cli.text import exact, fold, quoted, shorten, visible, wrap


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


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("", [""]),
        ("short", ["short"]),
        ("exactly10!", ["exactly10!"]),
        ("cut at a blank", ["cut at a", "blank"]),
        ("nothing_to_cut_at", ["nothing_to", "_cut_at"]),
        ("a" + " " * 20 + "digest", ["a" + " " * 9, " " * 9, "digest"]),
        ("日本語日本語日本語", ["日本語日本", "語日本語"]),
        ("\x1b[31m red", ["\\u{1b}[31m", "red"]),
    ],
)
def test_no_piece_reaches_the_edge(text: str, pieces: list[str]) -> None:
    """A line is cut before a terminal would cut it, so that no rest stands at the left edge."""
    assert pieces == fold(text, 10)


def test_a_long_line_is_cut_at_once() -> None:
    """A text without end takes no time to speak of, and nothing but blanks gets lost."""
    text = "word " * 200_000
    pieces = fold(text, 74)
    assert text.split() == " ".join(pieces).split()


def test_our_own_words_are_not_broken() -> None:
    """A path in a sentence of ours can be copied, however narrow the terminal is."""
    assert ["see", "/a/very/long/path", "there"] == wrap("see /a/very/long/path there", 10)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("op-6", "op-6"),
        ("builtin@02db#owners-api", "builtin@02db#owners-api"),
        ("op-6 at version 6", '"op-6 at version 6"'),
        ('a" by ann "', '"a\\" by ann \\""'),
        ("", '""'),
        ("op\u202e", '"op\u202e"'),
    ],
)
def test_a_name_cannot_pass_for_a_sentence(text: str, shown: str) -> None:
    """What is more than one plain word stands in quotes that it cannot end."""
    assert shown == exact(text)


def test_quotes_are_told_apart() -> None:
    """Two labels, and one label that looks like two, differ."""
    assert f"{quoted('a')}, {quoted('b')}" != quoted('a", "b')
