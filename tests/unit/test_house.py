"""Holds the house to its own rules, where no linter has them."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FUNCTION_LINES = 40
MODULE_LINES = 400

# What each of the pure packages may import beside the standard library.
MAY_IMPORT = {
    "workflows": ("workflows", "triage.contracts", "triage.policy", "temporalio", "pydantic"),
    "triage/contracts": ("triage.contracts", "temporalio", "pydantic"),
    "triage/policy": ("triage.policy", "triage.contracts", "pydantic", "markdown_it"),
}
LIMITS = {"timeout": 0, "wait_for": 1}
"""Calls that give up, and which of their arguments says when."""
SUPPRESSION = re.compile(
    r"#\s*(?:noqa|type:\s*ignore)"
    r"(?P<codes>:\s*[A-Z]+\d+(?:,\s*[A-Z]+\d+)*|\[[\w, -]+\])?(?P<rest>.*)"
)


def _sources() -> list[Path]:
    folders = ("activities", "benchmarks", "tests", "triage", "workflows")
    return sorted(ROOT.glob("*.py")) + sorted(
        path for folder in folders for path in (ROOT / folder).rglob("*.py")
    )


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _lines_without_docstring(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = function.body[0]
    documented = ast.get_docstring(function) is not None and first.end_lineno is not None
    docstring = first.end_lineno - first.lineno + 1 if documented and first.end_lineno else 0
    return (function.end_lineno or function.lineno) - function.lineno + 1 - docstring


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield f"{node.module}.{alias.name}"


def test_modules_and_functions_stay_small() -> None:
    """No module has over 400 lines and no function over 40; a migration may list a whole schema."""
    too_long = []
    for path in _sources():
        if "migrations" in path.parts:
            continue
        text = path.read_text(encoding="utf-8")
        name = path.relative_to(ROOT)
        if (lines := text.count("\n")) > MODULE_LINES:
            too_long.append(f"{name}: {lines} lines")
        too_long += [
            f"{name}:{function.lineno} {function.name}: {lines} lines"
            for function in _functions(ast.parse(text))
            if (lines := _lines_without_docstring(function)) > FUNCTION_LINES
        ]
    assert [] == too_long


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_pure_packages_import_only_what_they_may(package: str) -> None:
    """Workflows, contracts and policy reach nothing that replay or a reader must not depend on."""
    allowed = MAY_IMPORT[package]
    strays = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in sorted((ROOT / package).rglob("*.py"))
        for name in _imports(ast.parse(path.read_text(encoding="utf-8")))
        if name.split(".")[0] not in sys.stdlib_module_names
        and not any(f"{name}.".startswith(f"{good}.") for good in allowed)
    ]
    assert [] == strays


def test_the_workflow_package_runs_no_code_of_its_own() -> None:
    """The sandbox imports workflows/__init__.py for every workflow, so it is empty."""
    assert "" == (ROOT / "workflows" / "__init__.py").read_text(encoding="utf-8")


def test_nothing_imports_the_wiring() -> None:
    """Whoever wants a worker starts `python -m worker` as a process of its own."""
    importers = [
        str(path.relative_to(ROOT))
        for path in _sources()
        if "tests" not in path.parts
        for name in _imports(ast.parse(path.read_text(encoding="utf-8")))
        if name.split(".")[0] == "worker"
    ]
    assert [] == importers


def test_one_module_reads_the_environment() -> None:
    """A setting that exists is a field of triage.settings, found and checked there."""
    readers = {
        str(path.relative_to(ROOT))
        for path in _sources()
        if "tests" not in path.parts
        and re.search(r"os\.(?:environ|getenv)", path.read_text(encoding="utf-8"))
    }
    assert {"triage/settings.py"} == readers


def test_each_suppression_says_what_and_why() -> None:
    """Whoever silences a check names the rule and gives the reason beside it."""
    bare = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in _sources()
        if path != Path(__file__)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        for match in [SUPPRESSION.search(line)]
        if match and (not match["codes"] or not re.search(r"[A-Za-z]{3}", match["rest"]))
    ]
    assert [] == bare


def _limits(tree: ast.AST) -> Iterator[tuple[int, float]]:
    """Yield where a number says how long something may take, and which."""
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        name = getattr(call.func, "attr", getattr(call.func, "id", ""))
        place = LIMITS.get(name)
        given = [] if place is None else call.args[place : place + 1]
        given += [keyword.value for keyword in call.keywords if keyword.arg == "timeout"]
        for value in given:
            if isinstance(value, ast.Constant) and isinstance(value.value, int | float):
                yield call.lineno, value.value


def test_no_test_gives_up_on_a_slow_machine() -> None:
    """A limit in a test is under a second, for it has to run out, or minutes, for it must not."""
    between = [
        f"{path.relative_to(ROOT)}:{line}: {seconds} s"
        for path in (ROOT / "tests").rglob("*.py")
        for line, seconds in _limits(ast.parse(path.read_text(encoding="utf-8")))
        if 1 <= seconds < 60
    ]
    assert [] == between
