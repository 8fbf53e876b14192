"""Where rules are written: the file that a setting names, or the tables of ``triage.toml``.

Why it exists: a worker, `triage doctor` and `triage policy` must look at the same file and read it
alike. Which rules are in force is decided elsewhere.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from triage.policy.rules import BUILTIN_RULES, Rules
from triage.policy.rules_file import (
    MAX_FILE_BYTES,
    TABLES,
    RuleFinding,
    RulesFileError,
    read_rules,
)
from triage.policy.toml_text import TomlError, toml_table
from triage.policy.tools import ToolSpec
from triage.settings import Settings, config_file

Mark = tuple[int, int, int, int, int]
"""What is another once a file is: device, inode, size and the two times."""

_NO_FILE: Final = "the file"


class UnreadableRulesError(RulesFileError):
    """The rules file cannot be read at all; the next look may find it again."""


@dataclass(frozen=True, slots=True)
class Written:
    """Rules as they are written.

    Attributes:
        rules: these; the built-in ones where none are written.
        path: where; None where none are written.
        warnings: what is odd about them.
    """

    rules: Rules = BUILTIN_RULES
    path: Path | None = None
    warnings: tuple[RuleFinding, ...] = ()


NOTHING_WRITTEN: Final = Written()


@dataclass(frozen=True, slots=True)
class RulesPlace:
    """Where rules may be written.

    Attributes:
        path: the file, or None if there is none.
        beside_settings: whether that is ``triage.toml``, which may hold settings alone.
    """

    path: Path | None
    beside_settings: bool = False

    @classmethod
    def of(cls, settings: Settings) -> RulesPlace:
        """Return the place that the settings name, or else ``triage.toml`` if there is one.

        Raises:
            SettingsError: ``TRIAGE_CONFIG`` names a file that does not exist.
        """
        if settings.policy is not None:
            return cls(settings.policy)
        return cls(config_file(), beside_settings=True)

    def mark(self) -> Mark | None:
        """Return what changes when the file does; None if it is not there."""
        try:
            return None if self.path is None else _mark(self.path.stat())
        except OSError:
            return None

    def load(self) -> tuple[Mark, bytes]:
        """Return the file's content, with the mark that it had when it was opened.

        Raises:
            UnreadableRulesError: it cannot be read, or there is none.
        """
        if self.path is None:
            raise _unreadable("is not there")
        try:
            # A pipe would keep whoever opens it waiting.
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as stream:
                found = os.fstat(stream.fileno())
                if not stat.S_ISREG(found.st_mode):
                    raise _unreadable("is no regular file")
                return _mark(found), stream.read(MAX_FILE_BYTES + 1)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "no such path"
            raise _unreadable(f"cannot be read: {why}") from None

    def parse(self, data: bytes, tools: Iterable[ToolSpec]) -> Written:
        """Return what a file with this content says.

        Raises:
            RulesFileError: with every mistake that was found, each with its line.
        """
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise RulesFileError(
                RuleFinding(0, _NO_FILE, "is not UTF-8 text", "save it as UTF-8")
            ) from None
        if self.beside_settings and not _has_rules(text):
            return NOTHING_WRITTEN
        file = read_rules(text, [spec.name for spec in tools])
        return Written(file.rules, self.path, file.warnings)

    def read(self, tools: Iterable[ToolSpec]) -> Written:
        """Return what is written there now; raises what `load` and `parse` raise."""
        return self.parse(self.load()[1], tools) if self.path else NOTHING_WRITTEN


def _has_rules(text: str) -> bool:
    try:
        return not TABLES.isdisjoint(toml_table(text))
    except TomlError:
        # Whatever it was meant to hold: reading it names the line.
        return True


def _mark(found: os.stat_result) -> Mark:
    return (
        found.st_dev,
        found.st_ino,
        found.st_size,
        found.st_mtime_ns,
        found.st_ctime_ns,
    )


def _unreadable(message: str) -> UnreadableRulesError:
    return UnreadableRulesError(RuleFinding(0, _NO_FILE, message, "check its path and rights"))
