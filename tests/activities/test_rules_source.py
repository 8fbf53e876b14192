"""The rules in force: those of the file as far as a person accepted them, in every worker."""

from __future__ import annotations

import asyncio
import logging
import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import text

from activities.rules_source import RulesSource
from tests.clock import PATIENCE_SECONDS
from triage.policy.rules import BUILTIN_RULES, Rules
from triage.policy.rules_file import RulesFileError, read_rules
from triage.policy.tools import BUILTIN_TOOLS
from triage.rules_place import RulesPlace
from triage.storage.acceptances import Acceptances
from triage.storage.engine import Store
from triage.storage.errors import StorageError

NARROW = '[policy]\nmode = "shadow"\n'
WIDE = '[policy]\nmode = "approve"\n[labels]\nship = "descriptive"\n'
WIDER = WIDE + 'sail = "descriptive"\n'
LESS = '[policy]\nmode = "approve"\n'
WRONG = '[policy]\nmode = "yolo"\n[lables]\n'


@dataclass
class Desk:
    """A rules file, a store and a worker's source of rules."""

    path: Path
    store: Store
    source: RulesSource

    def write(self, content: str) -> None:
        """Put a file in the place of the old one, as an editor or a deployment does."""
        fresh = self.path.with_suffix(".new")
        fresh.write_text(content)
        fresh.replace(self.path)

    async def accept(self, content: str) -> None:
        """Accept what a file with this content says."""
        acceptances = Acceptances(self.store)
        known = await acceptances.current()
        await acceptances.accept(rules_of(content), replaces=known, widens=(), by="ann")

    def another(self, **place: bool) -> RulesSource:
        """The source of another worker, or of this one after a restart."""
        return source(self.path, self.store, **place)


def source(path: Path | None, store: Store, *, beside_settings: bool = False) -> RulesSource:
    """A worker's source of rules."""
    return RulesSource(RulesPlace(path, beside_settings), BUILTIN_TOOLS, Acceptances(store))


def rules_of(content: str) -> Rules:
    """What a file with this content says."""
    return read_rules(content, [spec.name for spec in BUILTIN_TOOLS]).rules


@pytest.fixture
def desk(store: Store, tmp_path: Path) -> Desk:
    """A place for a rules file where none is yet."""
    path = tmp_path / "rules.toml"
    return Desk(path, store, source(path, store))


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, dict[str, object]]]:
    """What was logged since the last time: the event's first words and the fields."""
    names = ("digest", "waiting", "count", "code")
    found: list[tuple[str, dict[str, object]]] = [
        (
            record.message.partition(":")[0],
            {name: vars(record)[name] for name in names if name in vars(record)},
        )
        for record in caplog.records
        if record.name == "activities.rules_source"
    ]
    caplog.clear()
    return found


async def test_without_a_file_the_built_in_rules_are_in_force(store: Store) -> None:
    """Nothing has to be written or accepted to begin."""
    assert BUILTIN_RULES == await source(None, store).in_force()


async def test_settings_alone_are_no_rules(desk: Desk) -> None:
    """A triage.toml without any table of the rules leaves the built-in ones in force."""
    desk.write('model = "rules"\n')
    beside = desk.another(beside_settings=True)
    assert BUILTIN_RULES == await beside.in_force()
    desk.write(f'model = "rules"\n{NARROW}')
    assert rules_of(NARROW) == await beside.in_force()


async def test_a_file_that_narrows_is_in_force_at_once(desk: Desk) -> None:
    """What allows less needs nobody, and the next run is held to it."""
    desk.write(NARROW)
    assert rules_of(NARROW) == await desk.source.in_force()
    desk.write("")
    assert rules_of("") == await desk.source.in_force()


async def test_a_file_that_widens_waits_until_it_is_accepted(desk: Desk) -> None:
    """The rules before it stay in force, in every worker, and then change in every worker."""
    desk.write(WIDE)
    workers = (desk.source, desk.another())
    assert [BUILTIN_RULES] * 2 == [await worker.in_force() for worker in workers]
    await desk.accept(WIDE)
    assert [rules_of(WIDE)] * 2 == [await worker.in_force() for worker in workers]
    assert rules_of(WIDE) == await desk.another().in_force()


async def test_a_file_is_compared_with_what_was_accepted_last(desk: Desk) -> None:
    """After an acceptance, less is in force at once, the same again too, and more waits."""
    await desk.accept(WIDE)
    found = []
    for content in (LESS, WIDE, WIDER, LESS):
        desk.write(content)
        found.append(await desk.source.in_force())
    assert [rules_of(content) for content in (LESS, WIDE, WIDE, LESS)] == found


async def test_no_file_is_not_a_way_around_what_was_accepted(desk: Desk) -> None:
    """A worker without a file keeps to the accepted rules where the built-in ones allow more."""
    await desk.accept(NARROW)
    assert rules_of(NARROW) == await source(None, desk.store).in_force()


async def test_what_was_accepted_is_exactly_that_file(desk: Desk) -> None:
    """An acceptance of one file is none of another that widens as much."""
    await desk.accept(WIDE)
    other = WIDE.replace("ship", "sail")
    desk.write(other)
    assert rules_of(WIDE) == await desk.source.in_force()


