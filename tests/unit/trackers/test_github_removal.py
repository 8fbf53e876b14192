"""An undo takes off exactly the label that was put on, and only while it is still ours."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.fakes.commit_log import Action
from tests.fakes.faults import (
    Fault,
    Reply,
    dropped_after,
    fails_after,
    rate_limited,
    refused,
)
from tests.unit.trackers.far_ends import NUMBER, TOKEN, GitHubEnd, issue_of
from triage.trackers.abilities import OwnWrite, Removal
from triage.trackers.base import TrackerRefused, TrackerUnavailable

DELETE: dict[str, Any] = {"method": "DELETE", "path": r"/labels/[^/]+$"}


def _earlier() -> datetime:
    # GitHub's events know whole seconds only.
    return datetime.now(UTC) - timedelta(seconds=5)


async def _add(end: GitHubEnd, *labels: str) -> None:
    await end.over_github.add_labels(
        end.repository, NUMBER, labels or ("bug",), by="bounded-triage", operation_key="op_1"
    )


async def _remove(
    end: GitHubEnd,
    label: str = "bug",
    since: datetime | None = None,
    until: datetime | None = None,
) -> Removal:
    write = OwnWrite(operation_key="op_1", since=since or _earlier(), until=until)
    return await end.over_github.remove_own_label(
        end.repository, NUMBER, label, write, operation_key="undo_1"
    )


async def _take_off_one_of_two(far: GitHubEnd) -> None:
    await far.adds("good first issue")
    await _add(far, "bug", "component:api")
    assert Removal.REMOVED is await _remove(far, "BUG")
    assert ("good first issue", "component:api") == (await issue_of(far)).labels
    last = (await far.control.log())[-1]
    assert (Action.UNLABELED, "bug", "undo_1") == (last.action, last.label, last.operation)


async def test_our_own_label_is_taken_off(end: GitHubEnd) -> None:
    """The other labels stay, and the request names the undo."""
    await _take_off_one_of_two(end)


async def test_our_app_s_own_label_is_taken_off(app_end: GitHubEnd) -> None:
    """An App's label is told by the App, without asking who its token is."""
    await _take_off_one_of_two(app_end)
    assert "/user" not in {r["path"] for r in await app_end.control.requests()}


async def test_what_somebody_else_put_on_stays(end: GitHubEnd) -> None:
    """Whether it was there before, or a person took it off and put it on again."""
    await end.adds("component:api")
    assert Removal.NOT_OURS is await _remove(end, "component:api")
    await _add(end)
    await end.removes("bug")
    await end.adds("bug")
    assert Removal.NOT_OURS is await _remove(end)
    assert {"bug", "component:api"} == set((await issue_of(end)).labels)
    assert [] == await end.control.requests("DELETE")


async def test_what_an_earlier_write_of_ours_put_on_stays(end: GitHubEnd) -> None:
    """Only the write that is undone counts, by the times between which it was sent."""
    await _add(end)
    later = datetime.now(UTC) + timedelta(seconds=5)
    assert Removal.NOT_OURS is await _remove(end, since=later)
    assert Removal.NOT_OURS is await _remove(end, until=_earlier())


async def test_a_label_that_is_gone_is_not_there(end: GitHubEnd) -> None:
    """There is nothing to take off where nothing is, nor where it vanishes just now."""
    assert Removal.NOT_THERE is await _remove(end)
    await _add(end)
    await end.control.plan(refused(404, "Label does not exist", **DELETE))
    assert Removal.NOT_THERE is await _remove(end)


@pytest.mark.parametrize("label", [".", ".."])
async def test_a_name_that_an_address_cannot_hold_is_not_asked_for(
    end: GitHubEnd, label: str
) -> None:
    """An address would end before it: the request would be about the whole issue."""
    await end.defines(label)
    await end.control.act(Action.LABELED, end.repository, NUMBER, label=label, by=TOKEN)
    assert Removal.NOT_THERE is await _remove(end, label)
    assert [] == await end.control.requests("DELETE")
    assert (label,) == (await issue_of(end)).labels


@pytest.mark.parametrize("label", ["a/b", "50%", "?q", "C#", "✔︎", "good first issue", "../x"])
async def test_a_name_is_one_part_of_the_address(end: GitHubEnd, label: str) -> None:
    """Whatever signs it has, it names that label of that issue."""
    if label != "good first issue":
        await end.defines(label)
    await _add(end, label)
    assert Removal.REMOVED is await _remove(end, label)
    assert () == (await issue_of(end)).labels


@pytest.mark.parametrize(
    ("fault", "effect"),
    [
        (fails_after(**DELETE), True),
        (dropped_after(**DELETE), True),
        (dropped_after(Reply.RESET, **DELETE), True),
        (rate_limited("9", **DELETE), False),
        (Fault(method="GET", path="/user$", status=500), False),
        (Fault(method="GET", path="/events$", reply=Reply.DROP), False),
    ],
    ids=["500", "dropped", "reset", "limited", "who", "events"],
)
async def test_a_failure_says_what_is_known(end: GitHubEnd, fault: Fault, effect: bool) -> None:
    """As for a write: only what may have been sent may have happened, and it is sent once."""
    await _add(end)
    await end.control.plan(fault)
    with pytest.raises(TrackerUnavailable) as error:
        await _remove(end)
    assert effect is error.value.effect_possible
    assert int(fault.method == "DELETE") == len(await end.control.requests("DELETE"))


async def test_an_issue_that_is_gone_is_refused(end: GitHubEnd) -> None:
    """An undo on an issue that was transferred or deleted says so."""
    await _add(end)
    await end.control.transfer(end.repository, NUMBER, "/repos/acme/other/issues/1")
    with pytest.raises(TrackerRefused) as error:
        await _remove(end)
    assert "issue_transferred" == error.value.code
