"""How an operation and its version are named in one word."""

from __future__ import annotations

import pytest

from triage.cli.errors import InputError
from triage.cli.operation_names import split_version


@pytest.mark.parametrize(("operation", "version"), [("op-6", 6), ("op-6@6", None), ("op-6@6", 6)])
def test_a_version_is_named_either_way(operation: str, version: int | None) -> None:
    """What `triage operations` prints can be typed, and an option of the same version too."""
    assert ("op-6", 6) == split_version(operation, version)


@pytest.mark.parametrize(("operation", "version"), [("op-6", None), ("op-6@6", 7), ("op-6@", None)])
def test_no_version_is_guessed(operation: str, version: int | None) -> None:
    """None, two, and one that is no number are refused."""
    with pytest.raises(InputError):
        split_version(operation, version)
