"""What deliveries mean beside each other: repeats, late ones, edits, and what asks for nothing."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

from sqlalchemy import delete

from tests.web.hooks import EARLY, FIXTURES, LATER, LATEST, Hook, an_event, encoded, headers_for
from triage.contracts.options import parse_options
from triage.contracts.request import parse_request
from triage.storage.outbox import Outbox
from triage.storage.schema import documents

EXAMPLES: Final[list[dict[str, Any]]] = json.loads(
    (FIXTURES / "webhooks" / "issues.json").read_bytes()
)
ADMITTED: Final = {"opened", "edited", "reopened"}


def _told(answer: Any) -> tuple[int, str, str | None]:  # noqa: ANN401 - a response
    document = answer.json()
    return answer.status_code, document["outcome"], document["code"]


async def test_a_delivery_leaves_one_request(hook: Hook) -> None:
    """What a run will be started with is in the store when 202 is said, under an opaque name."""
    answer = await hook.send(an_event())
    assert (202, "accepted", None) == _told(answer)
    [row], [delivery] = await hook.requests(), await hook.deliveries()
    assert ("accepted", 1, "acme/shop", "101") == (
        *(row[name] for name in ("state", "version", "repository", "number")),
    )
    assert ("admitted", row["request_key"]) == (delivery["state"], delivery["request_key"])
    assert answer.json()["request"] == row["request_key"]
    document = await hook.document(row["request_key"])
    assert "Orders fail" == parse_request(document["request"]).title
    context = parse_options(document["options"]).context
    assert ("acme/shop", "101", "reporter") == (context.repository, context.issue, context.author)
    assert "acme" not in row["request_key"] + document["request"]["request_id"]


async def test_five_redeliveries_at_once_are_one(hook: Hook) -> None:
    """The same delivery, sent five times at the same moment, leaves one row and one answer."""
    body = encoded(an_event())
    guid = headers_for(body)["X-GitHub-Delivery"]
    answers = await asyncio.gather(*(hook.post(body, X_GitHub_Delivery=guid) for _ in range(5)))
    assert [(202, "accepted", None)] * 5 == [_told(answer) for answer in answers]
    [row], [delivery] = await hook.requests(), await hook.deliveries()
    assert {row["request_key"]} == {answer.json()["request"] for answer in answers}
    assert 5 == delivery["times_seen"]


async def test_a_hook_and_an_app_s_hook_are_one(hook: Hook) -> None:
    """One event under two delivery ids, at the same moment too, is one request."""
    body = encoded(an_event())
    answers = await asyncio.gather(*(hook.post(body) for _ in range(2)))
    assert [(202, "accepted", None), (202, "ignored", "unchanged")] == sorted(
        (_told(answer) for answer in answers), key=str
    )
    assert 1 == len({answer.json()["request"] for answer in answers})
    assert (1, 2) == (len(await hook.requests()), len(await hook.deliveries()))


async def test_the_newest_text_wins_whatever_the_order(hook: Hook) -> None:
    """A late delivery of an older text is recorded and ignored; its redelivery is told the same."""
    newest = await hook.send(an_event("edited", title="third", at=LATEST))
    late = encoded(an_event("edited", title="second", at=LATER))
    guid = headers_for(late)["X-GitHub-Delivery"]
    answers = [await hook.post(late, X_GitHub_Delivery=guid) for _ in range(2)]
    answers.append(await hook.send(an_event(title="first", at=EARLY)))
    assert [(202, "ignored", "stale")] * 3 == [_told(answer) for answer in answers]
    assert {newest.json()["request"]} == {answer.json()["request"] for answer in answers}
    assert ["third"] == [await _title(hook, row) for row in await hook.requests()]


async def _title(hook: Hook, row: dict[str, Any]) -> str:
    return str((await hook.document(row["request_key"]))["request"]["title"])


async def test_a_text_that_comes_back_is_new_again(hook: Hook) -> None:
    """Edited and edited back is three versions, and only the last will be started."""
    for title, at in (("first", EARLY), ("second", LATER), ("first", LATEST)):
        assert (202, "accepted", None) == _told(await hook.send(an_event(title=title, at=at)))
    states = [(row["version"], row["state"]) for row in await hook.requests()]
    assert [(1, "superseded"), (2, "superseded"), (3, "accepted")] == states


async def test_what_was_still_so_later_makes_older_texts_stale(hook: Hook) -> None:
    """After "reopened with the same text at 2", a text of 1 is no news."""
    await hook.send(an_event(title="first", at=EARLY))
    same = await hook.send(an_event("reopened", title="first", at=LATEST))
    between = await hook.send(an_event("edited", title="between", at=LATER))
    assert ["unchanged", "stale"] == [answer.json()["code"] for answer in (same, between)]


async def test_a_replay_under_another_name_is_nothing_new(hook: Hook) -> None:
    """An old body that somebody recorded, sent a day later as a new delivery, changes nothing."""
    old = encoded(an_event(title="first", at=EARLY))
    await hook.post(old)
    await hook.send(an_event("edited", title="second", at=LATER))
    answer = await hook.post(old)
    assert (202, "ignored", "unchanged") == _told(answer)
    assert [1, 2] == [row["version"] for row in await hook.requests()]


async def test_a_delivery_id_stands_for_one_body(hook: Hook) -> None:
    """Another body under the same id is refused, and nothing is recorded of it."""
    guid = "9f1c2d"
    await hook.send(an_event(), X_GitHub_Delivery=guid)
    answer = await hook.send(an_event(title="other", at=LATER), X_GitHub_Delivery=guid)
    assert (409, "refused", "reused") == _told(answer)
    assert (1, 1) == (len(await hook.requests()), len(await hook.deliveries()))


async def test_two_hooks_of_one_event_say_the_same(hook: Hook) -> None:
    """A repository's hook and an App's share the event's id; the App's has its installation."""
    guid, event = "9f1c2d", an_event()
    await hook.send(event, X_GitHub_Delivery=guid)
    answer = await hook.send({**event, "installation": {"id": 7}}, X_GitHub_Delivery=guid)
    assert (202, "ignored", "unchanged") == _told(answer)
    assert (1, 1) == (len(await hook.requests()), len(await hook.deliveries()))


async def test_issues_do_not_mix(hook: Hook) -> None:
    """The same text on two issues, or on one number of two repositories, is two requests."""
    events = [an_event(), an_event(number=102), an_event(repository="acme/other")]
    answers = [await hook.send(event) for event in events]
    assert 3 == len({answer.json()["request"] for answer in answers})


async def test_an_issue_that_went_away_is_not_started(hook: Hook) -> None:
    """What waits for an issue that was deleted or transferred is withdrawn."""
    for number, action in enumerate(("deleted", "transferred"), 1):
        await hook.send(an_event(number=number))
        answer = await hook.send(an_event(action, number=number, at=LATER))
        assert (202, "ignored", "gone") == _told(answer)
    rows = [(row["state"], row["code"]) for row in await hook.requests()]
    assert [("superseded", "gone")] * 2 == rows


async def test_what_arrives_after_the_end_of_an_issue_starts_nothing(hook: Hook) -> None:
    """A late `opened` or `edited` of a deleted or transferred issue is told that it is gone."""
    for number, action in enumerate(("deleted", "transferred"), 1):
        await hook.send(an_event(action, number=number, at=LATER))
        for late, at in (("opened", EARLY), ("edited", LATEST)):
            answer = await hook.send(an_event(late, number=number, title=late, at=at))
            assert (202, "ignored", "gone") == _told(answer)
    assert [("superseded", "gone")] * 2 == [
        (row["state"], row["code"]) for row in await hook.requests()
    ]


async def test_the_end_of_an_issue_is_remembered_while_its_run_begins(hook: Hook) -> None:
    """A text that is being started stays as it is, and no later one joins it."""
    await hook.send(an_event(at=EARLY))
    held = await Outbox(hook.store).take()
    assert held is not None
    await hook.send(an_event("deleted", at=LATER))
    assert await Outbox(hook.store).started(held, "run-1", None)
    for _ in range(2):
        assert "gone" == (await hook.send(an_event("edited", title="Other"))).json()["code"]
    states = [(row["state"], row["code"]) for row in await hook.requests()]
    assert [("started", None), ("superseded", "gone")] == states


async def _fail(hook: Hook) -> None:
    """Let the process that starts runs find that it never can."""
    held = await Outbox(hook.store).take()
    assert held is not None
    assert await Outbox(hook.store).failed(held, "content_gone")


async def test_a_redelivery_revives_what_failed(hook: Hook) -> None:
    """A request that could not be started is started anew when its delivery is sent again."""
    body = encoded(an_event())
    guid = headers_for(body)["X-GitHub-Delivery"]
    await hook.post(body, X_GitHub_Delivery=guid)
    await _fail(hook)
    [failed] = await hook.requests()
    await _lose(hook, failed["document_digest"])
    for again in ({"X_GitHub_Delivery": guid}, {}):
        assert (202, "accepted", None) == _told(await hook.post(body, **again))
        [row] = await hook.requests()
        assert ("accepted", None, failed["request_key"]) == (
            *(row[name] for name in ("state", "code", "request_key")),
        )
        assert "Orders fail" == await _title(hook, row)
        await _fail(hook)


async def test_only_the_newest_text_is_revived(hook: Hook) -> None:
    """What failed and was overtaken, or whose issue is gone, is not started by a redelivery."""
    body = encoded(an_event(title="first", at=EARLY))
    guid = headers_for(body)["X-GitHub-Delivery"]
    await hook.post(body, X_GitHub_Delivery=guid)
    await _fail(hook)
    await hook.send(an_event("edited", title="second", at=LATER))
    await hook.post(body, X_GitHub_Delivery=guid)
    await _fail(hook)
    await hook.send(an_event("deleted", title="second", at=LATEST))
    await hook.send(an_event("edited", title="second", at=LATER))
    assert ["failed", "failed", "superseded"] == [row["state"] for row in await hook.requests()]


async def _lose(hook: Hook, digest: str) -> None:
    async with hook.store.write() as connection:
        await connection.execute(delete(documents).where(documents.c.digest == digest))


NOTHING: Final[tuple[tuple[dict[str, Any], dict[str, str], str], ...]] = (
    (an_event("labeled"), {}, "action"),
    (an_event(), {"X_GitHub_Event": "issue_comment"}, "event"),
    (an_event(), {"X_GitHub_Event": "ping"}, "event"),
    (an_event(sender="Triage-App[bot]"), {}, "sender"),
    (an_event(pull_request={"url": "x"}), {}, "pull_request"),
    (an_event("edited", state="closed"), {}, "closed"),
)


async def test_what_asks_for_nothing_leaves_nothing(light_hook: Hook) -> None:
    """202, and not a row: other events, other actions, our own, pull requests, closed issues."""
    for event, headers, code in NOTHING:
        assert (202, "ignored", code) == _told(await light_hook.send(event, **headers)), code
    assert ([], []) == (await light_hook.deliveries(), await light_hook.requests())


async def test_an_issue_without_text_can_be_a_request(light_hook: Hook) -> None:
    """No body, an empty one, blanks or an author who is gone: the request is well formed."""
    for number, (body, user) in enumerate(
        [(None, {"login": "a"}), ("", None), (" \n", {"login": "a"}), ("<!-- -->", None)], 1
    ):
        answer = await light_hook.send(an_event(body=body, number=number, user=user))
        document = await light_hook.document(answer.json()["request"])
        assert parse_request(document["request"]).body.strip()
        assert (user or {}).get("login") == parse_options(document["options"]).context.author


async def test_long_texts_arrive_and_impossible_ones_are_recorded(light_hook: Hook) -> None:
    """The longest real bodies are triaged; one that no run takes is refused, and that is kept."""
    long = await light_hook.send(an_event(body="\U0001f41b" * 207_777))
    assert (202, "accepted", None) == _told(long)
    for body in ("\U0001f41b" * 600_000, "a" * 1_100_000):
        answer = await light_hook.send(an_event("edited", body=body, at=LATER))
        assert (202, "refused", "unusable") == _told(answer)
    assert ["admitted", "refused", "refused"] == [
        row["state"] for row in await light_hook.deliveries()
    ]


async def test_recorded_deliveries_are_read(light_hook: Hook) -> None:
    """Each example payload that GitHub's users collected gets 202, and those of ours a row."""
    for example in EXAMPLES:
        answer = await light_hook.send(example)
        assert 202 == answer.status_code, example["action"]
        ours = example["action"] in ADMITTED | {"deleted", "transferred"}
        assert ours == (answer.json()["code"] != "action"), example["action"]
    kinds = {example["action"] for example in EXAMPLES}
    assert {"opened", "edited", "reopened", "deleted", "transferred", "labeled"} <= kinds
    rows = {row["action"]: row for row in await light_hook.deliveries()}
    assert {*kinds} - {"labeled", "pinned", "locked"} == {*rows}
