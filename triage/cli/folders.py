"""Makes the folders that hold this system's data."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from triage.cli.errors import InputError

_PRIVATE: Final = 0o700


def made_folder(folder: Path) -> Path:
    """Make a folder that only its owner can read, unless it is there.

    Raises:
        InputError: it cannot be made, or is no folder.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=_PRIVATE)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made: {error.strerror}") from None
    return folder
