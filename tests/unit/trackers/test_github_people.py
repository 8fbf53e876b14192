"""Who somebody is on GitHub and what they may do: by its own word, now, and under a stable id."""

from __future__ import annotations

import pytest

from tests.fakes.faults import refused
from tests.fakes.github_shapes import number_of
from tests.unit.trackers.far_ends import TOKEN, GitHubEnd
from triage.trackers.base import TrackerUnavailable
from triage.trackers.people import Right


@pytest.mark.parametrize(
    ("role", "contains", "expected"),
    [
        ("admin", "admin", Right.ADMIN),
        ("maintain", "write", Right.MAINTAIN),
        ("triage", "read", Right.TRIAGE),
        ("read", "read", Right.READ),
        ("security-people", "write", Right.WRITE),
        ("strange", "strange", Right.NONE),
    ],
)
async def test_a_right_is_a_role_or_what_it_contains(
    end: GitHubEnd, role: str, contains: str, expected: Right
) -> None:
    """A role of an organisation's own counts as the right that is in it, an unknown one as none."""
    end.github.api.people.rights[end.repository, "bob"] = (role, contains)
    found = await end.over_github.person(end.repository, "bob")
    assert found is not None
    assert (str(number_of("bob")), "bob", True, expected) == (
        found.id,
        found.login,
        found.is_human,
        found.right,
    )


async def test_a_bot_is_no_human(end: GitHubEnd) -> None:
    """Accounts of Apps cannot be asked for by any name that GitHub gives people."""
    assert await end.over_github.person(end.repository, "triage[bot]") is None
    assert [] == await end.control.requests()


@pytest.mark.parametrize("login", ["", "a/../b", "-bob", "b b", "bob\n", "b" * 101])
async def test_what_is_no_login_is_not_asked_for(end: GitHubEnd, login: str) -> None:
    """Whatever could change an address is nobody's name."""
    assert await end.over_github.person(end.repository, login) is None
    assert [] == await end.control.requests()


async def test_whom_github_does_not_know_has_no_rights(end: GitHubEnd) -> None:
    """Not found is nobody; an error says nothing about anybody."""
    await end.control.plan(refused(404, method="GET", path="collaborators"))
    assert await end.over_github.person(end.repository, "ghost") is None
    await end.control.plan(refused(500, method="GET", path="collaborators"))
    with pytest.raises(TrackerUnavailable):
        await end.over_github.person(end.repository, "bob")


async def test_we_are_nobody_who_decides(end: GitHubEnd, app_end: GitHubEnd) -> None:
    """The account that writes is known as ours, and asked for once; an App is no person."""
    for login, expected in ((TOKEN, True), ("bob", False), ("bob", False)):
        found = await end.over_github.person(end.repository, login)
        assert found is not None
        assert (expected, not expected) == (found.is_us, found.may_answer)
    assert 1 == len([r for r in await end.control.requests("GET") if r["path"] == "/user"])
    found = await app_end.over_github.person(app_end.repository, "bob")
    assert found is not None
    assert found.may_answer
