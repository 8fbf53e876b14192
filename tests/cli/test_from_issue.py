"""A run is started for an issue by its name: the tracker has the text, and nobody types it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from pydantic import JsonValue

from tests.cli.conftest import Stack, Triage
from tests.cli.stored import in_store_as_it_is
from tests.workflow.decisions import as_object
from triage.cli.from_issue import read
from triage.cli.orders import Order, complete
from triage.cli.stores import open_store
from triage.storage.admission import Admission, Content, Delivery, Subject
from triage.storage.engine import Store
from triage.storage.outbox import Outbox
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


def _delivered(stack: Stack, number: str, workflow_id: str | None) -> None:
    """Leave what a delivery leaves about an issue: a request, and the run that has it."""

    async def deliver(store: Store) -> None:
        issue = Subject(
            tenant="default", source="github", repository="Local", repository_id="1", number=number
        )
        delivery = Delivery(
            delivery_id=uuid4().hex, event="issues", action="opened", body_digest=number
        )
        content = Content(digest=number, at=datetime.now(UTC), document=b"{}")
        await Admission(store, timedelta(days=1)).admit(delivery, issue, content)
        held = await Outbox(store).take()
        assert held is not None
        if workflow_id is not None:
            assert await Outbox(store).started(held, workflow_id, None)

    in_store_as_it_is(stack.up.home, deliver)


def test_an_issue_whose_delivery_has_a_run_gets_no_second_one(stack: Stack) -> None:
    """The run is named; another one is started beside it only if told so, or after it ended."""
    text = ("--title", "Orders fail", "--body", "Every POST fails in backend/api.py with 500.")
    number = stack.triage("issues", "add", *text, "--author", "eve").out.strip()
    run = f"issue-of-{number}"
    first = ("start", f"local#{number}", "--mode", "approve", "--id", run)
    assert 0 == stack.triage(*first).status
    _delivered(stack, number, run)
    for more in ((), ("--id", f"other-{number}")):
        answer = stack.triage("start", f"local#{number}", *more)
        assert (1, "") == (answer.status, answer.out)
        assert f"a run about this issue is under way: {run}; nothing was started" in answer.err
        assert f"'triage show {run}' shows it; --anyway" in answer.err
    told = stack.triage("start", f"local#{number}", "--id", f"told-{number}", "--anyway")
    assert (0, f"told-{number}") == (told.status, told.out.strip())
    stack.temporal("workflow", "terminate", "--workflow-id", run)
    assert 0 == stack.triage("start", f"local#{number}", "--mode", "shadow").status


def test_an_issue_whose_delivery_is_being_started_gets_no_other_run(stack: Stack) -> None:
    """Between the delivery and its run nothing is started by hand, unless told so."""
    number = stack.triage("issues", "add", "--title", "One", "--body", "text").out.strip()
    _delivered(stack, number, None)
    answer = stack.triage("start", f"local#{number}")
    assert (1, True) == (answer.status, "is about to be started" in answer.err), answer.err


def test_the_tenant_of_an_options_file_counts_for_a_named_issue(tmp_path: Path) -> None:
    """Where the issue is comes from the tracker; whose run it is stays what the file says."""
    file = tmp_path / "options.json"
    file.write_text('{"context": {"tenant": "acme", "repository": "x/y", "issue": "9"}}')
    known: dict[str, JsonValue] = {"tracker": "local", "repository": "acme/shop", "issue": "1"}
    request: dict[str, JsonValue] = {
        "request_id": "r",
        "title": "t",
        "body": "b",
        "changed_paths": [],
        "source": "s",
    }
    order = Order(Path("acme/shop#1"), None, None, file, None)
    _, options = complete(order, request, {"context": known}).inputs
    assert {"tenant": "acme", **known} == as_object(options)["context"]


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
    assert "acme-shop-1" == as_object(other.request)["request_id"]
