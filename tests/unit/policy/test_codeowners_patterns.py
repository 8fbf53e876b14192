"""Promises of pattern matching: public verdicts, an independent oracle, and hostile patterns."""

from __future__ import annotations

import re
import time
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from triage.contracts.canonical import parse_json
from triage.policy.codeowners import OwnershipStatus, UnknownReason, parse_codeowners
from triage.policy.codeowners_patterns import PatternError, read_pattern
from triage.policy.codeowners_tree import Work
from triage.resources import fixtures_path

A_NAMES: Final = st.text("aab.", min_size=1, max_size=4).filter(lambda name: name.strip("."))
PATHS: Final = st.lists(A_NAMES, min_size=1, max_size=5).map("/".join)
PATTERNS: Final = st.tuples(
    st.sampled_from(["", "/"]),
    st.lists(st.one_of(st.just("**"), st.text("aab.*?", min_size=1, max_size=4)), max_size=4),
    st.sampled_from(["", "/"]),
).map(lambda parts: f"{parts[0]}{'/'.join(parts[1])}{parts[2]}")


def _verdicts() -> list[Any]:
    cases: Any = parse_json(fixtures_path("codeowners", "patterns.json").read_bytes(), "patterns")
    return [
        pytest.param(case["pattern"], path, verdict, id=f"{case['pattern']} {path}")
        for case in cases
        for path, verdict in case["paths"].items()
    ]


VERDICTS: Final = _verdicts()


def test_there_are_153_verdicts() -> None:
    """None of the public verdicts got lost."""
    assert 153 == len(VERDICTS)


@pytest.mark.parametrize(("pattern", "path", "verdict"), VERDICTS)
def test_kind_13_a_public_verdict(pattern: str, path: str, verdict: bool) -> None:
    """A pattern matches what GitHub's own matches, in every case that was published."""
    answer = parse_codeowners(f"{pattern} @o\n".encode()).lookup(path)
    assert verdict is (answer.status is OwnershipStatus.OWNED)


@given(pattern=PATTERNS, path=PATHS)
def test_patterns_match_as_gitignore_s_do(pattern: str, path: str) -> None:
    """An independent reading of gitignore agrees; `folder/*` alone is less at GitHub."""
    try:
        read_pattern(pattern)
    except PatternError:
        return
    answer = parse_codeowners(f"{pattern} @o\n".encode()).lookup(path)
    assert _expected(pattern, path) is (answer.status is OwnershipStatus.OWNED)


def _expected(pattern: str, path: str) -> bool:
    oracle = GitIgnoreSpecPattern(pattern)
    assert oracle.regex is not None
    found = oracle.regex.search(path)
    through_a_folder = found is not None and bool(found.groupdict().get("ps_d"))
    ends_in_a_star = re.search(r"/(?:\*|\*{3,})$", pattern) is not None
    return found is not None and not (through_a_folder and ends_in_a_star)


@given(patterns=st.lists(PATTERNS, max_size=12), path=PATHS)
def test_many_patterns_match_as_each_alone_does(patterns: list[str], path: str) -> None:
    """The tree of all patterns finds the last of those that match by themselves."""
    lines = [f"{pattern} @o" for pattern in patterns]
    alone = [
        number
        for number, line in enumerate(lines, start=1)
        if parse_codeowners(line.encode()).lookup(path).line
    ]
    answer = parse_codeowners("\n".join(lines).encode()).lookup(path)
    assert (alone[-1] if alone else None) == answer.line


HOSTILE: Final = {
    "stars": ["*a" * count + "*b @o" for count in range(1, 300)],
    "long stars": ["*a" * 2_000 + "*b @o"] * 100,
    "double stars": ["**/" * 1_000 + "b @o"] * 50,
    "double stars and names": ["**/a/" * 800 + "b @o"] * 50,
    "many ways": ["/".join(["**", "a*" + "a" * at] * 20) + "/b @o" for at in range(50)],
    "many globs": [f"*a{'?' * (at % 90)}{'*a' * (at // 90)}*b @o" for at in range(900)],
    "marks": ["?" * 4_000 + " @o"] * 500,
    "words": ["* " + "x " * 30_000] * 40,
    "backslashes": ["\\" * 4_001 + " @o"] * 500,
    "e-mail": ["* " + "a." * 30_000 + "@" + "a." * 2_000] * 20,
}
LONG_PATHS: Final = [
    "/".join(["a" * 100] * 30) + f"/{'a' * 900}{number}" for number in range(300)
] + ["/".join(["a"] * 2_000)]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_pattern_makes_nobody_wait(name: str) -> None:
    """Whatever patterns are made of, an answer comes in seconds: perhaps that it is unknown."""
    data = "\n".join(HOSTILE[name]).encode()
    began = time.thread_time()
    answers = parse_codeowners(data).lookup_all(LONG_PATHS)
    assert time.thread_time() - began < 30
    assert len(LONG_PATHS) == len(answers)
    assert OwnershipStatus.OWNED not in {answer.status for answer in answers}


def test_work_that_would_take_too_long_ends_as_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is counted, not timed: the same question has the same answer everywhere."""
    monkeypatch.setattr("triage.policy.codeowners.Work", lambda: Work(100_000))
    data = "\n".join(HOSTILE["many ways"]).encode()
    runs = [parse_codeowners(data).lookup_all(LONG_PATHS) for _ in range(2)]
    assert runs[0] == runs[1]
    assert UnknownReason.TOO_COMPLEX is runs[0][-1].reason
    assert OwnershipStatus.UNKNOWN is not parse_codeowners(data).lookup("a/b").status
