"""Labelled issues as people hand them over: one JSON object a line.

Why it exists: such files are exported by hand and are rarely clean. Each mistake is named by its
line and quotes nothing of it, and a file is refused as a whole, so that nobody learns from half of
what they meant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from triage.contracts.base import ContractError
from triage.contracts.canonical import parse_json, short_hash
from triage.contracts.wording import in_words
from triage.json_lines import Mistakes, numbered_lines
from triage.models.learned_weights import MAX_GROUP_CHARS, MAX_GROUPS, MAX_LABELS, LabelName

MAX_ROWS: Final = 50_000
MAX_LINE_BYTES: Final = 4_194_304


class RowsError(ValueError):
    """The file holds no usable issues; the message names lines and labels, and quotes no issue."""


class IssueRow(BaseModel):
    """One labelled issue. Keys that are not here are left alone; exports have many.

    Attributes:
        title: may be empty, as a body may be.
        body: empty where it is missing or null.
        label: what people said this issue is.
        group: where it comes from, such as a repository's name; empty where nothing is said.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    title: str
    body: str | None = ""
    label: LabelName
    group: Annotated[str, StringConstraints(max_length=MAX_GROUP_CHARS)] | None = ""

    @property
    def key(self) -> str:
        """Return a digest of what was written, whatever its label: equal texts have one key."""
        return short_hash(self.title, self.body or "", self.group or "")


@dataclass(frozen=True, slots=True)
class Rows:
    """The issues of a file, in an order that depends on their content alone.

    Attributes:
        issues: without exact repetitions.
        repeated: how many lines repeated another one in title, body, label and group.
    """

    issues: tuple[IssueRow, ...]
    repeated: int

    @property
    def labels(self) -> tuple[str, ...]:
        """Return the labels, sorted."""
        return tuple(sorted({row.label for row in self.issues}))

    @property
    def groups(self) -> tuple[str, ...]:
        """Return the groups that have a name, sorted."""
        return tuple(sorted({row.group for row in self.issues if row.group}))


def read_rows(data: bytes) -> Rows:
    """Read labelled issues; blank lines are passed over.

    Raises:
        RowsError: with the lines that are wrong, or what is wrong with all of them.
    """
    found: dict[tuple[str, str], IssueRow] = {}
    mistakes = Mistakes()
    count = 0
    for number, line in numbered_lines(data):
        count += 1
        read = _row(line)
        if isinstance(read, str):
            mistakes.add(f"line {number}: {read}")
        else:
            found.setdefault((read.key, read.label), read)
        if count > MAX_ROWS:
            raise RowsError(f"has more than {MAX_ROWS:,} issues")
    if mistakes:
        raise RowsError(str(mistakes))
    rows = Rows(tuple(found[key] for key in sorted(found)), count - len(found))
    _check(rows)
    return rows


def _row(line: bytes) -> IssueRow | str:
    """Return the issue of a line, or what is wrong with the line."""
    if len(line) > MAX_LINE_BYTES:
        return f"has more than {MAX_LINE_BYTES:,} bytes"
    try:
        value = parse_json(line, "it")
    except ContractError as error:
        return str(error)
    if not isinstance(value, dict):
        return "is no JSON object"
    try:
        return IssueRow.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{first['loc'][0]}: {in_words(first)}"


def _check(rows: Rows) -> None:
    """Refuse what no file of labelled issues is.

    Raises:
        RowsError: it is empty, or has more labels or groups than anybody means.
    """
    if not rows.issues:
        raise RowsError("has no issues")
    if len(rows.labels) > MAX_LABELS:
        raise RowsError(f"has more than {MAX_LABELS} labels")
    if len(rows.groups) > MAX_GROUPS:
        raise RowsError(f"has more than {MAX_GROUPS} groups")
