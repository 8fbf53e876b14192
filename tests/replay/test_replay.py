"""Today's workflows take the recorded runs to their recorded ends, step by step."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.replay import child
from tests.replay.conftest import Answers, Once
from tests.replay.histories import COMMANDS, events_text, history_files, read_events

MEETS_RUNS_HALF_WAY = """
Runs that began before this change will meet it half way, and their replay looks as above.
Either keep the old path behind workflow.patched("what-changed") and take the new one only where
that answers true, or let a new worker version take new runs only. Until the first release tag
`make histories` may record the histories anew instead. CONTRIBUTING, "Changing a workflow", says
more."""

COMMANDS_CHANGED = """
The workflows now ask for other activities, arguments, timeouts, retries or queues than those
listed in fixtures/histories/commands.json. A replay cannot see that, but a run that is waiting
meets the change half way: will its next activity still get what it needs, and still be bounded?
If not, keep the old call behind workflow.patched("what-changed"). If so, say why in the commit
and list the commands anew with `python -m tests.replay.record --commands`."""


@pytest.fixture(scope="module")
def answers(once: Once) -> Answers:
    """What `worker --replay` says of every recorded history."""
    return once("replayed", lambda: child.replay(history_files()))


@pytest.mark.parametrize("name", [file.stem for file in history_files()])
def test_a_recorded_run_replays(answers: Answers, name: str) -> None:
    """A run that was recorded takes the same steps and comes to the same end."""
    answer = answers[name]
    assert answer["ok"], answer["error"] + MEETS_RUNS_HALF_WAY


def test_a_run_replays_from_wherever_it_stands(tmp_path: Path) -> None:
    """A worker that takes over a run at any event goes on from exactly there."""
    [whole] = [f for f in history_files() if f.stem == "completed-edited-while-waiting"]
    events = read_events(whole)
    prefixes = [tmp_path / f"{length}.json" for length in range(2, len(events) + 1)]
    for prefix in prefixes:
        prefix.write_text(events_text(events[: int(prefix.stem)]), encoding="utf-8")
    answers = child.replay(prefixes)
    assert {prefix.stem for prefix in prefixes} == set(answers)
    assert {} == {name: a["error"] for name, a in answers.items() if not a["ok"]}


@pytest.fixture(scope="module")
def comparison(once: Once) -> Answers:
    """What two replays of every history do, one in the sandbox and one outside."""
    return once("compared", lambda: child.run_module("tests.replay.compare", history_files()))


def test_the_sandbox_changes_nothing(comparison: Answers) -> None:
    """With and without the sandbox a run asks for the recorded activities and arguments."""
    assert {} == {name: a["error"] for name, a in comparison.items() if not a["ok"]}


def test_commands_are_those_on_record(comparison: Answers) -> None:
    """A change of arguments, timeouts, retries or queues is made on purpose."""
    listed = set(json.loads(COMMANDS.read_text(encoding="utf-8")))
    issued = {line for answer in comparison.values() for line in answer["commands"]}
    changes = sorted([*(f"- {x}" for x in listed - issued), *(f"+ {x}" for x in issued - listed)])
    assert listed == issued, "\n".join(["", *changes, COMMANDS_CHANGED])
