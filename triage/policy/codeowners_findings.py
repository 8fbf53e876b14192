"""What a CODEOWNERS file can be told: one code a kind, with a sentence and what to do.

A finding quotes nothing of the file, which strangers may have written: it names the line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Severity(StrEnum):
    """How bad a finding is."""

    ERROR = "error"
    """GitHub refuses the line or the file, or it cannot mean what it seems to."""

    WARNING = "warning"
    """The line counts, and perhaps not as its author meant it."""


class Code(StrEnum):
    """The kinds of findings."""

    # The file: every answer is unknown.
    TOO_LARGE = "too_large"
    INCOMPLETE = "incomplete"
    TOO_COMPLEX = "too_complex"
    # The line does not count.
    NEGATION = "negation"
    ESCAPED_HASH = "escaped_hash"
    BAD_ESCAPE = "bad_escape"
    NEVER_MATCHES = "never_matches"
    INVALID_OWNER = "invalid_owner"
    CONTROL_CHARACTER = "control_character"
    NOT_UTF8 = "not_utf8"
    TOO_LONG = "too_long"
    # The line counts.
    BRACKET = "bracket"
    BRACES = "braces"
    DOUBLE_STAR = "double_star"
    NEEDLESS_ESCAPE = "needless_escape"
    HASH_IN_PATTERN = "hash_in_pattern"
    LOOKS_LIKE_OWNER = "looks_like_owner"
    SWALLOWED_OWNER = "swallowed_owner"
    REPEATED_OWNER = "repeated_owner"
    REPEATED_PATTERN = "repeated_pattern"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding.

    Attributes:
        line: the line that it is about, from 1; None if it is about the whole file.
        code: which kind it is.
        severity: how bad it is.
        message: what is the case, in words of ours.
        hint: what to do about it.
    """

    line: int | None
    code: Code
    severity: Severity
    message: str
    hint: str


def finding(code: Code, line: int | None, number: int = 0) -> Diagnostic:
    """Return the finding of this kind; some sentences name one more `number`."""
    severity, message, hint = _CATALOGUE[code]
    return Diagnostic(line, code, severity, message.format(number=number), hint)


_ERROR, _WARNING = Severity.ERROR, Severity.WARNING
_CATALOGUE: Final[Mapping[Code, tuple[Severity, str, str]]] = {
    Code.TOO_LARGE: (
        _ERROR,
        "the file is not under 3 MB, and GitHub loads no such file",
        "join lines with wildcards until it is smaller",
    ),
    Code.INCOMPLETE: (
        _ERROR,
        "the content is not as long as the file is said to be",
        "read it again as a blob: above 1 MB, GitHub's contents answer holds none",
    ),
    Code.TOO_COMPLEX: (
        _ERROR,
        "the file has more rules than are looked through here",
        "join lines with wildcards until there are fewer",
    ),
    Code.NEGATION: (
        _ERROR,
        "a pattern cannot be negated with !",
        "write the exception as a later line with its own owners, or with none",
    ),
    Code.ESCAPED_HASH: (
        _ERROR,
        r"a pattern cannot begin with \#",
        "write ? in place of the #, or begin with a folder: /#name",
    ),
    Code.BAD_ESCAPE: (
        _ERROR,
        "a backslash stands at the end or before a /, where it means nothing",
        "paths are separated by /, and a backslash only makes the next sign an ordinary one",
    ),
    Code.NEVER_MATCHES: (
        _ERROR,
        "the pattern can match no path",
        "write * for everything, and paths from the root without . and ..",
    ),
    Code.INVALID_OWNER: (
        _ERROR,
        "owner {number} of the line is neither @user, @org/team nor an e-mail address",
        "put @ before a name, and a blank between two owners",
    ),
    Code.CONTROL_CHARACTER: (
        _ERROR,
        "the line holds a control character",
        "take it out; lines end with LF or CR LF",
    ),
    Code.NOT_UTF8: (_ERROR, "the pattern is not UTF-8 text", "save the file as UTF-8"),
    Code.TOO_LONG: (
        _ERROR,
        "the line or its pattern is longer than any path",
        "shorten it; owners of one pattern can be a team",
    ),
    Code.BRACKET: (
        _ERROR,
        "[ and ] make no range here, they stand for themselves",
        r"write \[ and \] for a name that has them, or one line for each sign of a range",
    ),
    Code.BRACES: (
        _WARNING,
        "{{ and }} make no list here, they stand for themselves",
        "write one line for each name",
    ),
    Code.DOUBLE_STAR: (
        _WARNING,
        "** beside other signs means what one * means",
        "write **/ for folders of any depth",
    ),
    Code.NEEDLESS_ESCAPE: (
        _WARNING,
        "a backslash before a letter or digit is left out",
        "paths are separated by /",
    ),
    Code.HASH_IN_PATTERN: (
        _WARNING,
        "a # in a pattern is part of it, and other readers take it for a comment",
        r"write \# in the pattern, or a blank before a comment",
    ),
    Code.LOOKS_LIKE_OWNER: (
        _WARNING,
        "the pattern looks like an owner",
        "put a pattern before the owners: * is everything",
    ),
    Code.SWALLOWED_OWNER: (
        _WARNING,
        "a backslash before the blank makes the owner a part of the pattern",
        "end a folder's name with /",
    ),
    Code.REPEATED_OWNER: (
        _WARNING,
        "owner {number} of the line was named before",
        "name each owner once",
    ),
    Code.REPEATED_PATTERN: (
        _WARNING,
        "line {number} has the same pattern, so this line counts for nothing",
        "name all owners of a pattern on one line",
    ),
}
