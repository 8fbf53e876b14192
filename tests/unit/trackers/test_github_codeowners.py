"""CODEOWNERS is read from one commit, and what was not read in full is unknown."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.fakes.faults import Fault, fails_before, refused
from tests.fakes.github_people import Caller
from tests.fakes.github_shapes import head
from tests.unit.trackers.far_ends import GitHubEnd, github_tracker
from triage.policy.codeowners import (
    CodeOwners,
    OwnershipStatus,
    UnknownReason,
    parse_codeowners,
)
from triage.trackers import github_codeowners
from triage.trackers.base import TrackerRefused, TrackerUnavailable

FILE = b"* @acme/everyone\n/docs/ @ann\n/api/ @bob\n"
CONTENTS: dict[str, Any] = {"method": "GET", "path": "/contents/"}


def _put(end: GitHubEnd, path: str, content: bytes | dict[str, Any] | list[Any]) -> None:
    end.github.api.files[(end.repository, path)] = content


@pytest.mark.parametrize("path", [".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS"])
async def test_it_is_found_in_three_places(end: GitHubEnd, path: str) -> None:
    """Evidence can name the file, the commit and the line."""
    _put(end, path, FILE)
    found = await end.over_github.codeowners(end.repository)
    assert (path, head(end.repository)) == (found.path, found.sha)
    owned = found.owners.lookup("api/server.py")
    assert (("@bob",), 3) == (owned.owners, owned.line)
    assert f"CODEOWNERS@{found.sha}#L3" == owned.locator(found.sha)


async def test_the_first_place_counts(end: GitHubEnd) -> None:
    """GitHub looks in .github, then at the top, then in docs."""
    _put(end, "docs/CODEOWNERS", b"* @docs\n")
    _put(end, "CODEOWNERS", b"* @top\n")
    assert "CODEOWNERS" == (await end.over_github.codeowners(end.repository)).path
    _put(end, ".github/CODEOWNERS", b"* @github\n")
    found = await end.over_github.codeowners(end.repository)
    assert ("@github",) == found.owners.lookup("x").owners


async def test_all_is_read_from_one_commit(end: GitHubEnd) -> None:
    """A push between two looks cannot mix two states of the files."""
    _put(end, "docs/CODEOWNERS", FILE)
    await end.over_github.codeowners(end.repository)
    requests = await end.control.requests("GET")
    assert f"/repos/{end.repository}/commits" == requests[0]["path"]
    assert 3 == sum("/contents/" in request["path"] for request in requests)
    assert [] == end.github.api.breaches


async def test_a_repository_without_a_file_owns_nothing(end: GitHubEnd) -> None:
    """That there is none is known, since its commits could be read."""
    found = await end.over_github.codeowners(end.repository)
    assert found.path is None
    assert OwnershipStatus.UNOWNED is found.owners.lookup("x").status


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"* @ann\n" * 200_000, UnknownReason.INCOMPLETE),
        (b"* @ann\n" * 600_000, UnknownReason.TOO_LARGE),
        ([], UnknownReason.INCOMPLETE),
    ],
    ids=["over 1 MB", "over 3 MB", "a folder"],
)
async def test_what_was_not_read_in_full_is_unknown(
    end: GitHubEnd, content: bytes | list[Any], reason: UnknownReason
) -> None:
    """An empty content with a size is no empty file: nobody is said to own nothing."""
    _put(end, "CODEOWNERS", content)
    found = await end.over_github.codeowners(end.repository)
    owner = found.owners.lookup("x")
    assert (OwnershipStatus.UNKNOWN, reason) == (owner.status, owner.reason)


@pytest.mark.parametrize(
    "change",
    [
        {"type": "symlink", "target": "/etc/passwd"},
        {"type": "submodule"},
        {"encoding": "utf-8"},
        {"content": "%%%"},
        {"content": "KiBAYQo="},
    ],
    ids=["link", "submodule", "encoding", "no base64", "another length"],
)
async def test_what_is_no_file_is_unknown(end: GitHubEnd, change: dict[str, Any]) -> None:
    """A link, or content that is damaged, says nothing about owners."""
    whole = {"type": "file", "size": 7, "encoding": "base64", "content": "KiBAYW5uCg=="}
    _put(end, "CODEOWNERS", {**whole, **change})
    found = await end.over_github.codeowners(end.repository)
    assert OwnershipStatus.UNKNOWN is found.owners.lookup("x").status
    # These are made by hand, and only as far as they matter here.
    end.github.api.breaches.clear()


async def test_an_empty_file_owns_nothing(end: GitHubEnd) -> None:
    """A file without a line is read in full."""
    _put(end, "CODEOWNERS", b"")
    found = await end.over_github.codeowners(end.repository)
    assert OwnershipStatus.UNOWNED is found.owners.lookup("x").status


async def test_files_that_may_not_be_read_are_no_missing_file(end: GitHubEnd) -> None:
    """GitHub says "not found" for both, so the commits are asked for first."""
    _put(end, "CODEOWNERS", FILE)
    people = end.github.api.people
    people.callers["blind"] = Caller(login="blind", permissions={"issues": "read"})
    with pytest.raises(TrackerRefused) as error:
        await github_tracker(end.github, token="blind").codeowners(end.repository)
    assert "repository_not_found" == error.value.code


@pytest.mark.parametrize(
    "fault",
    [
        fails_before(**CONTENTS),
        refused(409, "Git Repository is empty.", method="GET", path="/commits$"),
        Fault(method="GET", path="/commits$", body="[]"),
        Fault(method="GET", path="/commits$", body='[{"sha": "../../x"}]'),
    ],
    ids=["500", "empty repository", "no commit", "no sha"],
)
async def test_a_failure_is_no_answer(end: GitHubEnd, fault: Fault) -> None:
    """What GitHub did not say is neither "nobody" nor "unknown to the file"."""
    await end.control.plan(fault)
    with pytest.raises(TrackerUnavailable):
        await end.over_github.codeowners(end.repository)


async def test_a_file_is_read_beside_the_loop(
    end: GitHubEnd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that takes seconds to read keeps no other activity from going on."""
    threads = []

    def noted(data: bytes, *, size: int | None = None) -> CodeOwners:
        threads.append(threading.current_thread())
        return parse_codeowners(data, size=size)

    monkeypatch.setattr(github_codeowners, "parse_codeowners", noted)
    _put(end, "CODEOWNERS", FILE)
    await end.over_github.codeowners(end.repository)
    assert threads
    assert threading.main_thread() not in threads
