"""Writes what a command was asked to write into a file of the user's."""

from __future__ import annotations

from pathlib import Path

from triage.cli.errors import InputError


def check_place(path: Path | None) -> None:
    """See that a file can be put there before the work is done, which may take long.

    No folder is made: a name that was mistyped would be one, and what was written hard to find.

    Raises:
        InputError: its folder is not there, or it is a folder itself.
    """
    if path is None:
        return
    folder = path.absolute().parent
    if not folder.is_dir():
        raise _refused(path, f"there is no folder {path.parent}", "make it first")
    if path.is_dir():
        raise _refused(path, "it is a folder", "name a file in it")


def write(path: Path, data: bytes) -> None:
    """Write a file, in place of one that is there.

    Raises:
        InputError: it cannot be written.
    """
    try:
        path.write_bytes(data)
    except (OSError, ValueError) as error:
        raise _refused(path, getattr(error, "strerror", None) or "no such path") from None


def _refused(path: Path, why: str, hint: str = "") -> InputError:
    return InputError(f"{path}: cannot be written: {why}", hint)