BROKEN = {
    "wrong": WRONG,
    "no TOML": "[",
    "no text": "\udcff",
    "large": "#" * 2_000_000,
    "5,000 digits": f"[budget]\ntokens = {'9' * 5_000}\n",
    "5,000 parts": f"a{'.a' * 5_000} = 1\n",
    "3,000 mistakes": "[labels]\n" + "".join(f'"l{number}" = 3\n' for number in range(3_000)),
}


@pytest.mark.parametrize("kind", BROKEN)
async def test_a_file_that_goes_wrong_changes_nothing(desk: Desk, kind: str) -> None:
    """What was in force stays so until the file can be used again."""
    desk.write(NARROW)
    await desk.source.in_force()
    desk.path.write_bytes(BROKEN[kind].encode(errors="surrogateescape"))
    assert rules_of(NARROW) == await desk.source.in_force()
    desk.write("")
    assert rules_of("") == await desk.source.in_force()


async def test_a_mistake_of_ours_in_reading_a_file_changes_nothing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever goes wrong, the good rules stay in force, and only its type is told."""
    desk.write(NARROW)
    await desk.source.in_force()
    monkeypatch.setattr("triage.rules_place.read_rules", None)
    desk.write(WIDE)
    assert rules_of(NARROW) == await desk.source.in_force()
    with pytest.raises(RulesFileError) as told:
        await desk.another().in_force()
    assert "the file: cannot be understood (TypeError); correct it" == str(told.value)


async def test_a_file_that_is_gone_changes_nothing(desk: Desk) -> None:
    """Not even when a folder takes its place."""
    desk.write(NARROW)
    await desk.source.in_force()
    desk.path.unlink()
    assert rules_of(NARROW) == await desk.source.in_force()
    desk.path.mkdir()
    assert rules_of(NARROW) == await desk.source.in_force()


async def test_an_acceptance_counts_while_the_file_is_wrong(desk: Desk) -> None:
    """What is written last, and was good, can still be accepted."""
    desk.write(WIDE)
    await desk.source.in_force()
    desk.write(WRONG)
    await desk.accept(WIDE)
    assert rules_of(WIDE) == await desk.source.in_force()


@pytest.mark.parametrize("content", [WRONG, None])
async def test_a_worker_does_not_start_with_a_wrong_file(desk: Desk, content: str | None) -> None:
    """It is told of every mistake, each with its line, and guesses no rules."""
    if content is not None:
        desk.write(content)
    for _ in range(2):
        with pytest.raises(RulesFileError) as error:
            await desk.source.in_force()
    found = [(finding.line, finding.where) for finding in error.value.findings]
    assert ([(0, "the file")] if content is None else [(2, "policy.mode"), (3, "lables")]) == found


async def test_a_pipe_keeps_nobody_waiting(desk: Desk) -> None:
    """A place that is no regular file is refused at once."""
    os.mkfifo(desk.path)
    with pytest.raises(RulesFileError, match="no regular file"):
        await asyncio.wait_for(desk.source.in_force(), PATIENCE_SECONDS)


async def test_a_file_is_read_only_when_it_has_changed(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that begins costs one look at the file, not its content."""
    desk.write(NARROW)
    await desk.source.in_force()
    monkeypatch.setattr("triage.rules_place.read_rules", None)
    assert rules_of(NARROW) == await desk.source.in_force()


async def test_many_runs_may_begin_at_once(desk: Desk) -> None:
    """All of them are held to the same rules."""
    desk.write(NARROW)
    found = await asyncio.gather(*(desk.source.in_force() for _ in range(20)))
    assert [rules_of(NARROW)] * 20 == found


async def test_each_change_is_one_line_of_digests_and_counts(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    """What is in force, what waits and what is wrong is said once, and nothing of the content."""
    caplog.set_level(logging.INFO, "activities.rules_source")
    narrow, wide = rules_of(NARROW).digest(), rules_of(WIDE).digest()
    told = []
    for content in (NARROW, NARROW, WIDE, WRONG, WRONG, WIDE):
        desk.write(content)
        await desk.source.in_force()
        told += lines(caplog)
    await desk.accept(WIDE)
    await desk.source.in_force()
    assert [
        ("rules are in force", {"digest": narrow}),
        (
            "rules wait for acceptance",
            {"digest": BUILTIN_RULES.digest(), "waiting": wide, "count": 2},
        ),
        ("the rules file cannot be used", {"code": "wrong", "count": 2}),
        ("the rules file can be used again", {}),
        ("rules are in force", {"digest": wide}),
    ] == told + lines(caplog)


async def test_without_the_store_no_rules_are_in_force(desk: Desk) -> None:
    """Not knowing what was accepted, a worker pins nothing."""
    desk.write(NARROW)
    await desk.source.in_force()
    async with desk.store.write() as connection:
        await connection.execute(text("DROP TABLE acceptances"))
    with pytest.raises(StorageError):
        await desk.source.in_force()
