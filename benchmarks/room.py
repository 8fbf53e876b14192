"""Room on the disk: a server or a worker on a full one tries again and again, and ends nothing."""

from __future__ import annotations

import asyncio
import errno
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from triage.settings import process_environment

NEEDED_BYTES: Final = 200_000_000
"""What a measurement of some minutes leaves on the disk while it runs."""
LEAST_BYTES: Final = 20_000_000
"""With less than this left, what is measured is how the disk fills up."""
_LOOK_SECONDS: Final = 1.0
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)


class NoSpace(Exception):  # noqa: N818 - names what was found
    """The disk is full, or as good as full."""


def temporary_folder() -> Path:
    """Return where measurements keep their files, full or not."""
    return Path(process_environment().get("TMPDIR") or tempfile.gettempdir())


def need_room(folder: Path, least: int) -> None:
    """Look whether there is room.

    Raises:
        NoSpace: a folder has less than that many bytes left, or is not there.
    """
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        raise NoSpace(f"no space in {folder}: {error.strerror}; set TMPDIR") from None
    if free < least:
        raise NoSpace(
            f"no space left in {folder}: {free / 1e6:.0f} MB, where {least / 1e6:.0f} MB are"
            " needed; make room, or set TMPDIR"
        )


@asynccontextmanager
async def enough_room(folder: Path) -> AsyncIterator[None]:
    """End what is done inside as soon as the disk is as good as full.

    Raises:
        NoSpace: it was; whatever else went wrong by then followed from that.
    """
    try:
        async with asyncio.TaskGroup() as group:
            watch = group.create_task(_watch(folder))
            yield
            watch.cancel()
    except Exception as error:
        found = first_fault(error)
        if isinstance(found, OSError) and found.errno in _FULL:
            raise NoSpace(f"no space left in {folder}") from error
        need_room(folder, LEAST_BYTES)
        raise found from error


def first_fault(error: BaseException) -> BaseException:
    """Return the first of things that ran side by side and failed."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def _watch(folder: Path) -> None:
    while True:
        need_room(folder, LEAST_BYTES)
        await asyncio.sleep(_LOOK_SECONDS)
