"""Promises of reading lines: nothing is raised, and each line is read by itself."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.policy.codeowners import CodeOwners, OwnershipStatus, parse_codeowners
from triage.policy.codeowners_findings import Code, Severity
from triage.policy.codeowners_lines import is_owner

PATHS: Final = ("README.md", "src/a.py", "src/deep/b.js", "docs/", "x")
GOOD: Final = st.sampled_from(
    [b"* @all", b"/src/ @src", b"*.js @js docs@example.com", b"docs/*", b"**/deep @o/team # why"]
)
BROKEN: Final = st.sampled_from(
    [
        b"!x @a",
        b"\\#x @a",
        b"/ @a",
        b"x\\",
        b"x\\/y @a",
        b"/x a",
        b"x\0 @a",
        b"x\xff @a",
        b"a//b @a",
        b"../a @a",
        b"* @a\rb @b",
        b"# a\r* @b",
        b"x\x1b[2J @a",
        b"a" * 70_000,
    ]
)
ANYTHING: Final = st.one_of(
    st.binary(max_size=60), st.text("ab*/\\ @#!?[]{}\t\r\n\0.\ufeff", max_size=40).map(str.encode)
)


def _codes(data: bytes) -> list[Code]:
    return [found.code for found in parse_codeowners(data).diagnostics]


@given(lines=st.lists(st.one_of(ANYTHING, GOOD, BROKEN), max_size=8), size=st.none() | st.just(7))
def test_whatever_a_file_holds_there_are_three_answers(
    lines: list[bytes], size: int | None
) -> None:
    """Nothing is raised; an answer has owners exactly if it is owned, and a reason if unknown."""
    for answer in parse_codeowners(b"\n".join(lines), size=size).lookup_all(PATHS):
        assert (answer.status is OwnershipStatus.OWNED) is bool(answer.owners)
        assert (answer.status is OwnershipStatus.UNKNOWN) is (answer.reason is not None)
        assert all(map(is_owner, answer.owners))
        assert answer.line is not None or answer.pattern is None


@given(lines=st.lists(st.one_of(GOOD, BROKEN, ANYTHING.filter(lambda one: b"\n" not in one))))
def test_each_line_is_a_rule_nothing_or_a_finding(lines: list[bytes]) -> None:
    """No line is lost in silence: only comments and blanks leave no trace."""
    owners = parse_codeowners(b"\n".join(lines))
    told = {rule.line for rule in owners.rules} | {found.line for found in owners.diagnostics}
    for number, line in enumerate(lines, start=1):
        text = line.removeprefix(b"\xef\xbb\xbf" if number == 1 else b"").strip(b" \t\r")
        silent = not text or (text.startswith(b"#") and b"\r" not in text)
        assert silent is (number not in told)


@given(lines=st.lists(GOOD, min_size=1, max_size=6), broken=BROKEN, at=st.integers(0, 6))
def test_a_broken_line_changes_no_other(lines: list[bytes], broken: bytes, at: int) -> None:
    """With a broken line put in anywhere, each path has the same owners from the same pattern."""
    mixed = [*lines[:at], broken, *lines[at:]]
    before, after = parse_codeowners(b"\n".join(lines)), parse_codeowners(b"\n".join(mixed))
    assert _answers(before) == _answers(after)
    place = min(at, len(lines)) + 1
    assert [place] == [one.line for one in after.diagnostics if one.severity is Severity.ERROR]


def _answers(owners: CodeOwners) -> list[tuple[object, ...]]:
    return [(one.status, one.owners, one.pattern) for one in owners.lookup_all(PATHS)]


@given(lines=st.lists(st.one_of(GOOD, BROKEN.filter(lambda line: b"\r" not in line)), max_size=6))
def test_line_ends_and_a_mark_change_nothing(lines: list[bytes]) -> None:
    """CR LF and a byte order mark give the same answers and findings as LF alone."""
    plain = parse_codeowners(b"\n".join(lines))
    marked = parse_codeowners(b"\xef\xbb\xbf" + b"\r\n".join(lines) + b"\r\n")
    assert _answers(plain) == _answers(marked)
    assert plain.diagnostics == marked.diagnostics


def test_returns_hide_no_lines() -> None:
    """A file whose lines end with CR alone is one line: a finding, even behind a comment."""
    assert [Code.CONTROL_CHARACTER] == _codes(b"# owners\r* @a\r/src/ @b\r")


def test_a_comment_may_be_in_any_encoding() -> None:
    """What does not count need not be text."""
    owners = parse_codeowners(b"# caf\xe9\0\n\t # \xff\n* @a # caf\xe9\n")
    assert ((), ("@a",)) == (owners.diagnostics, owners.lookup("x").owners)


@pytest.mark.parametrize(
    ("line", "pattern", "owners"),
    [
        (b"  a\t @x\t@y  ", "a", ("@x", "@y")),
        (b"a @x @X @y", "a", ("@x", "@y")),
        (b"a\\  @x", "a\\ ", ("@x",)),
        (b"a\\ ", "a\\ ", ()),
        (b"\\!a @x", "\\!a", ("@x",)),
        ("größe/ @x".encode(), "größe/", ("@x",)),
        (b"a @x #", "a", ("@x",)),
        (b"a#b @x", "a#b", ("@x",)),
    ],
)
def test_how_a_line_is_cut(line: bytes, pattern: str, owners: tuple[str, ...]) -> None:
    """Blanks and tabs separate, a backslash keeps a blank, each owner is there once."""
    [rule] = parse_codeowners(line).rules
    assert (pattern, owners) == (rule.pattern, rule.owners)


@pytest.mark.parametrize(
    "text", ["@a", "@A-b", "@octo-org/octocats", "@emu_corp", "@a/b.c", "a.b+c@example.co.uk", "@0"]
)
def test_what_is_an_owner(text: str) -> None:
    """Users, teams and e-mail addresses are owners."""
    assert is_owner(text)


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "@",
        "@-a",
        "@a/",
        "@a/b/c",
        "@@a",
        "@a@b",
        "a@b",
        "@a,",
        "@a\u00a0",
        "@\u0430dmin",
        "@" + "a" * 40,
        "<a@b.de>",
        "@a\n",
        "@a\u200b",
        "a@b.c\x00om",
        "a b@c.de",
    ],
)
def test_what_is_no_owner(text: str) -> None:
    """Anything else is none, look-alike letters and hidden signs among it."""
    assert not is_owner(text)


def test_findings_quote_nothing() -> None:
    """What strangers wrote does not get into a sentence of ours."""
    data = b"!zzz @zzz\nzzz zzz\nzzz @zzz @ZZZ\n[zzz] @zzz\nzzz @zzz\nzzz\\ @zzz\nzzz\0"
    found = parse_codeowners(data).diagnostics
    assert 7 == len(found)
    assert not [one for one in found if "zzz" in f"{one.message}{one.hint}".lower()]


def test_findings_are_in_order() -> None:
    """They are sorted by line, also where a later line makes an earlier one useless."""
    lines = [found.line for found in parse_codeowners(b"a @x\n!b\na @y\n!c\n").diagnostics]
    assert [1, 2, 4] == lines
