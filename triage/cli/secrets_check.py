"""Checks that nobody else on this machine can read the files that secrets are taken from."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from triage.cli.findings import Finding, Level
from triage.settings_sources import variable

NAME: Final = "secrets"
_OTHERS_MAY: Final = 0o077


def check(files: Mapping[str, Path]) -> Iterator[Finding]:
    """Yield a row for each secret's file that others may open; a container's may have to be.

    Args:
        files: the file of each secret that is taken from one.
    """
    for name, path in sorted(files.items()):
        try:
            is_open = path.stat().st_mode & _OTHERS_MAY
        except OSError:
            # Reading it says what is wrong.
            continue
        if is_open:
            detail = f"{variable(name)}_FILE: {path} is open to others than its owner"
            yield Finding(NAME, Level.WARN, detail, f"chmod go= {shlex.quote(str(path))}")
