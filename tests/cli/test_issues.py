"""Checks the local tracker's commands, which need no server."""

from pathlib import Path

import pytest

from tests.cli.conftest import Triage
from tests.cli.in_process import Typed
from tests.cli.stored import in_store
from triage.storage.audit import heads


@pytest.fixture
def typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Typed:
    """Commands in this process."""
    return Typed(tmp_path, monkeypatch, capsys)


def test_issues_are_added_listed_and_shown(triage: Triage, tmp_path: Path) -> None:
    """Numbers follow each other, and text comes back exactly; the database is made to order."""
    body = tmp_path / "body.md"
    body.write_text("First line\nevents\n\x1b[31mred", encoding="utf-8")
    first = triage("issues", "add", "--title", "One", "--body-file", body, "--create")
    second = triage("issues", "add", "--title", "Zwei \u202e", "--body", "text", "--author", "eve")
    taken = triage("issues", "add", "--title", "Again", "--body", "text", "--number", "1")
    listed = triage("issues", "list", "--format", "json").json()
    shown = triage("issues", "show", "1", "--format", "json").json()
    text = triage("issues", "show", "1").out
    assert ("1\n", "2\n", 1) == (first.out, second.out, taken.status)
    assert [("1", "One"), ("2", "Zwei \u202e")] == [(i["number"], i["title"]) for i in listed]
    assert ["number", "title", "body", "labels", "events"] == list(shown)
    assert body.read_text(encoding="utf-8") == shown["body"]
    assert ["created"] == [event["action"] for event in shown["events"]]
    assert "  | events\n" in text
    assert r"\u{1b}[31mred" in text


@pytest.mark.parametrize(
    "arguments",
    [
        ("add", "--title", "No text"),
        ("add", "--title", "Both", "--body", "x", "--body-file", "y"),
        ("add", "--title", "  ", "--body", "x"),
        ("add", "--title", "x", "--body", ""),
        ("add", "--title", "x" * 5000, "--body", "x"),
        ("add", "--title", "x", "--body-file", "/no/such/file"),
        ("add", "--title", "x", "--body-file", "/"),
        ("add", "--title", "x", "--body", "x", "--repository", "no/where/else"),
        ("add", "--title", "x", "--body", "x", "--number", "a b/../c"),
    ],
    ids=range(9),
)
def test_what_is_no_issue_is_refused(triage: Triage, arguments: tuple[str, ...]) -> None:
    """Bad input ends with status 2 and a sentence, and nothing is stored."""
    answer = triage("issues", *arguments)
    assert (2, "") == (answer.status, answer.out)
    assert answer.err.startswith("error: ")


def test_an_empty_tracker_says_where_it_is(triage: Triage, tmp_path: Path) -> None:
    """Whoever finds nothing is told in which database, and how to open an issue."""
    in_store(tmp_path, heads)
    answer = triage("issues", "list")
    assert (0, "") == (answer.status, answer.out)
    assert f"there are no issues in local of SQLite {tmp_path / 'triage.db'}" in answer.err
    assert "triage issues add --title TITLE --body TEXT" in answer.err


def test_the_hint_opens_the_issue_where_it_was_looked_for(typed: Typed, tmp_path: Path) -> None:
    """Whoever finds nothing in a repository is told how to open an issue in that one."""
    in_store(tmp_path, heads)
    hint = "triage issues add --repository acme/shop --title TITLE --body TEXT"
    assert hint in typed("issues", "list", "--repository", "acme/shop").err


def test_a_person_puts_labels_on_and_takes_them_off(typed: Typed) -> None:
    """The rules' labels are there from the first one on, and each act is kept with its name."""
    add = ("add", "--repository", "acme/shop", "--title", "x", "--body", "x", "--create")
    typed("issues", *add)
    on = typed("issues", "label", "acme/shop#1", "Bug", "component:api", "--as", "ann")
    off = typed("issues", "unlabel", "acme/shop#1", "bug", "BUG", "--as", "eve")
    shown = typed("issues", "show", "1", "--repository", "acme/shop", "--format", "json").json()
    assert "acme/shop#1  open  bug, component:api\n" == on.out
    assert "acme/shop#1  open  component:api\n" == off.out
    acts = [(event["action"], event["label"], event["by"]) for event in shown["events"][1:]]
    assert [
        ("added", "bug", "ann"),
        ("added", "component:api", "ann"),
        ("removed", "bug", "eve"),
    ] == acts


def test_an_issue_is_closed_and_opened_again(typed: Typed) -> None:
    """Both say how the issue is now; what is so already is told."""
    typed("issues", "add", "--title", "x", "--body", "x", "--create")
    closed = typed("issues", "close", "local#1", "--as", "ann", "--format", "json").json()
    again = typed("issues", "close", "local#1", "--as", "ann")
    assert ("closed", 1) == (closed["state"], again.status)
    assert "local#1  open  -\n" == typed("issues", "reopen", "local#1", "--as", "ann").out


def test_a_label_that_cannot_be_changed_is_told(typed: Typed) -> None:
    """The sentence names what is wrong, and none of the labels was changed."""
    typed("issues", "add", "--title", "x", "--body", "x", "--create")
    for arguments, status, told in (
        (("label", "local#1", "bug", "nosuch"), 1, "there is no label nosuch in local"),
        (("label", "local#1", "nosuch"), 1, "hint: it has bug, component:api, "),
        (("label", "local#404", "bug"), 1, "there is no issue 404 in local"),
        (("label", "1", "bug"), 2, "an issue is named REPOSITORY#NUMBER"),
        (("unlabel", "local#1", "bug"), 1, "local#1 does not have the label bug"),
        (("label", "local#1", "bug", "--as", " "), 2, "the name is blank"),
    ):
        answer = typed("issues", *arguments)
        assert (status, "", True) == (answer.status, answer.out, told in answer.err), arguments
    assert [] == typed("issues", "show", "1", "--format", "json").json()["labels"]


def test_the_labels_of_another_tracker_are_not_changed_here(typed: Typed) -> None:
    """Whoever works with GitHub is told to change the issue there."""
    answer = typed("issues", "label", "acme/shop#1", "bug", env={"TRIAGE_TRACKER": "github"})
    assert (2, "") == (answer.status, answer.out)
    assert "TRIAGE_TRACKER is github" in answer.err


def test_an_unknown_issue(triage: Triage, tmp_path: Path) -> None:
    """An issue that does not exist is told with status 1."""
    in_store(tmp_path, heads)
    answer = triage("issues", "show", "404")
    assert (1, "") == (answer.status, answer.out)
    assert "there is no issue 404" in answer.err


def test_an_empty_ledger(triage: Triage, tmp_path: Path) -> None:
    """Without any write the ledger is an empty list, not an error."""
    in_store(tmp_path, heads)
    assert [] == triage("operations", "--format", "json").json()


def test_a_database_that_cannot_be_used(triage: Triage, tmp_path: Path) -> None:
    """A file that is no database, or a server that is not there, ends with status 3, no secret."""
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"this is not a database, but it is long enough to look like a file" * 20)
    local = triage("issues", "list", env={"TRIAGE_DATABASE_URL": f"sqlite:///{broken}"})
    url = "postgresql://someone:s3cret@127.0.0.1:1/triage"
    remote = triage("operations", env={"TRIAGE_DATABASE_URL": url})
    assert [(3, ""), (3, "")] == [(a.status, a.out) for a in (local, remote)]
    assert "s3cret" not in remote.err
    assert "Traceback" not in local.err + remote.err
