"""A rules file in whole runs: what it allows counts once a person accepted it, and never before."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import JsonValue

import worker
from tests.workflow.decisions import OPERATION, final, label, lookup
from tests.workflow.runs import Run, outcome
from tests.workflow.world import World, a_settings, altered_world
from triage.contracts.response import Status
from triage.policy.rules import BUILTIN_RULES
from triage.policy.rules_file import read_rules
from triage.policy.tools import BUILTIN_TOOLS
from triage.settings import Settings
from triage.storage.acceptances import Acceptances

WIDE = """\
[policy]
mode = "approve"
[labels]
vip = "descriptive"
ship = "control"
[owners."*"]
owner = "everybody"
labels = ["vip"]
"""
NARROW = f"{WIDE}[tools]\nlookup_component_owner = false\n"


@dataclass(frozen=True)
class Ruled:
    """A world with a worker of its own, whose rules are in a file."""

    world: World
    path: Path

    async def accept(self) -> None:
        """Accept what the file says."""
        text = self.path.read_text()
        rules = read_rules(text, [spec.name for spec in BUILTIN_TOOLS]).rules
        acceptances = Acceptances(self.world.services.store)
        await acceptances.accept(rules, replaces=await acceptances.current(), widens=(), by="ann")

    async def play(self, *script: JsonValue) -> tuple[str, str | None]:
        """Return how a run of the script ends, held to what is in force now."""
        return outcome(await self.world.play(*script))


@pytest.fixture
async def ruled(world: World, tmp_path: Path) -> AsyncIterator[Ruled]:
    """A worker that is told of a rules file, with a database of its own."""
    path = tmp_path / "rules.toml"
    path.write_text(WIDE)
    settings = a_settings(tmp_path).model_copy(update={"policy": path})
    async with (
        worker.open_services(settings) as services,
        altered_world(world, services=services) as opened,
    ):
        yield Ruled(opened, path)


async def _pinned(run: Run) -> str:
    state = await run.state()
    assert state.provenance is not None
    return state.provenance.policy


async def test_a_file_that_widens_waits_until_it_is_accepted(ruled: Ruled) -> None:
    """Runs that begin before are held to the built-in rules to their end, runs after it are not."""
    before = await ruled.world.start(lookup(), final("owners-default", labels=("vip",)))
    assert ("failed", "model_invalid_output") == outcome(await before.response())
    assert BUILTIN_RULES.digest() == await _pinned(before)
    await ruled.accept()
    after = await ruled.world.start(lookup(), final("owners-default", labels=("vip",)))
    assert (await after.review("approve", approver="ann")).accepted
    assert ("vip",) == (await after.response()).labels
    assert ["vip"] == await ruled.world.written(after)
    assert BUILTIN_RULES.digest() == await _pinned(before)


async def test_a_run_keeps_the_rules_that_it_began_with(ruled: Ruled) -> None:
    """What is narrowed while a run waits is narrowed for the next run."""
    await ruled.accept()
    run = await ruled.world.start(label("vip"), lookup(), final("mutation-receipt", labels=()))
    await run.waiting()
    ruled.path.write_text(NARROW)
    assert ("failed", "unknown_tool") == await ruled.play(lookup())
    assert (await run.review("approve", approver="ann")).accepted
    response = await run.response()
    assert (Status.COMPLETED, ["apply_labels", "lookup_component_owner"]) == (
        response.status,
        list(response.tool_sequence),
    )


async def test_a_control_label_is_never_written(ruled: Ruled) -> None:
    """Neither a final answer nor a tool call gets it onto an issue, approved or not."""
    await ruled.accept()
    proposed = await ruled.world.start(lookup(), final("owners-default", labels=("ship",)))
    assert ("failed", "model_invalid_output") == outcome(await proposed.response())
    called = await ruled.world.start(label("ship"), approvals={OPERATION: 3}, mode="suggest")
    assert ("review_required", "policy_block") == outcome(await called.response())
    assert [[], []] == [await ruled.world.written(run) for run in (proposed, called)]


async def test_a_file_that_goes_wrong_stops_no_run(ruled: Ruled) -> None:
    """Runs that begin meanwhile are held to what was in force."""
    await ruled.accept()
    ruled.path.write_text("[policy\n")
    run = await ruled.world.start(lookup(), final("owners-default", labels=()))
    assert Status.COMPLETED is (await run.response()).status
    assert BUILTIN_RULES.digest() != await _pinned(run)


def test_a_worker_says_what_is_wrong_and_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong file ends it with status 2 before it connects, with each mistake and its line."""
    path = tmp_path / "rules.toml"
    path.write_text('[policy]\nmode = "yolo"\n[budget]\ntokens = -1\n')
    settings = Settings(home=tmp_path, policy=path)
    monkeypatch.setattr(worker, "load_settings", lambda: settings)
    assert 2 == worker.main([])
    assert [
        "worker: line 2: policy.mode: must be shadow, suggest or approve; correct the value",
        "line 4: budget.tokens: must be at least 0; correct the value",
    ] == capsys.readouterr().err.splitlines()
