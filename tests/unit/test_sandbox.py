"""The sandbox loads nothing for a run, takes away what a workflow must not use, and can be off."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from unittest import mock

import pytest
from temporalio.client import Client
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

import worker
import workflows.issue_triage
from triage.early_queries import BareRunner
from triage.replay import read_history, replay_failure
from triage.sandbox import bare, sandboxed
from triage.settings import Role, Settings

ROOT = Path(worker.__file__).parent
HISTORIES = ROOT / "fixtures" / "histories"
IN_WORKFLOWS = ("workflows", "triage/contracts", "triage/policy")
"""What workflow code consists of: `test_house.py` holds it to importing nothing else of ours."""
CHANGING = frozenset(
    ["add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "update"]
)


async def test_a_run_loads_no_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs consist of is loaded once, and not for each of them."""
    loaded: list[str] = []
    load = SourceFileLoader.exec_module

    def watched(loader: SourceFileLoader, module: ModuleType) -> None:
        loaded.append(module.__name__)
        load(loader, module)

    history = read_history(HISTORIES / "completed.json")
    await replay_failure(history, worker.WORKFLOWS)
    monkeypatch.setattr(SourceFileLoader, "exec_module", watched)
    assert await replay_failure(history, worker.WORKFLOWS) is None
    assert [] == loaded


def test_what_is_loaded_once_keeps_nothing() -> None:
    """No function that a workflow may call changes what belongs to its module or its class."""
    kept = [
        f"{path.relative_to(ROOT)}:{line}"
        for folder in IN_WORKFLOWS
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line in _changes(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert [] == kept


@pytest.mark.parametrize(
    "code",
    [
        "SEEN = []\ndef f():\n    SEEN.append(1)",
        "SEEN = {}\ndef f():\n    SEEN[1] = 2",
        "SEEN = {}\nclass C:\n    def f(self):\n        del SEEN[1]",
        "SEEN = 0\ndef f():\n    global SEEN\n    SEEN = 1",
        "class C:\n    seen = 0\n    def f(self):\n        C.seen += 1",
        "import other\ndef f():\n    other.seen = 1",
    ],
)
def test_what_keeps_something_is_seen(code: str) -> None:
    """The test above finds each way to keep something between two runs."""
    assert list(_changes(ast.parse(code)))


async def test_the_sandbox_denies_what_is_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in code that was loaded once, a builtin that a workflow must not use is refused."""

    def reads_a_file(*_: object, **__: object) -> None:
        with open(__file__, encoding="utf-8"):  # noqa: PTH123 - the builtin is the point
            pass

    monkeypatch.setattr(workflows.issue_triage, "conclude", reads_a_file)
    history = read_history(HISTORIES / "completed.json")
    failure = await replay_failure(history, worker.WORKFLOWS)
    assert failure is not None
    assert "Cannot access __builtins__.open from inside a workflow" in failure


def test_a_worker_runs_what_a_replay_replays() -> None:
    """The worker isolates its workflows exactly as a replay does."""
    runner = _runner_of(Settings(roles=(Role.DECIDE,)))
    assert isinstance(runner, SandboxedWorkflowRunner)
    assert sandboxed().restrictions == runner.restrictions


def test_a_worker_may_go_without_the_sandbox() -> None:
    """A setting takes the sandbox away, and leaves the guard against early queries."""
    runner = _runner_of(Settings(roles=(Role.DECIDE,), workflow_sandbox=False))
    assert isinstance(runner, BareRunner)
    assert type(bare()) is type(runner)


def _runner_of(settings: Settings) -> object:
    with (
        mock.patch.object(worker, "Worker") as made,
        mock.patch.object(worker, "decide_activities"),
    ):
        worker.build_workers(mock.create_autospec(Client), settings, mock.Mock())
    [made_with] = [call.kwargs["workflow_runner"] for call in made.call_args_list]
    return made_with


def _changes(module: ast.Module) -> Iterator[int]:
    """Yield the lines of functions that change something which outlives them."""
    shared = {name for node in module.body for name in _names_of(node)}
    for function in ast.walk(module):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            outside = shared - _own_names(function)
            parts = [part for statement in function.body for part in ast.walk(statement)]
            if any(_is_change(part, outside) for part in parts):
                yield function.lineno


def _names_of(node: ast.stmt) -> Iterator[str]:
    """Yield what a statement of a module gives a name to."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
        return
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            yield part.id
        elif isinstance(part, ast.alias):
            yield (part.asname or part.name).partition(".")[0]


def _own_names(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    named = {part.arg for part in ast.walk(function) if isinstance(part, ast.arg)}
    stored = {
        part.id
        for part in ast.walk(function)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    }
    return named | stored


def _is_change(node: ast.AST, outside: set[str]) -> bool:
    match node:
        case ast.Global():
            return True
        case ast.Attribute(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
            return name in outside
        case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
            return name in outside
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)):
            return name in outside and method in CHANGING
    return False
