"""Looks through a repository for automation that listens to labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from triage.automation.bot_files import bot_uses
from triage.automation.bots import BOTS, Bot
from triage.automation.nodes import MAX_FILE_BYTES, NotYamlError, read_yaml
from triage.automation.uses import LabelUse, Problem
from triage.automation.workflows import workflow_uses

MAX_FILES: Final = 2_000
WORKFLOWS: Final = (
    ".github/workflows/*.yml",
    ".github/workflows/*.yaml",
    ".github/actions/**/action.yml",
    ".github/actions/**/action.yaml",
    "action.yml",
    "action.yaml",
)


@dataclass(frozen=True, slots=True)
class Scan:
    """What was found.

    Attributes:
        files: the paths that were looked at, in the repository.
        uses: where labels are looked at, sorted.
        problems: what could not be made out, sorted; anything may listen there.
    """

    files: tuple[str, ...]
    uses: tuple[LabelUse, ...]
    problems: tuple[Problem, ...]


def scan(folder: Path) -> Scan:
    """Read every file of a repository that is known to name labels; no file makes it fail."""
    found = list(islice(_files(folder), MAX_FILES + 1))
    uses: set[LabelUse] = set()
    problems: set[Problem] = set()
    for path, bot in found[:MAX_FILES]:
        name = path.relative_to(folder).as_posix()
        try:
            uses.update(_uses(name, bot, _read(path)))
        except NotYamlError as error:
            problems.add(Problem(name, error.line, str(error)))
    if len(found) > MAX_FILES:
        problems.add(Problem(".", 0, f"has more than {MAX_FILES:,} such files"))
    names = sorted({path.relative_to(folder).as_posix() for path, _ in found[:MAX_FILES]})
    return Scan(tuple(names), tuple(sorted(uses)), tuple(sorted(problems)))


def _files(folder: Path) -> Iterator[tuple[Path, Bot | None]]:
    kinds = [(WORKFLOWS, None), *((bot.files, bot) for bot in BOTS)]
    for patterns, bot in kinds:
        for wanted in patterns:
            for path in sorted(folder.glob(wanted)):
                if path.is_file() or path.is_symlink():
                    yield path, bot


def _read(path: Path) -> bytes:
    try:
        if not path.is_file():
            raise NotYamlError("is no regular file")
        with path.open("rb") as stream:
            return stream.read(MAX_FILE_BYTES + 1)
    except OSError:
        raise NotYamlError("cannot be read") from None


def _uses(name: str, bot: Bot | None, data: bytes) -> Iterator[LabelUse]:
    if len(data) > MAX_FILE_BYTES:
        raise NotYamlError(f"has more than {MAX_FILE_BYTES:,} bytes")
    if bot is not None:
        yield from bot_uses(name, bot, data)
        return
    for document in read_yaml(data):
        yield from workflow_uses(name, document)
