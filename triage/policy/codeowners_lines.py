"""Reads one line of a CODEOWNERS file: a rule, nothing, or findings.

A line is read by itself, so what is wrong with it concerns no other.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from triage.contracts.base import MAX_PATH_CHARS
from triage.policy.codeowners_findings import Code, Diagnostic, finding
from triage.policy.codeowners_patterns import Pattern, PatternError, read_pattern

MAX_LINE_BYTES: Final = 65_536

_PATTERN: Final = re.compile(r"(?:\\.|[^\\ \t])+\\?", re.DOTALL)
_BLANK: Final = " \t"
_LOGIN: Final = r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,38})"
_ACCOUNT: Final = re.compile(rf"@{_LOGIN}(?:/[A-Za-z0-9_][A-Za-z0-9._-]{{0,254}})?")
_EMAIL: Final = re.compile(
    r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,63}"
)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Line:
    """What a line says.

    Attributes:
        pattern: the pattern, read; None if the line is no rule.
        written: the pattern as it stands there.
        owners: who owns what it matches, as written and each once; empty means nobody does.
        findings: what is wrong with the line, or odd.
    """

    pattern: Pattern | None = None
    written: str = ""
    owners: tuple[str, ...] = ()
    findings: list[Diagnostic] = field(default_factory=list)


def is_blank(raw: bytes) -> bool:
    """Tell whether a line is empty or a comment."""
    text = raw.strip(b" \t\r")
    # A return inside would hide the lines behind it: that is a finding, not a comment.
    return not text or (text.startswith(b"#") and b"\r" not in text)


def read_line(raw: bytes, number: int) -> Line:
    """Read a line that is not blank.

    Args:
        raw: its bytes, without the line feed.
        number: which line of the file it is, from 1.
    """
    if len(raw) > MAX_LINE_BYTES:
        return Line(findings=[finding(Code.TOO_LONG, number)])
    text = raw.rstrip(b"\r").decode("utf-8", "surrogateescape").lstrip(_BLANK)
    match = _PATTERN.match(text)
    written = match[0] if match else ""
    problem = _problem(text, written)
    if problem is not None:
        return Line(findings=[finding(problem, number)])
    try:
        pattern = read_pattern(written)
    except PatternError as error:
        return Line(findings=[finding(error.code, number)])
    owners, findings = _owners(text[len(written) :], number)
    if any(found.code is Code.INVALID_OWNER for found in findings):
        return Line(findings=findings)
    odd = [finding(code, number) for code in _oddities(written, owners)]
    return Line(pattern, written, owners, [*odd, *findings])


def is_owner(text: str) -> bool:
    """Tell whether a text is @user, @org/team or an e-mail address."""
    return bool(_ACCOUNT.fullmatch(text) or _EMAIL.fullmatch(text))


def _problem(text: str, pattern: str) -> Code | None:
    """Return what makes a line unreadable, if something does."""
    if "\0" in text or "\r" in text:
        return Code.CONTROL_CHARACTER
    # Most patterns are printable, and that is quick to see.
    categories = (
        set() if pattern.isprintable() else {unicodedata.category(sign) for sign in pattern}
    )
    if "Cc" in categories:
        return Code.CONTROL_CHARACTER
    if "Cs" in categories:
        return Code.NOT_UTF8
    return Code.TOO_LONG if len(pattern) > MAX_PATH_CHARS else None


def _owners(text: str, number: int) -> tuple[tuple[str, ...], list[Diagnostic]]:
    """Return the owners that stand behind a pattern, and the first thing wrong with them.

    Where one is no owner there are none.
    """
    owners: dict[str, str] = {}
    repeated = 0
    for at, word in enumerate(_words(text), start=1):
        if not is_owner(word):
            return (), [finding(Code.INVALID_OWNER, number, at)]
        if owners.setdefault(word.lower(), word) is not word:
            repeated = repeated or at
    findings = [finding(Code.REPEATED_OWNER, number, repeated)] if repeated else []
    return tuple(owners.values()), findings


def _words(text: str) -> Iterator[str]:
    for word in text.replace("\t", " ").split(" "):
        if word.startswith("#"):
            return
        if word:
            yield word


def _oddities(written: str, owners: tuple[str, ...]) -> Iterator[Code]:
    """Yield what a pattern may not mean, although it counts."""
    plain = _ESCAPED.sub("-", written)
    if "[" in plain or "]" in plain:
        yield Code.BRACKET
    if "{" in plain or "}" in plain:
        yield Code.BRACES
    if any("**" in name and name != "**" for name in plain.split("/")):
        yield Code.DOUBLE_STAR
    if any(sign.isalnum() for sign in _ESCAPED.findall(written)):
        yield Code.NEEDLESS_ESCAPE
    if "#" in plain:
        yield Code.HASH_IN_PATTERN
    if is_owner(plain) and not set("*?") & set(plain):
        yield Code.LOOKS_LIKE_OWNER
    if not owners and "\\ @" in written:
        yield Code.SWALLOWED_OWNER
