"""Files that users name, read up to a bound: a path may lead to what never ends."""

from __future__ import annotations

import errno
import os
from pathlib import Path


def read_at_most(path: Path, limit: int) -> bytes:
    """Return a file's content of at most `limit` bytes.

    Raises:
        OSError: it cannot be read, or is larger; its `strerror` says which.
    """
    with path.open("rb") as stream:
        data = stream.read(limit + 1)
    if len(data) > limit:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    return data
