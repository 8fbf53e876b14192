"""Holds every page to what exists: links, commands, options and diagrams; and to no machine."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from typing import Final

import pytest
from typer.testing import CliRunner

from tests.docs.pages import ROOT, Page, page, pages
from triage.cli.main import app

PAGES: Final = pages()
GROUPS: Final = ("audit", "issues", "keys", "operations", "owners", "policy", "writes")
DIAGRAMS: Final = ("flowchart", "sequenceDiagram", "stateDiagram-v2")
PAIRS: Final = {")": "(", "]": "[", "}": "{"}
# Registries, and folders that only the machine has where something was written.
STRANGE: Final = re.compile(
    r"(?:pypi|pythonhosted|npmjs|crates|rubygems)\.(?:org|io|com)"
    r"|(?<![\w.])/(?:home|Users)/\w+/|(?<![\w.])/(?:root|work|opt|mnt)/\w"
)

every_page = pytest.mark.parametrize("one", PAGES, ids=[one.name for one in PAGES])


@every_page
def test_each_link_leads_somewhere(one: Page) -> None:
    """A relative link names a file that is there, and its fragment a heading in it."""
    dead = [target for target in one.links() if not _leads_somewhere(one, target)]
    assert [] == dead


def _leads_somewhere(one: Page, target: str) -> bool:
    if re.match(r"[a-z]+:", target):
        return True
    name, _, fragment = target.partition("#")
    path = (one.path.parent / name).resolve() if name else one.path
    if not path.exists() or not path.is_relative_to(ROOT):
        return False
    return not fragment or fragment in page(path.relative_to(ROOT).as_posix()).anchors()


@every_page
def test_each_command_and_option_exists(one: Page) -> None:
    """Whoever types a `triage` line from a page finds the command and each of its options."""
    unknown = [
        f"{' '.join(words)}: {option or 'no such command'}"
        for words, options in _commands(one)
        for option in (None, *options)
        if not _knows(words, option)
    ]
    assert [] == unknown


def test_the_pages_name_commands() -> None:
    """The check above finds something to check."""
    found = {words[0] for one in PAGES for words, _ in _commands(one)}
    assert {"start", "approve", "show", "evaluate", "replay"} <= found


def _commands(one: Page) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """Find the `triage` lines of a page: command words and options."""
    lines = re.findall(r"`triage ([^`]+)`", one.prose)
    for block in one.blocks():
        if block.kind != "mermaid":
            joined = block.body.replace("\\\n", " ")
            lines += re.findall(r"^(?:\$ )?triage (.+)$", joined, re.MULTILINE)
    for line in lines:
        words = line.split()
        if re.fullmatch(r"[a-z]+", words[0]):
            length = 2 if words[0] in GROUPS and re.match(r"[a-z]", " ".join(words[1:])) else 1
            yield tuple(words[:length]), re.findall(r"(?<![\w-])--[a-z][a-z-]*", line)


def _knows(words: tuple[str, ...], option: str | None) -> bool:
    text = _help(words)
    return bool(text) and (option is None or option in re.findall(r"--[a-z][a-z-]*", text))


@cache
def _help(words: tuple[str, ...]) -> str:
    done = CliRunner().invoke(app, [*words, "--help"])
    return done.stdout if done.exit_code == 0 else ""


@every_page
def test_each_diagram_is_well_formed(one: Page) -> None:
    """A diagram is of a known kind, its brackets and quotes match, and its subgraphs end."""
    problems = [
        f"line {block.line}: {problem}"
        for block in one.blocks("mermaid")
        for problem in _diagram_problems(block.body)
    ]
    assert [] == problems


def _diagram_problems(text: str) -> Iterator[str]:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    kind = lines[0].split()[0]
    if kind not in DIAGRAMS:
        yield f"{kind} is no diagram"
    yield from (f"unbalanced: {line}" for line in lines if not _is_balanced(line))
    opened = sum(line.split()[0] in {"subgraph", "alt", "opt", "loop"} for line in lines)
    if opened != lines.count("end"):
        yield "a part does not end"
    if kind == "sequenceDiagram":
        known = set(re.findall(r"^ *participant (\w+)", text, re.MULTILINE))
        spoken = re.findall(r"^ *(\w+)--?>>(\w+):", text, re.MULTILINE)
        yield from (
            f"{name} takes no part" for pair in spoken for name in pair if name not in known
        )


def _is_balanced(line: str) -> bool:
    """Tell whether quotes and brackets of a line match, leaving out what messages say."""
    if line.count('"') % 2:
        return False
    stack: list[str] = []
    for sign in re.sub(r'"[^"]*"|--?>>.*', "", line):
        if sign in PAIRS.values():
            stack.append(sign)
        elif sign in PAIRS and (not stack or stack.pop() != PAIRS[sign]):
            return False
    return not stack


@pytest.mark.parametrize(
    ("text", "is_fine"),
    [
        ('flowchart LR\n  a["one (1)"] --> b', True),
        ("flowchart LR\n  a[one --> b", False),
        ("flowchart LR\n  subgraph s\n  a --> b", False),
        ("flow LR\n  a --> b", False),
        ("sequenceDiagram\n  participant A\n  A->>A: f(x", True),
        ("sequenceDiagram\n  participant A\n  A->>B: hello", False),
    ],
)
def test_the_check_of_diagrams_can_fail(text: str, is_fine: bool) -> None:
    """A diagram that would not be drawn is seen."""
    assert is_fine == (not list(_diagram_problems(text)))


def test_no_file_names_a_registry_or_a_machine() -> None:
    """What is in the repository holds on every machine, whatever it installs from."""
    git = shutil.which("git")
    assert git, "git lists the files"
    command = [git, "ls-files", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = [
        f"{name}: {match[0]}"
        for name in listed.split("\0")
        if name and (ROOT / name).is_file()
        for match in STRANGE.finditer((ROOT / name).read_text(encoding="utf-8", errors="replace"))
    ]
    assert [] == found
