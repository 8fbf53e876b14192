"""Where the files are that travel with the code.

They lie beside the package in a clone and inside it once installed from a wheel, so nobody else
may build such a path.
"""

from pathlib import Path

_PACKAGE = Path(__file__).parent


def fixtures_path(*parts: str) -> Path:
    """Return the folder of the fixtures, or the file in it that `parts` name."""
    installed = _PACKAGE / "_fixtures"
    base = installed if installed.is_dir() else _PACKAGE.parent / "fixtures"
    return base.joinpath(*parts)
