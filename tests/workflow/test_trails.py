"""What a run read in vain is none of its evidence, whatever made it begin again."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import fields, replace
from typing import Any, Final

import pytest
from pydantic import JsonValue

from activities.raw_reads import RawRead
from activities.reads import READ_HANDLERS, lookup_component_owner
from activities.services import Services
from tests.fixed_rules import rules_with
from tests.workflow.decisions import a_request, as_object, final, lookup
from tests.workflow.resets import reset
from tests.workflow.runs import Run, outcome
from tests.workflow.world import World, altered_world
from triage.contracts.names import ACTIVITY_LOOKUP_OWNER
from triage.contracts.payloads import DecideResult
from triage.contracts.response import Status
from triage.models.base import ModelAdapter, ModelRequest
from triage.models.rules import RulesModel
from triage.policy.rules import BUILTIN_RULES, Rules

SECURITY: Final = a_request(
    title="SQL injection in login", body="vulnerability: an attacker can read passwords"
)
UNOWNED: Final = a_request(
    title="Crash: the page returns 500",
    body="fails with error 500, a regression",
    changed_paths=["nobody/knows.py"],
)
TEXTS: Final = {"security": SECURITY, "unowned": UNOWNED}


class _Interrupted(RulesModel):
    """Rules that are asked while an edit comes in, which is handed out once they are done."""

    def __init__(self, text: JsonValue) -> None:
        super().__init__()
        self._text = text
        self.run: asyncio.Future[Run] = asyncio.get_running_loop().create_future()
        self.passes: list[int] = []

    async def decide(self, request: ModelRequest) -> DecideResult:
        """Send the edit with the second question, once."""
        answer = await super().decide(request)
        self.passes.append(len(request.observations))
        if request.step == 2 and self.passes.count(1) == 1:
            await (await self.run).signal("edit", self._text)
        return answer


@asynccontextmanager
async def _asking(world: World, model: RulesModel) -> AsyncIterator[World]:
    class Held(Services):
        async def build_model(self, name: str) -> ModelAdapter:
            found = await super().build_model(name)
            return model if isinstance(found, RulesModel) else found

    parts = {part.name: getattr(world.services, part.name) for part in fields(Services)}
    async with altered_world(world, services=Held(**parts)) as opened:
        yield opened


@pytest.mark.parametrize("text", TEXTS)
async def test_an_edit_gives_up_what_its_task_has_read(world: World, text: str) -> None:
    """A run that was edited in its only task ends as one that began with the edited text."""
    begun = await world.start(model="rules", request=TEXTS[text])
    model = _Interrupted(TEXTS[text])
    async with _asking(world, model) as opened:
        edited = await opened.start(model="rules", max_steps=5)
        model.run.set_result(edited)
        response = await edited.response()
        state = await edited.state()
    expected = await begun.response()
    assert (outcome(expected), expected.route) == (outcome(response), response.route)
    assert expected.evidence_ids == response.evidence_ids
    assert [item.id for item in state.evidence] == [x.id for x in (await begun.state()).evidence]
    assert model.passes.count(1) > 0, "nothing was read in vain"


async def test_a_reset_takes_back_what_was_read(world: World) -> None:
    """The run that goes on from its first task is shown what it reads, and nothing of before."""
    run = await world.start(model="rules", mode="approve", max_steps=5)
    await run.waiting()
    await run.signal("edit", SECURITY)
    before = await run.response()
    again = await reset(world.client, run)
    after = await again.response()
    assert (Status.REVIEW_REQUIRED, None) == outcome(before)
    assert (outcome(before), before.route) == (outcome(after), after.route)


async def test_a_reset_run_reads_anew(world: World) -> None:
    """What its tracker said of the issue days ago is not what it says now."""
    said: list[str] = []

    async def changing(arguments: Any, rules: Rules) -> RawRead:  # noqa: ANN401 - a handler's
        found = await lookup_component_owner(arguments, rules)
        said.append(f"owner-{len(said)}")
        value = {**as_object(found.value), "owner": said[-1]}
        return RawRead(value, source=found.source, locator=found.locator)

    handlers = {**READ_HANDLERS, ACTIVITY_LOOKUP_OWNER: changing}
    async with altered_world(world, handlers=handlers) as opened:
        run = await opened.start(model="rules")
        assert "owner-0" == (await run.response()).owner
        again = await reset(world.client, run)
        assert "owner-1" == (await again.response()).owner


async def test_a_reset_run_reads_by_the_rules_that_it_pins(world: World) -> None:
    """What was read under other rules, at the same version, is not what the new ones say."""
    path, rule = "backend/api.py", BUILTIN_RULES.owners["backend/api.py"]
    owners = {**BUILTIN_RULES.owners, path: rule.model_copy(update={"owner": "new-team"})}
    queue = f"queue-{uuid.uuid4().hex}"
    run = await replace(world, queue=queue).start(model="rules")
    async with altered_world(world, queue=queue):
        assert "backend-team" == (await run.response()).owner
    services = replace(world.services, rules=rules_with(owners=owners))
    async with altered_world(world, services=services, queue=queue):
        again = await reset(world.client, run)
        assert "new-team" == (await again.response()).owner


@pytest.mark.parametrize("script", [True, False], ids=["recorded", "rules"])
async def test_a_model_is_shown_what_its_run_has_read(world: World, *, script: bool) -> None:
    """Evidence and receipts alike, by whichever way it is asked."""
    chosen: dict[str, Any] = {} if script else {"model": "rules"}
    run = await world.start(*[lookup(), final("owners-api")] if script else [], **chosen)
    assert Status.COMPLETED is (await run.response()).status
    state = await run.state()
    assert state.trail is not None
    assert ["owners-api"] == [item.id for item in state.evidence]
