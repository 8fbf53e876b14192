"""Who owns a path, by a CODEOWNERS file read as GitHub reads it.

There are three answers, always: somebody owns it, nobody does, or it is not known. A file that
GitHub would not load, or that is not here in full, never says that nobody owns a path. Each line
is read by itself: what is wrong with one is a finding and changes nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from triage.contracts.base import MAX_PATH_CHARS, ContractError
from triage.policy.codeowners_findings import Code, Diagnostic, finding
from triage.policy.codeowners_lines import Line, is_blank, read_line
from triage.policy.codeowners_tree import PatternTree, TooCostlyError, Work

FILE_NAME: Final = "CODEOWNERS"
MAX_FILE_BYTES: Final = 3_000_000
"""GitHub says "under 3 MB" and not which; from the smaller one on, nothing is known."""

MAX_RULES: Final = 100_000

_MARK: Final = b"\xef\xbb\xbf"


class BadPathError(ContractError):
    """A text that is no path in a repository; the message quotes nothing of it.

    Attributes:
        path: the text.
    """

    def __init__(self, message: str, path: str) -> None:
        super().__init__(message)
        self.path = path


class OwnershipStatus(StrEnum):
    """The three answers."""

    OWNED = "owned"
    UNOWNED = "unowned"
    UNKNOWN = "unknown"


class UnknownReason(StrEnum):
    """Why an answer is not known."""

    TOO_LARGE = "too_large"
    INCOMPLETE = "incomplete"
    TOO_COMPLEX = "too_complex"


@dataclass(frozen=True, slots=True)
class Ownership:
    """Who owns one path.

    Attributes:
        path: what was asked for.
        status: which of the three answers it is.
        owners: the owners as the file writes them; empty unless the path is owned.
        line: the line that says so, from 1; None if no line matches, or nothing is known.
        pattern: that line's pattern, as the file writes it.
        reason: why it is not known; None unless the status is unknown.
    """

    path: str
    status: OwnershipStatus
    owners: tuple[str, ...] = ()
    line: int | None = None
    pattern: str | None = None
    reason: UnknownReason | None = None

    def locator(self, revision: str) -> str:
        """Return where this stands, such as ``CODEOWNERS@<sha>#L12``: what evidence names."""
        where = f"{FILE_NAME}@{revision}"
        return where if self.line is None else f"{where}#L{self.line}"


@dataclass(frozen=True, slots=True)
class Rule:
    """A line that counts, unless a later one matches: no owners means that nobody owns it."""

    line: int
    pattern: str
    owners: tuple[str, ...]


class CodeOwners:
    """A CODEOWNERS file, read.

    Attributes:
        rules: the lines that count, in order.
        diagnostics: what was found in the file, in the order of lines; those about the whole file
            come first.
        unknown: why every answer is unknown; None if the file can be used.
    """

    def __init__(
        self,
        rules: tuple[Rule, ...],
        diagnostics: tuple[Diagnostic, ...],
        tree: PatternTree,
        unknown: UnknownReason | None = None,
    ) -> None:
        self.rules = rules
        self.diagnostics = diagnostics
        self.unknown = unknown
        self._tree = tree

    def lookup(self, path: str) -> Ownership:
        """Return who owns one path.

        Raises:
            BadPathError: it is no path from the root of a repository.
        """
        return self.lookup_all((path,))[0]

    def lookup_all(self, paths: Iterable[str]) -> tuple[Ownership, ...]:
        """Return who owns each of several paths, in their order.

        The work is bounded for all of them together: what a hostile file leaves no time for is
        unknown. A path that ends with ``/`` stands for everything in that folder.

        Raises:
            BadPathError: one of them is no path from the root of a repository.
        """
        work = Work()
        asked = [(path, _names(path)) for path in paths]
        return tuple(self._lookup(path, names, work) for path, names in asked)

    def _lookup(self, path: str, names: list[str], work: Work) -> Ownership:
        if self.unknown is not None:
            return Ownership(path, OwnershipStatus.UNKNOWN, reason=self.unknown)
        try:
            rank = self._tree.last_match(names, work)
        except TooCostlyError:
            return Ownership(path, OwnershipStatus.UNKNOWN, reason=UnknownReason.TOO_COMPLEX)
        if rank is None:
            return Ownership(path, OwnershipStatus.UNOWNED)
        rule = self.rules[rank]
        status = OwnershipStatus.OWNED if rule.owners else OwnershipStatus.UNOWNED
        return Ownership(path, status, rule.owners, rule.line, rule.pattern)


def parse_codeowners(data: bytes, *, size: int | None = None) -> CodeOwners:
    """Read a CODEOWNERS file; whatever the bytes are, nothing is raised.

    Args:
        data: its content.
        size: how long the file is said to be. GitHub's contents answer is empty above 1 MB, and
            content of another length than this is not the file.
    """
    if max(len(data), size or 0) >= MAX_FILE_BYTES:
        return _unusable(UnknownReason.TOO_LARGE)
    if size is not None and size != len(data):
        return _unusable(UnknownReason.INCOMPLETE)
    try:
        return _read(data.removeprefix(_MARK))
    except TooCostlyError:
        return _unusable(UnknownReason.TOO_COMPLEX)


def _read(data: bytes) -> CodeOwners:
    tree, rules, findings = PatternTree(), list[Rule](), list[Diagnostic]()
    taken = 0
    for number, raw in enumerate(data.split(b"\n"), start=1):
        if is_blank(raw):
            continue
        taken += 1
        if taken > MAX_RULES:
            raise TooCostlyError
        line = read_line(raw, number)
        findings += line.findings
        findings += _added(line, number, rules, tree)
    findings.sort(key=lambda found: found.line or 0)
    return CodeOwners(tuple(rules), tuple(findings), tree)


def _added(line: Line, number: int, rules: list[Rule], tree: PatternTree) -> list[Diagnostic]:
    """Add a line's rule, and tell of the earlier one that it replaces."""
    if line.pattern is None:
        return []
    replaced = tree.add(line.pattern, len(rules))
    rules.append(Rule(number, line.written, line.owners))
    if replaced is None:
        return []
    return [finding(Code.REPEATED_PATTERN, rules[replaced].line, number)]


def _unusable(reason: UnknownReason) -> CodeOwners:
    return CodeOwners((), (finding(Code(reason.value), None),), PatternTree(), reason)


def _names(path: str) -> list[str]:
    """Return the names in a path; behind a closing / stands an empty one.

    Raises:
        BadPathError: it is no path from the root of a repository.
    """
    if not path or len(path) > MAX_PATH_CHARS:
        raise BadPathError("the path is empty or too long", path)
    if path.startswith("/"):
        raise BadPathError("the path begins with /, and is to be from the repository's root", path)
    if "\\" in path or "\0" in path:
        raise BadPathError("the path holds a backslash or a NUL", path)
    try:
        path.encode()
    except UnicodeEncodeError:
        raise BadPathError("the path is not UTF-8 text", path) from None
    names = path.split("/")
    if not {"", ".", ".."}.isdisjoint(names if names[-1] else names[:-1]):
        raise BadPathError("the path has a part that is empty, . or ..", path)
    return names
