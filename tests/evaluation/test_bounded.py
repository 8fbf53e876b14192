"""A file that never ends is refused in words, like any other that cannot be read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from triage import bounded, replay
from triage.bounded import read_at_most
from triage.evaluation import dataset, fixture, thresholds
from triage.evaluation.dataset import read_dataset
from triage.evaluation.fixture import FixtureError, read_document
from triage.evaluation.thresholds import read_thresholds
from triage.replay import HistoryError, read_history

ENDLESS = Path("/dev/zero")


@pytest.mark.parametrize("read", [read_dataset, read_document, read_thresholds, read_history])
def test_no_file_is_read_without_a_bound(
    read: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a data set, a fixture, thresholds nor a history: a link may lead to /dev/zero."""
    for module in (dataset, fixture, thresholds, replay):
        monkeypatch.setattr(module, "read_at_most", lambda path, _limit: read_at_most(path, 10))
    with pytest.raises((FixtureError, HistoryError), match="cannot be read"):
        read(ENDLESS)


def test_a_file_of_the_bound_is_read(tmp_path: Path) -> None:
    """One byte more is too much."""
    file = tmp_path / "file"
    file.write_bytes(b"12")
    assert b"12" == bounded.read_at_most(file, 2)
    with pytest.raises(OSError, match="too large"):
        bounded.read_at_most(file, 1)
