"""A run is started for an issue by its name: the tracker has the text, and nobody types it."""

from pathlib import Path

import pytest

from tests.cli.conftest import Stack, Triage


def test_an_issue_is_started_by_its_name(stack: Stack) -> None:
    """The request holds the issue's text, and the run is about that very issue."""
    text = ("--title", "Orders fail", "--body", "Every POST fails in backend/api.py with 500.")
    number = stack.triage("issues", "add", *text, "--author", "eve").out.strip()
    answer = stack.triage("start", f"local#{number}", "--mode", "shadow", "--wait")
    assert 0 == answer.status, answer.err
    told = stack.triage("show", f"local-{number}", "--format", "json").json()
    assert f"local-{number}" == told["response"]["request_id"]
    again = stack.triage("start", f"local#{number}")
    assert (1, True) == (again.status, "exists already" in again.err)


@pytest.mark.parametrize(
    ("name", "status", "words"),
    [
        ("local#404", 1, "the tracker local has no issue local#404"),
        ("acme/shop/x#1", 2, "an issue is named REPOSITORY#NUMBER"),
        ("local#", 2, "an issue is named REPOSITORY#NUMBER"),
    ],
)
def test_what_names_no_issue_is_told(
    triage: Triage, tmp_path: Path, name: str, status: int, words: str
) -> None:
    """A name that leads nowhere starts nothing, and says what would."""
    triage("issues", "add", "--title", "One", "--body", "text", "--create")
    answer = triage("start", name)
    assert (status, True) == (answer.status, words in answer.err), answer.err
    assert "Traceback" not in answer.err
    assert (tmp_path / "triage.db").exists()
