"""Doctor says who we are at GitHub and what is left of the rate limit, and no token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import SecretStr

from tests.fakes.faults import Fault, Reply, rate_limited, refused
from tests.fakes.github_people import Caller
from tests.unit.trackers import keys
from tests.unit.trackers.far_ends import GitHubEnd
from triage.cli.findings import Finding, Level
from triage.cli.tracker_check import check
from triage.settings import Settings

SECRET = "ghp_neverToBeSeen"
ANY: dict[str, Any] = {"method": "GET", "path": "", "times": 0}


async def _check(end: GitHubEnd, **values: Any) -> list[Finding]:  # noqa: ANN401 - any setting
    base: Mapping[str, Any] = {"tracker": "github", "github_base_url": end.control.api}
    found = await check(Settings.model_validate({**base, **values}))
    assert SECRET not in repr(found)
    return found


async def test_a_token_is_told_by_its_account(end: GitHubEnd) -> None:
    """Where, who, with which scopes, and how many requests are left."""
    end.github.api.people.callers[SECRET] = Caller(login="ann")
    [found] = await _check(end, github_token=SecretStr(SECRET))
    assert (Level.OK, "tracker") == (found.level, found.check)
    expected = "reads as ann, with repo, read:org, 4,990 of 5,000 requests left"
    assert f"github at {end.control.api}: {expected}" == found.detail


async def test_the_token_that_writes_has_a_row_of_its_own(end: GitHubEnd) -> None:
    """Two tokens are two accounts, and each is asked."""
    found = await _check(
        end, github_token=SecretStr("reader"), github_write_token=SecretStr("writer")
    )
    assert ["reads as reader", "writes as writer"] == [
        row.detail.partition(": ")[2].partition(",")[0] for row in found
    ]


async def test_an_app_is_told_by_its_name_and_permissions(app_end: GitHubEnd) -> None:
    """What it was given is what it may do, and on how many accounts."""
    [found] = await _check(
        app_end, github_app_id="4711", github_private_key=SecretStr(keys.private_pem())
    )
    assert (
        f"github at {app_end.control.api}: acts as acme-triage, with contents: read, issues: write,"
        " metadata: read, installed on 1"
    ) == found.detail


async def test_an_installation_s_token_has_no_account(end: GitHubEnd) -> None:
    """GitHub does not say whose it is, and the rate limit is told all the same."""
    end.github.api.people.callers["ghs_1"] = Caller(login="x[bot]", is_installation=True)
    [found] = await _check(end, github_token=SecretStr("ghs_1"))
    assert Level.OK is found.level
    assert "as an installation of an App" in found.detail
    assert "4,990 of 5,000 requests left" in found.detail


@pytest.mark.parametrize(
    ("fault", "service"),
    [
        (refused(401, **ANY), False),
        (refused(500, **ANY), True),
        (rate_limited("9", **ANY), True),
        (Fault(reply=Reply.DROP, **ANY), True),
        (Fault(body="<h1>", headers={"Content-Type": "text/html"}, **ANY), True),
    ],
    ids=["401", "500", "429", "dropped", "a page"],
)
async def test_what_is_wrong_is_a_row_with_advice(
    end: GitHubEnd, fault: Fault, service: bool
) -> None:
    """A token that is refused and a machine that does not answer are two different things."""
    await end.control.plan(fault)
    [found] = await _check(end, github_token=SecretStr(SECRET))
    assert (Level.FAIL, service) == (found.level, found.is_service)
    assert found.advice


async def test_what_is_missing_is_a_row(end: GitHubEnd) -> None:
    """Without a credential nothing is asked."""
    [found] = await _check(end)
    assert Level.FAIL is found.level
    assert found.detail.startswith("TRIAGE_GITHUB_TOKEN_FILE")
    assert [] == await end.control.requests()


async def test_a_credential_beside_the_local_tracker_is_checked_too(end: GitHubEnd) -> None:
    """Runs may name either tracker, so both are looked at."""
    found = await _check(end, tracker="local", github_token=SecretStr("ann"))
    assert ["local, in the database", "github at"] == [found[0].detail, found[1].detail[:9]]
