"""`triage poll` looks once, and says what it cannot do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import NOWHERE
from tests.cli.in_process import Typed


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
