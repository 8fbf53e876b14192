"""An App's tokens are for one repository and one use, and what writes is used for nothing else."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from pydantic import SecretStr

from tests.fakes.commit_log import Action
from tests.fakes.faults import Fault, refused
from tests.fakes.github_people import Caller
from tests.fakes.github_shapes import number_of
from tests.unit.trackers import keys
from tests.unit.trackers.far_ends import NUMBER, TOKEN, GitHubEnd, github_tracker
from triage.settings import Settings, SettingsError
from triage.storage.engine import Store
from triage.trackers.base import (
    LabelPresence,
    TrackedIssue,
    TrackerRefused,
    TrackerUnavailable,
)
from triage.trackers.factory import open_trackers
from triage.trackers.github_auth import App, AppCredential, TokenCredential
from triage.trackers.github_setup import open_github

TOKENS = r"/access_tokens$"
SECOND = "acme/second"


async def _add(end: GitHubEnd, *labels: str) -> None:
    await end.over_github.add_labels(
        end.repository, NUMBER, labels or ("bug",), by="bounded-triage", operation_key="op_1"
    )


async def test_an_app_s_token_is_for_one_repository_and_one_use(app_end: GitHubEnd) -> None:
    """Reading and writing have tokens of their own, narrowed by the repository's id."""
    await _add(app_end)
    by_name = {"repositories": ["shop"], "permissions": {"metadata": "read"}}
    reads = {"metadata": "read", "issues": "read"}
    writes = {"metadata": "read", "issues": "write"}
    ids = [number_of("acme/shop")]
    assert [
        by_name,
        {"repository_ids": ids, "permissions": reads},
        by_name,
        {"repository_ids": ids, "permissions": writes},
    ] == app_end.github.api.people.grants
    [entry] = [e for e in await app_end.control.log() if e.operation]
    assert ("acme-triage[bot]", "bug") == (entry.actor, entry.label)


async def test_a_token_is_kept_as_long_as_it_lasts(app_end: GitHubEnd) -> None:
    """Several reads need one token; another repository needs its own."""
    for _ in range(3):
        await app_end.over_github.label_inventory(app_end.repository)
    assert 2 == len(app_end.github.api.people.grants)
    app = app_end.github.api.people.app
    assert app is not None
    app.repositories.add(SECOND)
    await app_end.control.define_labels(SECOND, ["other"])
    assert ("other",) == await app_end.over_github.label_inventory(SECOND)
    assert 4 == len(app_end.github.api.people.grants)


async def test_a_token_is_replaced_before_it_expires(app_end: GitHubEnd) -> None:
    """One that ends within five minutes is not used for the next request."""
    app = app_end.github.api.people.app
    assert app is not None
    app.lives = timedelta(seconds=290)
    await app_end.over_github.label_inventory(app_end.repository)
    await app_end.over_github.label_inventory(app_end.repository)
    tokens = {
        headers["authorization"]
        for headers in app_end.github.api.seen
        if headers["authorization"].startswith("token ")
    }
    assert {"token ghs_2", "token ghs_3"} == tokens


async def test_a_token_that_github_took_back_is_not_used_again(app_end: GitHubEnd) -> None:
    """The request fails, is not repeated by itself, and the next one has a new token."""
    await app_end.over_github.label_inventory(app_end.repository)
    app_end.github.api.people.callers.clear()
    with pytest.raises(TrackerRefused) as error:
        await app_end.over_github.label_inventory(app_end.repository)
    assert "unauthorized" == error.value.code
    assert await app_end.over_github.label_inventory(app_end.repository)


async def test_an_app_that_is_not_installed_has_no_right(app_end: GitHubEnd) -> None:
    """That is a lack of rights, which somebody has to look at, and not a missing repository."""
    for call in (
        app_end.over_github.get_issue("acme/elsewhere", NUMBER),
        app_end.over_github.label_inventory("acme/elsewhere"),
    ):
        with pytest.raises(TrackerRefused) as error:
            await call
        assert "forbidden" == error.value.code


async def test_an_app_without_the_permission_has_no_right(app_end: GitHubEnd) -> None:
    """What it was not given is refused with the token, so nothing was done."""
    app = app_end.github.api.people.app
    assert app is not None
    app.permissions = {"metadata": "read", "issues": "read"}
    with pytest.raises(TrackerRefused) as error:
        await _add(app_end)
    assert "forbidden" == error.value.code
    assert not [e for e in await app_end.control.log() if e.operation]


@pytest.mark.parametrize(
    "fault",
    [
        refused(500, method="POST", path=TOKENS),
        refused(502, method="GET", path="/installation$"),
        Fault(method="POST", path=TOKENS, before_ms=3_000),
        Fault(method="POST", path=TOKENS, body="[]"),
        Fault(method="POST", path=TOKENS, body='{"token": 1}'),
    ],
    ids=["500", "502", "silent", "list", "no token"],
)
async def test_without_a_token_nothing_was_done(app_end: GitHubEnd, fault: Fault) -> None:
    """A failure to get a token is a definite no, although it is asked for by POST."""
    tracker = github_tracker(app_end.github, app=app_end.github.api.people.app, request_seconds=0.8)
    await app_end.control.plan(fault)
    with pytest.raises(TrackerUnavailable) as error:
        await tracker.add_labels(app_end.repository, NUMBER, ["bug"], by="us", operation_key="op_1")
    assert not error.value.effect_possible


