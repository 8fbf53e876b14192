"""`triage owners check`: who owns a path by a CODEOWNERS file, and what is wrong with the file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import typer

from triage.cli.errors import InputError
from triage.cli.inputs import read_bytes
from triage.cli.output import Format, columns, put, put_json, put_table, say
from triage.cli.text import shorten, wrap
from triage.policy.codeowners import (
    BadPathError,
    CodeOwners,
    Ownership,
    parse_codeowners,
)
from triage.policy.codeowners_findings import Diagnostic, Severity

INDENT: Final = "  "
PATH_CHARS: Final = 200
PATH_HINT: Final = "give paths as git does: from the repository's root, with / between names"


def check(file: Path, paths: Sequence[str], format_: Format, *, strict: bool) -> None:
    """Print one answer a path, then what was found in the file.

    The answers are on stdout. The findings follow there as text, and go to stderr beside JSON.

    Raises:
        InputError: the file cannot be read, or a path is none.
        typer.Exit: with status 1 where the file has errors, or warnings if these are to fail.
    """
    data = read_bytes(file)
    owners = parse_codeowners(data)
    answers = _answers(owners, paths)
    texts = data.split(b"\n")
    lines = [line for found in owners.diagnostics for line in _finding_lines(found, texts)]
    if format_ is Format.JSON:
        put_json([_as_json(answer) for answer in answers])
        say(*lines)
    else:
        if answers:
            put_table(("PATH", "STATUS", "OWNERS", "LINE", "RULE"), map(_cells, answers))
        put(*lines, _summary(owners))
    severities = {found.severity for found in owners.diagnostics}
    if Severity.ERROR in severities or (strict and severities):
        raise typer.Exit(1)


def _answers(owners: CodeOwners, paths: Sequence[str]) -> tuple[Ownership, ...]:
    try:
        return owners.lookup_all(paths)
    except BadPathError as error:
        raise InputError(f"{shorten(error.path, PATH_CHARS)}: {error}", PATH_HINT) from None


def _as_json(answer: Ownership) -> dict[str, object]:
    return {
        "path": answer.path,
        "status": answer.status.value,
        "owners": list(answer.owners),
        "line": answer.line,
    }


def _cells(answer: Ownership) -> tuple[str, ...]:
    line = "-" if answer.line is None else str(answer.line)
    return (answer.path, answer.status.value, " ".join(answer.owners) or "-", line, _rule(answer))


def _rule(answer: Ownership) -> str:
    if answer.reason is not None:
        return f"({answer.reason.value})"
    return answer.pattern or "(no line matches)"


def _finding_lines(found: Diagnostic, texts: Sequence[bytes]) -> Iterator[str]:
    """Yield a finding for people, with the line that it is about behind a bar."""
    where = "file" if found.line is None else f"line {found.line}"
    what = f"{found.severity.value} {found.code.value}"
    yield from wrap(f"{where}: {what}: {found.message}", columns())
    if found.line is not None:
        text = texts[found.line - 1].rstrip(b"\r").decode("utf-8", "backslashreplace")
        yield f"{INDENT}| {shorten(text, columns() - len(INDENT) - 2)}"
    yield from (f"{INDENT}{line}" for line in wrap(f"hint: {found.hint}", columns() - len(INDENT)))


def _summary(owners: CodeOwners) -> str:
    counts = [
        (len(owners.rules), "rule"),
        *((_count(owners, severity), severity.value) for severity in Severity),
    ]
    return ", ".join(f"{count} {name}{'' if count == 1 else 's'}" for count, name in counts)


def _count(owners: CodeOwners, severity: Severity) -> int:
    return sum(found.severity is severity for found in owners.diagnostics)
