"""`triage poll` looks once, and says what it cannot do."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
from pathlib import Path

import pytest

from tests.cli.conftest import NOWHERE
from tests.cli.in_process import Typed
from tests.fakes.github_people import Caller
from tests.unit.trackers.far_ends import github_end, github_tracker
from triage.cli import backfilling
from triage.cli.errors import RefusedError
from triage.ingest.backfill import Pace, Wanted
from triage.storage.backfills import BackfillHeldError


@pytest.fixture
def typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Typed:
    """Commands in this process."""
    return Typed(tmp_path, monkeypatch, capsys)


def test_without_a_repository_or_github_there_is_nothing_to_look_through(typed: Typed) -> None:
    """Both are told with what to set."""
    assert 2 == typed("poll").status
    answer = typed("poll", "acme/shop")
    assert 2 == answer.status
    assert "set TRIAGE_TRACKER to github" in answer.err


def test_a_mode_that_there_is_not_is_told(typed: Typed) -> None:
    """A backfill says which modes there are before it opens anything."""
    answer = typed("backfill", "acme/shop", "--mode", "bold")
    assert 2 == answer.status
    assert "shadow, suggest, approve" in answer.err


def test_no_time_between_since_and_until_is_told(typed: Typed) -> None:
    """A range that holds no issue is a mistake, and not a backfill of none."""
    range_ = ("--since", "2026-02-01", "--until", "2026-02-01")
    answer = typed("backfill", "acme/shop", *range_)
    assert (2, "") == (answer.status, answer.out)
    assert "error: --since is not before --until\n" in answer.err


def test_ctrl_c_says_how_far_a_backfill_is_and_how_it_goes_on(
    typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever stops it learns that nothing is lost."""

    async def carried(_: Wanted, __: Pace, counted: backfilling.Counted) -> None:
        counted(3)
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.Event().wait()

    monkeypatch.setattr(backfilling, "_carried", carried)
    answer = typed("backfill", "acme/shop")
    assert (130, "") == (answer.status, answer.out)
    assert "stopped after 3 issues; the same command goes on where it stopped\n" == answer.err


def test_a_backfill_that_another_process_carries_is_refused(
    typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told which one, why, and how long one that was killed is in the way."""

    async def carried(_: Wanted, __: Pace, ___: backfilling.Counted) -> None:
        raise BackfillHeldError

    monkeypatch.setattr(backfilling, "_carried", carried)
    answer = typed("backfill", "acme/shop")
    assert 1 == answer.status
    assert "error: a backfill of acme/shop is under way; nothing was begun\nhint: " in answer.err
    assert "after 60 s" in answer.err


def test_a_slow_backfill_says_how_far_it_is_after_a_silence(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Where no bar can be shown, nobody waits for the 25th issue to hear of it."""
    clock = itertools.count(0, backfilling.SILENCE_SECONDS / 2)
    lines = backfilling.Lines(lambda: next(clock))
    for done in range(5):
        lines(done)
    assert ["0 issues", "2 issues", "4 issues"] == capsys.readouterr().err.splitlines()


def test_a_tracker_that_is_away_is_told(typed: Typed) -> None:
    """Nothing is found and nothing is lost: the status says that a service is unreachable."""
    env = {
        "TRIAGE_TRACKER": "github",
        "TRIAGE_GITHUB_TOKEN": "reader",
        "TRIAGE_GITHUB_BASE_URL": f"http://{NOWHERE}",
    }
    answer = typed("poll", "acme/shop", "--format", "json", env=env)
    assert 3 == answer.status
    assert [("acme/shop", 0, False)] == [
        (look["repository"], look["admitted"], look["whole"]) for look in answer.json()
    ]
    assert "acme/shop" in answer.err
    old = typed("backfill", "acme/shop", env=env)
    assert (3, True) == (old.status, "connection refused" in old.err)
    assert "hint: 'triage doctor' says more" in old.err


def test_a_repository_that_the_local_tracker_does_not_know_is_no_empty_one(typed: Typed) -> None:
    """A misspelt name is refused before anything is started, and what there is stands beside it."""
    nothing = typed("backfill", "nosuch/repo")
    assert (1, "") == (nothing.status, nothing.out)
    assert "the tracker local shows no repository nosuch/repo" in nothing.err
    assert "there is none in " in nothing.err
    typed("issues", "add", "--repository", "acme/shop", "--title", "Crash", "--body", "It crashes.")
    assert "hint: it knows acme/shop\n" in typed("backfill", "Acme/shop").err
    away = typed("backfill", "acme/shop", env={"TEMPORAL_ADDRESS": NOWHERE})
    assert (3, False) == (away.status, "no repository" in away.err)


async def test_a_repository_that_github_does_not_show_is_told_with_what_may_be_missing(
    tmp_path: Path,
) -> None:
    """Its name, what GitHub said, and that a private one needs a token that may read it."""
    async with github_end(tmp_path) as end:
        name = await backfilling._name_of(end.over_github, "github", end.repository)
        assert end.repository == name
        elsewhere = Caller(login="elsewhere", repositories=frozenset())
        end.github.api.people.callers["elsewhere"] = elsewhere
        tracker = github_tracker(end.github, token="elsewhere")
        with pytest.raises(RefusedError, match=end.repository) as found:
            await backfilling._name_of(tracker, "github", end.repository)
    assert "(repository_not_found)" in str(found.value)
    assert "a token or an App that may read it" in found.value.hint
