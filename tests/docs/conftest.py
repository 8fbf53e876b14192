"""A `triage up` for each module that runs lines."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.docs.terminal import Terminal, opened_terminal


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    """A terminal beside one in which `triage up` runs."""
    with opened_terminal(tmp_path_factory.mktemp("terminal")) as opened:
        yield opened
