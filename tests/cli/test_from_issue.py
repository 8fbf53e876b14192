"""A run is started for an issue by its name: the tracker has the text, and nobody types it."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.conftest import Stack, Triage
from tests.workflow.decisions import as_object
from triage.cli.from_issue import read
from triage.cli.orders import Order
from triage.cli.stores import open_store
from triage.trackers.base import IssueNotFound, TrackedIssue
from triage.trackers.factory import MAKERS
from triage.trackers.listing import ListedRepository
from triage.trackers.local import LocalTracker


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


class Folding(LocalTracker):
    """A tracker that takes letters of either case for the same, as GitHub does."""

    async def get_issue(self, repository: str, number: str) -> TrackedIssue | IssueNotFound:
        """See base class."""
        found = await super().get_issue(repository.lower(), number)
        return replace(found, repository=repository)

    async def repository(self, repository: str) -> ListedRepository:
        """See base class."""
        return await super().repository(repository.lower())


async def test_a_repository_in_other_letters_is_the_same_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its runs have one id and one target, by the name that the tracker has."""
    monkeypatch.setenv("TRIAGE_HOME", str(tmp_path))
    monkeypatch.setitem(MAKERS, "local", lambda _settings, store: Folding(store))
    async with open_store() as store:
        await LocalTracker(store).create_issue("acme/shop", title="One", body="x", author="eve")
    typed = [Path(f"{name}#1") for name in ("acme/shop", "Acme/Shop")]
    same, other = [await read(Order(name, None, None, None, None)) for name in typed]
    assert same == other
    assert "acme-shop-1" == as_object(other[0])["request_id"]
