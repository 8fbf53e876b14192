"""Holds the tables of docs/codeowners.md to what is read and found."""

from __future__ import annotations

import re
from typing import Final

import pytest

from tests.docs.pages import page
from tests.unit.policy.test_codeowners import EXAMPLE
from triage.policy.codeowners import (
    MAX_FILE_BYTES,
    MAX_RULES,
    CodeOwners,
    OwnershipStatus,
    parse_codeowners,
)
from triage.policy.codeowners_findings import Code, finding
from triage.policy.codeowners_lines import MAX_LINE_BYTES

PAGE: Final = page("docs/codeowners.md")
PATTERNS: Final = PAGE.table("pattern", "matches", "does not match")
FINDINGS: Final = PAGE.table("finding", "severity", "such as", "the line")
# What cannot be typed into a page.
DESCRIBED: Final[dict[Code, list[bytes]]] = {
    Code.CONTROL_CHARACTER: [b"a\0 @a", b"a @a #\0", b"a @a\rb @a", b"a\x1b @a"],
    Code.NOT_UTF8: [b"caf\xe9 @a"],
    Code.TOO_LONG: [b"a" * 4_097 + b" @a", b"a " + b"@a " * (MAX_LINE_BYTES // 3)],
    Code.REPEATED_PATTERN: [b"/docs/ @a\ndocs/** @b"],
    Code.TOO_LARGE: [b"a @a\n" * (MAX_FILE_BYTES // 5)],
    Code.TOO_COMPLEX: [b"!\n" * (MAX_RULES + 1)],
}


def _spans(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


@pytest.mark.parametrize("row", PATTERNS, ids=[row[0] for row in PATTERNS])
def test_a_pattern_matches_what_its_row_says(row: list[str]) -> None:
    """Every path of the table is matched, or is not, as it stands there; nothing is found."""
    [pattern], matched, missed = map(_spans, row)
    owners = parse_codeowners(f"{pattern} @o".encode())
    assert matched == [
        answer.path for answer in owners.lookup_all([*matched, *missed]) if answer.line
    ]
    assert () == owners.diagnostics


def test_every_finding_has_a_row() -> None:
    """The table names each kind once, with its severity."""
    assert {code.value: finding(code, None).severity.value for code in Code} == {
        row[0]: row[1] for row in FINDINGS
    }
    assert len(Code) == len(FINDINGS)


@pytest.mark.parametrize("row", FINDINGS, ids=[row[0] for row in FINDINGS])
def test_a_finding_is_found_and_counts_as_its_row_says(row: list[str]) -> None:
    """The example is told exactly this, and its line counts, or not, as the row says."""
    code, says = Code(row[0]), row[3].partition(",")[0]
    for owners in _examples(code, row[2]):
        assert [code] == [found.code for found in owners.diagnostics]
        unknown = owners.lookup("x").status is OwnershipStatus.UNKNOWN
        assert (says == "unknown") is unknown
        assert (says in {"counts", "never answers"}) is bool(owners.rules)


def _examples(code: Code, cell: str) -> list[CodeOwners]:
    if code is Code.INCOMPLETE:
        return [parse_codeowners(b"", size=1)]
    written = DESCRIBED.get(code) or [span.encode() for span in _spans(cell)]
    return [parse_codeowners(data) for data in written]


@pytest.mark.parametrize(
    ("line", "same"),
    [(_spans(row[2])[0], _spans(row[3])) for row in FINDINGS if ", as `" in row[3]],
)
def test_what_a_line_counts_as(line: str, same: list[str]) -> None:
    """The pattern that a row names instead is the same pattern."""
    [code] = [found.code for found in parse_codeowners(line.encode()).diagnostics]
    both = parse_codeowners(f"{line}\n{same[0]} @b".encode())
    assert [code, Code.REPEATED_PATTERN] == [found.code for found in both.diagnostics]


def test_the_example_is_what_the_command_says() -> None:
    """The lines of the page's example are GitHub's own rules for these paths."""
    found = re.findall(
        r"^(\S+) +(owned|unowned) +(\S+) +(\d+) ", PAGE.blocks()[0].body, re.MULTILINE
    )
    answers = parse_codeowners(EXAMPLE.encode()).lookup_all(row[0] for row in found)
    assert found == [
        (one.path, one.status.value, " ".join(one.owners) or "-", str(one.line)) for one in answers
    ]
    assert 2 == len(found)
