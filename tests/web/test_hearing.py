"""Which comments are recorded, as what, and that an edit, a copy or a stranger changes nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from tests.cli.conftest import NOWHERE
from tests.web.hooks import EARLY, LATER, Hook, an_event, hook_settings, serving
from triage.storage.commands import Commands
from triage.storage.schema_intake import commands

ORDER = "/triage approve op-6 v6"


def a_comment(
    body: str = ORDER,
    *,
    action: str = "created",
    login: str = "octocat",
    **changes: Any,  # noqa: ANN401 - any JSON value
) -> dict[str, Any]:
    """A payload with what is looked at."""
    ids = {"octocat": 583231, "reporter": 7, "triage-app[bot]": 9, "deployer": 11}
    kind = "Bot" if login.endswith("[bot]") else "User"
    person = {"login": login, "id": ids[login], "type": kind}
    comment = {"id": 42, "body": body, "user": person, "created_at": "2026-01-01T00:00:00Z"}
    return {
        "action": action,
        "issue": {"number": 101, "user": {"login": "reporter", "id": 7, "type": "User"}},
        "comment": {**comment, **changes.pop("comment", {})},
        "repository": {"id": 1, "full_name": "acme/shop"},
        "sender": person,
        **changes,
    }


@pytest.fixture
async def hearing(
    light_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Hook]:
    """A server that hears comments, and carries none on."""
    monkeypatch.setenv("TEMPORAL_ADDRESS", NOWHERE)
    settings = hook_settings(
        tmp_path,
        light_url,
        service_key=tmp_path / "key.json",
        webhook_ignored_senders=("triage-app[bot]", "Deployer"),
    )
    async with serving(settings) as opened:
        yield opened


async def _send(
    hook: Hook, event: dict[str, Any], **headers: str | None
) -> tuple[int, str, str | None]:
    answer = await hook.send(event, X_GitHub_Event="issue_comment", **headers)
    document = answer.json()
    return answer.status_code, document["outcome"], document["code"]


async def _rows(hook: Hook) -> list[dict[str, Any]]:
    async with hook.store.read() as connection:
        return [dict(row) for row in (await connection.execute(select(commands))).mappings()]


async def test_an_answer_is_recorded_once(hearing: Hook) -> None:
    """Whatever the delivery id, one comment is one answer, by the id of whoever wrote it."""
    assert (202, "accepted", None) == await _send(hearing, a_comment(), X_GitHub_Delivery="one")
    assert (202, "accepted", None) == await _send(hearing, a_comment(), X_GitHub_Delivery="one")
    assert (202, "ignored", "unchanged") == await _send(hearing, a_comment())
    [row] = await _rows(hearing)
    expected = ("octocat", "583231", "op-6", 6, "approve", "waiting", "acme/shop", "101")
    names = ("login", "person_id", "operation_id", "version", "verdict", "state")
    assert expected == (*(row[name] for name in names), row["repository"], row["number"])
    assert {"waiting": 1} == await Commands(hearing.store).counts()


@pytest.mark.parametrize(
    ("event", "code"),
    [
        (a_comment(action="edited"), "action"),
        (a_comment(action="deleted"), "action"),
        (a_comment("LGTM"), "no_order"),
        (a_comment(f"> {ORDER}"), "no_order"),
        (a_comment(login="triage-app[bot]"), "bot"),
        (a_comment(comment={"performed_via_github_app": {"id": 1}}), "bot"),
        (a_comment(login="deployer"), "sender"),
        (a_comment(issue={"number": 101, "pull_request": {"url": "x"}}), "pull_request"),
    ],
)
async def test_what_is_no_answer_leaves_nothing(
    hearing: Hook, event: dict[str, Any], code: str
) -> None:
    """Edits, deletions, talk, machines, ourselves and pull requests are not even recorded."""
    assert (202, "ignored", code) == await _send(hearing, event)
    assert [] == await _rows(hearing)
    assert [] == await hearing.deliveries()


async def test_the_issue_s_author_is_refused(hearing: Hook) -> None:
    """Whoever opened the issue decides nothing about it, and the attempt is on record."""
    assert (202, "refused", "barred") == await _send(hearing, a_comment(login="reporter"))
    [delivery] = await hearing.deliveries()
    assert ("refused", "barred") == (delivery["state"], delivery["code"])
    assert [] == await _rows(hearing)


async def test_an_order_in_an_issue_s_own_text_is_none(hearing: Hook) -> None:
    """Whoever may open or edit an issue decides nothing by what its title and body say."""
    for action in ("opened", "edited"):
        event = an_event(action, title=ORDER, body=ORDER, at=LATER if action == "edited" else EARLY)
        answer = await hearing.send(event)
        assert 202 == answer.status_code
    order = a_comment("LGTM", issue={**a_comment()["issue"], "title": ORDER, "body": ORDER})
    assert (202, "ignored", "no_order") == await _send(hearing, order)
    assert [] == await _rows(hearing)


async def test_what_github_calls_somebody_beside_a_comment_does_not_count(hearing: Hook) -> None:
    """A private member shows as NONE and is heard; an author who shows as OWNER is barred."""
    private = a_comment(comment={"author_association": "NONE"})
    assert (202, "accepted", None) == await _send(hearing, private)
    author = a_comment(login="reporter", comment={"id": 43, "author_association": "OWNER"})
    assert (202, "refused", "barred") == await _send(hearing, author)
    assert ["octocat"] == [row["login"] for row in await _rows(hearing)]


async def test_a_comment_is_held_to_what_every_delivery_is(hearing: Hook) -> None:
    """An unsigned one is not looked at, and a broken one is refused."""
    assert (401, "refused", "signature") == await _send(
        hearing, a_comment(), X_Hub_Signature_256="sha256=" + "0" * 64
    )
    assert (400, "refused", "payload") == await _send(hearing, {"action": "created"})
    assert [] == await _rows(hearing)


async def test_without_a_key_nobody_is_heard(light_hook: Hook) -> None:
    """A server that cannot answer for people ignores what they say."""
    assert (202, "ignored", "event") == await _send(light_hook, a_comment())
