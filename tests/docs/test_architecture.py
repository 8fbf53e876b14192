"""Holds the tables and diagrams of docs/architecture.md to the code that they tell of."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Final

from activities.guard import LOCAL_SECONDS
from activities.services import Services
from tests.docs.pages import ROOT, page
from triage.contracts import names
from triage.contracts.failures import FAILURES
from triage.contracts.incident import LoopStatus
from triage.contracts.options import MODES
from triage.contracts.response import TERMINAL
from triage.policy.tools import BUILTIN_TOOLS, MAX_RESULT_BYTES
from triage.settings import Settings
from triage.storage.ledger import Ledger
from triage.storage.schema import MAX_RECEIPT_BYTES
from triage.storage.transitions import MOVES
from workflows import calls, evidence_loop
from workflows.state import MAX_REFUSALS_KEPT, TRANSITIONS

PAGE: Final = page("docs/architecture.md")
LOCAL_CALLS: Final = (calls.pin, calls.preview)
SECONDS: Final = {"ms": 0.001, "s": 1, "min": 60}


def test_the_table_of_states_is_the_code_s() -> None:
    """The page lists exactly the moves that a run may make, in the order of a run."""
    written = [
        (source, set(filter(None, targets.split(", "))))
        for source, targets in PAGE.table("from", "to")
    ]
    coded = [
        (source.value, {to.value for to in targets}) for source, targets in TRANSITIONS.items()
    ]
    assert coded == written


def test_the_table_of_versions_is_a_path_through_the_states() -> None:
    """The example moves only where the code lets a run move, and ends where a run ends."""
    rows = PAGE.table("version", "status", "what happened")
    path = [status for _, status, _ in rows]
    legal = {(source.value, to.value) for source, targets in TRANSITIONS.items() for to in targets}
    assert [str(number) for number in range(len(rows))] == [version for version, _, _ in rows]
    assert legal.issuperset(pairwise(path))
    assert path[-1] in {status.value for status in TERMINAL}


def test_the_diagram_of_the_ledger_is_the_code_s() -> None:
    """The diagram draws exactly the moves that a write may make."""
    [diagram] = [block.body for block in PAGE.blocks("mermaid") if "stateDiagram" in block.body]
    drawn = set(re.findall(r"^ +(\w+) --> (\w+)", diagram, re.MULTILINE))
    coded = {(source.value, to.value) for source, targets in MOVES.items() for to in targets}
    assert coded == drawn


def test_the_table_of_failures_is_the_code_s() -> None:
    """Whoever looks a failure up here finds the group, owner and next step that `show` prints."""
    coded = [
        [failure.value, info.group.value, info.owner, info.next_step]
        for failure, info in FAILURES.items()
    ]
    assert coded == PAGE.table("class", "group", "owner", "next step")


def test_the_table_of_loop_statuses_is_complete() -> None:
    """Each way in which an investigation ends has its line."""
    rows = PAGE.table("status", "how the loop ended")
    assert [status.value for status in LoopStatus] == [name for name, _ in rows]


def test_the_table_of_modes_is_the_code_s() -> None:
    """The three modes stand for the values that the page gives."""
    coded = [
        [
            mode.value,
            ", ".join(values.permitted_effects),
            str(values.approval_window_seconds),
            "yes" if values.propose_on_final else "no",
        ]
        for mode, values in MODES.items()
    ]
    headings = ("mode", "permitted_effects", "approval_window_seconds", "propose_on_final")
    assert coded == PAGE.table(*headings)


def test_the_table_of_activities_names_each_with_its_queue() -> None:
    """The activities are those that the names module declares, each on its queue."""
    rows = PAGE.table("activity", "queue", "kind", "start-to-close", "in all", "attempts")
    declared = {value for name, value in vars(names).items() if name.startswith("ACTIVITY_")}
    writes = {tool.name for tool in BUILTIN_TOOLS if tool.side_effect}
    assert declared == {row[0] for row in rows}
    for name, queue, *_ in rows:
        on_writes = names.writes_queue(names.TASK_QUEUE)
        assert (on_writes if name in writes else names.TASK_QUEUE) == queue


def test_the_table_of_activities_gives_the_code_s_timeouts() -> None:
    """Start-to-close, total and attempts are those that the workflows ask for."""
    inside = timedelta(seconds=LOCAL_SECONDS)
    local = (inside, calls.INFRASTRUCTURE_TOTAL, calls.INFRASTRUCTURE.maximum_attempts)
    model = _remote(Services.model_timeout)
    expected = {
        names.ACTIVITY_PIN_RUN_CONTEXT: local,
        names.ACTIVITY_PREVIEW_OPERATION: local,
        names.ACTIVITY_VERIFY_APPROVAL: _remote(calls.VERIFY_TIMEOUT),
        names.ACTIVITY_OPEN_INCIDENT: local,
        names.ACTIVITY_DECIDE: model,
        names.ACTIVITY_CHOOSE_ACTION: _remote(evidence_loop._TIMEOUT),
        names.ACTIVITY_READ_REFERENCE: _remote(evidence_loop._TIMEOUT),
        names.ACTIVITY_APPLY_LABELS: (
            calls.WRITE_TIMEOUT,
            calls.WRITE_TOTAL,
            calls.WRITE_RETRY.maximum_attempts,
        ),
    } | {
        tool.name: (
            inside if tool.local else timedelta(milliseconds=tool.timeout_ms) + calls.GRACE,
            calls.INFRASTRUCTURE_TOTAL,
            tool.retry.max_attempts,
        )
        for tool in BUILTIN_TOOLS
        if not tool.side_effect
    }
    rows = PAGE.table("activity", "queue", "kind", "start-to-close", "in all", "attempts")
    written = {row[0]: (_sum_of(row[3]), _sum_of(row[4]), int(row[5])) for row in rows}
    assert expected == written


def test_the_table_of_activities_says_which_are_local() -> None:
    """Local are those that the workflows call as local activities, and reads that say so."""
    rows = PAGE.table("activity", "queue", "kind", "start-to-close", "in all", "attempts")
    called = {_name_called(function) for function in LOCAL_CALLS} | {names.ACTIVITY_OPEN_INCIDENT}
    called |= {tool.name for tool in BUILTIN_TOOLS if tool.snapshot().local}
    assert called == {row[0] for row in rows if row[2] == "local"}


def test_numbers_in_the_text_are_the_code_s() -> None:
    """Limits that the prose gives are the constants that hold them."""
    defaults = {name: field.default for name, field in Settings.model_fields.items()}
    ledger = Ledger.__init__.__kwdefaults__ or {}
    for words in (
        f"held to {MAX_RESULT_BYTES // 1024} KiB",
        f"at most {MAX_RECEIPT_BYTES:,} bytes",
        f"the latest {MAX_REFUSALS_KEPT} of them",
        f"({defaults['quiet_period_seconds']:.0f} s by default)",
        f"({defaults['evidence_retention_days']} days by default)",
        f"heartbeat {calls.WRITE_HEARTBEAT.total_seconds():.0f} s",
        f"the sticky one ({defaults['sticky_timeout_seconds']:.0f} s)",
        f"plus {calls.GRACE.total_seconds():.0f} s",
    ):
        assert words in PAGE.text
    assert {"quiet_period_seconds": 120.0, "max_redispatch": 2}.items() <= ledger.items()


def test_the_diagram_of_imports_is_the_code_s() -> None:
    """Whatever a package imports of ours lies below it in the diagram."""
    below = _below()
    strays = {
        f"{importer} -> {imported}"
        for importer in below
        for path in _files_of(importer)
        for imported in _packages_imported(path, set(below))
        if imported not in {importer, *below[importer]}
    }
    assert set() == strays


def _below() -> dict[str, set[str]]:
    """Read the diagram's plain arrows, and follow them."""
    [diagram] = [block.body for block in PAGE.blocks("mermaid") if "flowchart TD" in block.body]
    labels = dict(re.findall(r'(\w+)\["([^"]+)"\]', diagram))
    arrows: dict[str, set[str]] = {}
    for line in re.sub(r'\["[^"]+"\]', "", diagram).splitlines():
        sources, arrow, targets = line.partition(" --> ")
        for source in re.findall(r"\w+", sources) if arrow else ():
            arrows.setdefault(source, set()).update(re.findall(r"\w+", targets))
    name = {node: labels.get(node, node) for node in set().union(*arrows.values(), arrows)}
    return {name[node]: {name[below] for below in _reached(arrows, node)} for node in name}


