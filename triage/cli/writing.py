"""Writes what a command was asked to write into files of the user's."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from triage.cli.errors import InputError
from triage.cli.inputs import STDIN


def check_places(written: Iterable[Path | None], read: Iterable[Path | None]) -> None:
    """See that files can be written before the work is done, which may take long.

    No folder is made: a name that was mistyped would be one, and what was written hard to find.
    Nothing is left of having tried, and what is in a file stays in it.

    Args:
        written: the files; None is none.
        read: what the command reads, and must not write over, whatever its name is there: by a
            link, a hard link or standard input, too.

    Raises:
        InputError: a file's folder is not there, it is a folder itself or another file of these, or
            it cannot be opened, as on a disk that is read only.
    """
    taken = {_identity(path) for path in read if path is not None}
    for path in written:
        if path is None:
            continue
        if not os.path.isdir(path.absolute().parent):  # noqa: PTH112 - a name too long is no error
            raise _refused(path, f"there is no folder {path.parent}", "make it first")
        if os.path.isdir(path):  # noqa: PTH112 - likewise
            raise _refused(path, "it is a folder", "name a file in it")
        place = os.path.realpath(path)
        # A file that is not there yet has its name only.
        names = {place, _identity(path, can_be_stdin=False)}
        if taken & names and not _is_device(place):
            raise _refused(path, "this command reads or writes it already", "name another file")
        _try(path, place)
        taken |= names


def write(path: Path, data: bytes) -> None:
    """Write a file, in place of one that is there.

    Raises:
        InputError: it cannot be written.
    """
    try:
        path.write_bytes(data)
    except (OSError, ValueError) as error:
        raise _refused(path, getattr(error, "strerror", None) or "no such path") from None


def _try(path: Path, place: str) -> None:
    """Open a file as it will be opened, or make it and take it away again."""
    if _is_device(place):
        return
    is_there = os.path.exists(place)  # noqa: PTH110 - likewise
    how = os.O_WRONLY if is_there else os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        os.close(os.open(place, how, 0o600))
        if not is_there:
            os.unlink(place)  # noqa: PTH108 - likewise
    except (OSError, ValueError) as error:
        raise _refused(path, getattr(error, "strerror", None) or "no such path") from None


def _identity(path: Path, *, can_be_stdin: bool = True) -> tuple[int, int] | str:
    """Return what all names of a file have in common, or the name of one that is not there."""
    try:
        found = os.fstat(0) if can_be_stdin and path == STDIN else os.stat(path)  # noqa: PTH116 - likewise
    except (OSError, ValueError):
        return os.path.realpath(path)
    return found.st_dev, found.st_ino


def _is_device(place: str) -> bool:
    """Whether it is something such as /dev/null, which may be written to twice."""
    return os.path.exists(place) and not os.path.isfile(place)  # noqa: PTH110, PTH113 - likewise


def _refused(path: Path, why: str, hint: str = "") -> InputError:
    return InputError(f"{path}: cannot be written: {why}", hint)
