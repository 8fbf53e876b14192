"""Writes what a command was asked to write into files of the user's."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from triage.cli.errors import InputError


def check_places(written: Iterable[Path | None], read: Iterable[Path | None]) -> None:
    """See that files can be written before the work is done, which may take long.

    No folder is made: a name that was mistyped would be one, and what was written hard to find.
    Nothing is left of having tried, and what is in a file stays in it.

    Args:
        written: the files; None is none.
        read: what the command reads, and must not write over.

    Raises:
        InputError: a file's folder is not there, it is a folder itself or another file of these, or
            it cannot be opened, as on a disk that is read only.
    """
    taken = {os.path.realpath(path) for path in read if path is not None}
    for path in written:
        if path is None:
            continue
        if not os.path.isdir(path.absolute().parent):  # noqa: PTH112 - a name too long is no error
            raise _refused(path, f"there is no folder {path.parent}", "make it first")
        if os.path.isdir(path):  # noqa: PTH112 - likewise
            raise _refused(path, "it is a folder", "name a file in it")
        place = os.path.realpath(path)
        if place in taken and not _is_device(place):
            raise _refused(path, "this command reads or writes it already", "name another file")
        _try(path, place)
        taken.add(place)


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


def _is_device(place: str) -> bool:
    """Whether it is something such as /dev/null, which may be written to twice."""
    return os.path.exists(place) and not os.path.isfile(place)  # noqa: PTH110, PTH113 - likewise


def _refused(path: Path, why: str, hint: str = "") -> InputError:
    return InputError(f"{path}: cannot be written: {why}", hint)
