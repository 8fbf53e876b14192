"""Which paths an issue names: exactly those, and only where a reader sees them."""

from __future__ import annotations

import pytest

from triage.policy.named_paths import MAX_MENTIONED, NamedPaths, mentioned_paths, visible

NAMED = [
    "Fails in src/a.py",
    "Fails in `src/a.py`.",
    "src/a.py:12: error",
    "(./src/a.py)",
    "see /src/a.py, please",
    "**src/a.py** and more",
    "src/a.py",
    "`src/a.py`\u2026",
]
OTHERS = [
    "vendor/src/a.py",
    "/usr/lib/src/a.py",
    "https://example.org/src/a.py",
    "src/a.pyc",
    "src/a.py.orig",
    "src/a.py/b",
    "src/A.py",
    "xsrc/a.py",
    "-src/a.py",
    "C:\\src/a.py",
    "a.py in src",
    "<!-- src/a.py -->",
    "<!-- an end that never comes src/a.py",
    "",
]


@pytest.mark.parametrize("body", NAMED)
def test_a_path_in_the_text_is_named(body: str) -> None:
    """Marks around it, a line number and the root make no difference."""
    assert "src/a.py" in NamedPaths.of("A title", body, [])


@pytest.mark.parametrize("body", OTHERS)
def test_another_path_is_not_that_one(body: str) -> None:
    """A part of a longer one, of an address, or what no reader sees is not the path."""
    assert "src/a.py" not in NamedPaths.of("A title", body, [])


@pytest.mark.parametrize(
    ("path", "is_named"),
    [("Makefile", False), ("save", False), ("setup.py", True), ("src/", False), ("src/ui/", True)],
)
def test_a_word_is_no_path(path: str, is_named: bool) -> None:
    """What has neither a slash nor a suffix is a word in running text, and a path if changed."""
    text = "The Makefile, setup.py and src/ui/ do not save in src/ any more"
    assert is_named is (path in NamedPaths.of(text, "", []))
    assert path in NamedPaths.of("", "", [path])


def test_what_is_no_text_is_not_named() -> None:
    """Whatever a tool was asked with, it breaks nothing."""
    named = NamedPaths.of("a/b.py", "", ["", "./"])
    assert [False] * 5 == [odd in named for odd in (None, 1, "", "/", "./")]


def test_a_huge_text_is_cheap() -> None:
    """A mebibyte that nearly names a path over and over is looked through once."""
    body = "src/a.pyx " * 100_000
    assert "src/a.py" not in NamedPaths.of("t", body, [])
    assert MAX_MENTIONED >= len(mentioned_paths("a/" * 500_000))


def test_mentioned_paths_are_few_and_plain() -> None:
    """Each path-like word once, in order, and never more than the bound."""
    text = "In src/a.py and ./src/a.py, README.md; not https://x.org/b.py or me@x.org or this."
    assert ("src/a.py", "README.md") == mentioned_paths(text)
    many = " ".join(f"d/f{n}.py" for n in range(100))
    assert tuple(f"d/f{n}.py" for n in range(MAX_MENTIONED)) == mentioned_paths(many)


def test_an_open_comment_hides_the_rest() -> None:
    """As a reader sees it: closed ones go, and one without an end takes all that follows."""
    assert "a   c " == visible("a <!-- b --> c <!-- d")