async def test_a_wrong_key_is_a_lack_of_rights(app_end: GitHubEnd) -> None:
    """Neither a broken key nor another App's says anything of itself in the error."""
    wire = app_end.over_github._wire
    broken = App(app_id="4711", private_key=SecretStr("-----BEGIN nothing"))
    other = App(app_id="4712", private_key=SecretStr(keys.private_pem()))
    for app in (broken, other):
        credential = AppCredential(wire=wire, app=app, permissions={"metadata": "read"})
        rights = replace(app_end.over_github._rights, reads=credential)
        tracker = type(app_end.over_github)(wire, rights)
        with pytest.raises(TrackerRefused) as error:
            await tracker.get_issue(app_end.repository, NUMBER)
        assert "unauthorized" == error.value.code
        assert "BEGIN" not in f"{error.value!r} {app!r} {credential!r}"


async def test_a_removal_by_our_app_is_a_person_s_too(app_end: GitHubEnd) -> None:
    """We take a label off for somebody who undoes a write: it is not put on again, either."""
    await _add(app_end)
    for who in ("acme-triage[bot]", "other[bot]"):
        await app_end.control.act(Action.UNLABELED, app_end.repository, NUMBER, label="bug", by=who)
        read = await app_end.over_github.label_presence(app_end.repository, NUMBER, ["bug"])
        assert (LabelPresence.REMOVED_BY_PERSON,) == read
        await app_end.adds("bug")


async def test_with_a_token_each_removal_is_a_person_s(end: GitHubEnd) -> None:
    """A token may be a person's own, so its account's removals are not taken for ours."""
    await _add(end)
    await end.control.act(Action.UNLABELED, end.repository, NUMBER, label="bug", by=TOKEN)
    read = await end.over_github.label_presence(end.repository, NUMBER, ["bug"])
    assert (LabelPresence.REMOVED_BY_PERSON,) == read


async def test_the_token_that_writes_is_used_for_that_alone(end: GitHubEnd) -> None:
    """Reads go with the other one, which need not be able to write."""
    people = end.github.api.people
    people.callers["reader"] = Caller(login="reader", permissions={"issues": "read"})
    tracker = open_github(
        Settings(
            github_base_url=end.control.api,
            github_token=SecretStr("reader"),
            github_write_token=SecretStr("writer"),
        )
    )
    await tracker.add_labels(end.repository, NUMBER, ["bug"], by="us", operation_key="op_1")
    used = [headers["authorization"] for headers in end.github.api.seen]
    assert ["token reader"] * 3 + ["token writer"] == used
    with pytest.raises(TrackerRefused) as error:
        await github_tracker(end.github, token="reader").add_labels(
            end.repository, NUMBER, ["component:api"], by="us", operation_key="op_1"
        )
    assert "forbidden" == error.value.code


async def test_a_worker_that_decides_has_no_way_to_write(end: GitHubEnd) -> None:
    """Without the role, not even a token that could write is used to write."""
    settings = Settings.model_validate(
        {"github_base_url": end.control.api, "github_token": "all", "roles": "decide"}
    )
    tracker = open_github(settings)
    assert isinstance(await tracker.get_issue(end.repository, NUMBER), TrackedIssue)
    with pytest.raises(TrackerRefused) as error:
        await tracker.add_labels(end.repository, NUMBER, ["bug"], by="us", operation_key="op_1")
    assert "unauthorized" == error.value.code
    assert [] == await end.control.requests("POST")


def test_which_credential_serves_which_use() -> None:
    """A token reads before an App does, and a token that writes before either."""
    app = {"github_app_id": "7", "github_private_key": keys.private_pem()}

    def kinds(**values: str) -> tuple[str, str]:
        rights = open_github(Settings.model_validate(values))._rights
        found = []
        for credential in (rights.reads, rights.writes):
            if isinstance(credential, TokenCredential):
                found.append(credential.token.get_secret_value())
            else:
                found.append("app" if credential else "none")
        return found[0], found[1]

    assert ("t", "t") == kinds(github_token="t")
    assert ("t", "w") == kinds(github_token="t", github_write_token="w")
    assert ("w", "w") == kinds(github_write_token="w", roles="write")
    assert ("app", "app") == kinds(**app)
    assert ("t", "app") == kinds(github_token="t", **app)
    assert ("app", "w") == kinds(github_write_token="w", **app)
    assert ("app", "none") == kinds(roles="decide", **app)


def test_a_request_takes_less_than_a_lease() -> None:
    """Four requests, each as long as it may be, fit into the time that a write is held."""
    short = open_github(Settings(github_token=SecretStr("t"), lease_seconds=8))
    usual = open_github(Settings(github_token=SecretStr("t")))
    assert (2, 10) == (short._wire.request_seconds, usual._wire.request_seconds)
    assert (8 / 3, 20) == (short._wire.write_seconds, usual._wire.write_seconds)


async def test_github_is_opened_where_it_is_set_up(store: Store) -> None:
    """Without a credential there is no such tracker; by half it is an error and not left out."""
    assert {"local"} == set(open_trackers(Settings(), store))
    token = Settings(github_token=SecretStr("t"))
    assert {"local", "github"} == set(open_trackers(token, store))
    with pytest.raises(SettingsError):
        open_trackers(Settings(github_app_id="7"), store)
    with pytest.raises(SettingsError):
        open_trackers(Settings(tracker="github"), store)
