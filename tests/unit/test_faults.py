"""Fault points are in the product, and nothing in the product can set one off."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from triage import faults
from triage.faults import Point, arm, reach

ROOT = Path(__file__).parents[2]
FOLDERS = ("activities", "triage", "workflows")
WITHOUT = ("workflows", "triage/contracts", "triage/policy", "triage/models", "triage/signing")
"""Where none may be: what replays, and what has no effects."""


def _sources() -> list[Path]:
    own = ROOT / "triage" / "faults.py"
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    return sorted({*found, ROOT / "worker.py"} - {own})


def _taken(tree: ast.AST) -> Iterator[str]:
    """Find what a module takes from `triage.faults`; the module itself counts as everything."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ("*" for alias in node.names if alias.name == "triage.faults")
        elif isinstance(node, ast.ImportFrom) and node.module == "triage":
            yield from ("*" for alias in node.names if alias.name == "faults")
        elif isinstance(node, ast.ImportFrom) and node.module == "triage.faults":
            yield from (alias.name for alias in node.names)


def _tree(path: Path) -> ast.AST:
    return ast.parse(path.read_text(encoding="utf-8"))


def test_no_module_of_the_product_can_arm_a_point() -> None:
    """Production code can say where it is, and has no other part of this module."""
    taken = {path.relative_to(ROOT): set(_taken(_tree(path))) for path in _sources()}
    assert {} == {path: names for path, names in taken.items() if names - {"Point", "reach"}}
    assert any(taken.values())


def test_no_point_is_where_code_replays() -> None:
    """Workflows and what they may import have no fault points: a replay passes none."""
    inside = [
        str(path.relative_to(ROOT))
        for folder in WITHOUT
        for path in (ROOT / folder).rglob("*.py")
        if set(_taken(_tree(path)))
    ]
    assert [] == inside


def test_the_module_reads_nothing() -> None:
    """It has no way to learn of a variable, a setting, an option or a file."""
    tree = _tree(ROOT / "triage" / "faults.py")
    imported = {
        node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert {"__future__", "collections.abc", "enum", "typing"} == imported


@pytest.mark.parametrize("point", Point)
def test_each_point_is_somewhere(point: Point) -> None:
    """A point that the registry names is reached by production code, under its one name."""
    used = re.compile(rf"\breach\(\s*Point\.{point.name}\b")
    places = [path for path in _sources() if used.search(path.read_text(encoding="utf-8"))]
    assert places, point
    assert re.fullmatch(r"[a-z_]+\.[a-z_]+", point)


def test_a_point_calls_only_who_armed_this_process() -> None:
    """A point does nothing; armed, it tells where the process is; disarmed, nothing again."""
    seen: list[tuple[Point, str]] = []
    reach(Point.WRITE_BEFORE_SEND)
    disarm = arm(lambda point, subject: seen.append((point, subject)))
    reach(Point.ACTIVITY_BEGIN, "decide")
    disarm()
    reach(Point.WRITE_AFTER_SEND)
    assert [(Point.ACTIVITY_BEGIN, "decide")] == seen
    assert [] == faults._hooks