def _reached(arrows: dict[str, set[str]], source: str) -> set[str]:
    found: set[str] = set()
    waiting = [source]
    while waiting:
        new = arrows.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return found


def _files_of(package: str) -> list[Path]:
    path = ROOT / (package if package.endswith(".py") else package.replace(".", "/"))
    return [path] if path.is_file() else sorted(path.rglob("*.py"))


def _packages_imported(path: Path, packages: set[str]) -> set[str]:
    """Return those of `packages` that a file imports from."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
    return {
        package for package in packages for name in found if f"{name}.".startswith(f"{package}.")
    }


def _remote(deadline: timedelta) -> tuple[timedelta, timedelta, int]:
    attempts = calls.INFRASTRUCTURE.maximum_attempts
    return deadline + calls.GRACE, calls.INFRASTRUCTURE_TOTAL, attempts


def _name_called(function: Callable[..., object]) -> str:
    """Return the activity that one of the helpers in `workflows.calls` runs locally."""
    code = function.__code__
    assert "local" in code.co_names
    [attribute] = [name for name in code.co_names if name.startswith("ACTIVITY_")]
    return str(getattr(names, attribute))


def _sum_of(text: str) -> timedelta:
    """Add up the times in a cell, leaving out a heartbeat."""
    found = re.findall(r"(\d+) (ms|min|s)\b", text.partition(",")[0])
    return timedelta(seconds=sum(int(number) * SECONDS[unit] for number, unit in found))
