"""Which runs a worker lets go of."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from triage import kept_runs
from triage.kept_runs import HEADROOM, QUIET_SECONDS, KeptRuns

LIMIT = 3


class _Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> _Clock:
    """A clock that stands until it is moved on."""
    clock = _Clock()
    monkeypatch.setattr(kept_runs, "monotonic", clock)
    return clock


def _kept() -> tuple[KeptRuns, list[str]]:
    """Return runs of a worker, and which of them it is told to forget."""
    forgotten: list[str] = []
    bridge = SimpleNamespace(request_workflow_eviction=forgotten.append)
    kept = KeptRuns(LIMIT)
    kept.attach(cast("Any", SimpleNamespace(_bridge_worker=bridge)))
    return kept, forgotten


def _use(kept: KeptRuns, *names: str, is_busy: bool = False) -> None:
    for name in names:
        kept.used(name, is_busy=is_busy)


def test_the_longest_unused_leaves_first(clock: _Clock) -> None:
    """Of more runs than are kept those go that nobody used for longest, each once."""
    kept, forgotten = _kept()
    _use(kept, "a", "b", "c", "a")
    clock.now += QUIET_SECONDS
    _use(kept, "d", "e")
    assert ["b", "c"] == forgotten
    _use(kept, "d")
    assert ["b", "c"] == forgotten
    kept.gone("b")
    kept.gone("c")
    _use(kept, "f")
    assert ["b", "c", "a"] == forgotten


@pytest.mark.usefixtures("clock")
def test_what_was_just_used_stays_while_there_is_room() -> None:
    """Questions that are on their way find their run; only a crowd goes at once."""
    kept, forgotten = _kept()
    names = [f"run-{number}" for number in range(LIMIT + HEADROOM // 2)]
    _use(kept, *names[:-1])
    assert [] == forgotten
    _use(kept, names[-1])
    assert names[: HEADROOM // 2] == forgotten


def test_a_busy_run_stays(clock: _Clock) -> None:
    """A run in the middle of its workflow task is let go of when that is over, at the earliest."""
    kept, forgotten = _kept()
    _use(kept, "busy", is_busy=True)
    _use(kept, "a", "b")
    clock.now += QUIET_SECONDS
    _use(kept, "c")
    assert ["a"] == forgotten
    _use(kept, "busy")
    clock.now += QUIET_SECONDS
    _use(kept, "d")
    assert ["a", "b"] == forgotten
