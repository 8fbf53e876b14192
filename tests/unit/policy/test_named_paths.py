"""Which paths an issue names: exactly those, and only where a reader sees them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.contracts.strategies import PROPERTY
from triage.policy.named_paths import MAX_MENTIONED, NamedPaths, mentioned_paths

NAMED = [
    "Fails in src/a.py",
    "Fails in `src/a.py`.",
    "src/a.py:12: error",
    "(./src/a.py)",
    "see /src/a.py, please",
    "**src/a.py** and more",
    "src/a.py",
    "`src/a.py`\u2026",
    "Is it src/a.py?",
    "It is src/a.py...",
    '"src/a.py", "src/b.py"',
    "\u201csrc/a.py\u201d",
    "<src/a.py>",
    "[src/a.py](https://example.org)",
    "[src/a.py]: not a definition",
    "src/a.py's parser and `src/b.py`'s",
    "`src/a.py`'s parser",
    "src/a.py:12:5: error",
    "src/a.py:12:def save():",
    "src/a.py:12-20",
    "src/a.py#L12-L20 is wrong",
    "src/a.py(12,5): error TS1005",
    "tests: src/a.py::test_save",
    '```\nFile "src/a.py", line 3\n```',
    "```py\nopen('src/a.py').read()\n```",
    '    {"path":"src/a.py"}',
    "| file |\n|---|\n|src/a.py|",
    "\u6587\u4ef6`src/a.py`\u4e2d\uff0c",
    "\u6587\u4ef6\uff1asrc/a.py\u3002",
    "vendor/src/a.py, then src/a.py",
    "<b>src/a.py</b><br>x",
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
    "web\uff0fsrc/a.py",
    "web\u2215src/a.py",
    "web\u2044src/a.py",
    "{root}/src/a.py",
    "$x/src/a.py",
    "${x}src/a.py",
    "*/src/a.py",
    "**/src/a.py",
    "<x>/src/a.py",
    "web (old)/src/a.py",
    "web `old`/src/a.py",
    "web/`src/a.py`",
    "web/**src/a.py**",
    "web/[src/a.py](https://example.org)",
    "web/<b>src/a.py</b>",
    "web/(src/a.py)",
    "web<!-- -->/src/a.py",
    "web\\/src/a.py",
    "web&#47;src/a.py",
    "![web](x.png)src/a.py",
    "a,src/a.py",
    "dt=src/a.py",
    "HEAD:src/a.py",
    'root+"/src/a.py"',
    "src/a.py@2",
    "src/a.py~",
    "src/a.py,v",
    "src/a.py$x",
    "src/a.py?x=1",
    "src/a.py:x",
    "src/a.py./b",
    "(src/a.py)/b",
    "(src/a.py):/b",
    "`src/a.py`.orig",
    "src/a.py\u0301",
    "src/a.py\u200b",
    "src/a.py\u2044b",
    "\u200bsrc/a.py",
    "x\u2060src/a.py",
    "\u0301src/a.py",
    "\x1csrc/a.py",
    "\u202esrc/a.py",
]


@pytest.mark.parametrize("body", NAMED)
def test_a_path_in_the_text_is_named(body: str) -> None:
    """Marks around it, a line number and the root make no difference."""
    assert "src/a.py" in NamedPaths.of("A title", body, [])


@pytest.mark.parametrize("body", OTHERS)
def test_another_path_is_not_that_one(body: str) -> None:
    """A part of a longer one, of an address, or what no reader sees is not the path."""
    assert "src/a.py" not in NamedPaths.of("A title", body, [])


@PROPERTY
@given(st.text(max_size=6), st.text(max_size=6))
def test_a_path_between_spaces_is_named(before: str, after: str) -> None:
    """Whatever else a title holds, a path that stands by itself is named."""
    assert "src/a.py" in NamedPaths.of(f"{before} src/a.py {after}", "", [])


@PROPERTY
@given(st.characters(), st.booleans())
def test_what_is_not_listed_bounds_nothing(sign: str, first: bool) -> None:
    """No sign but those that cannot go on with a path stands next to one that is named."""
    title = f"x{sign}src/a.py" if first else f"src/a.py{sign}x"
    bounds = " \t\r\n\xa0\u3000\u3001\u3002\uff0c\uff1a\uff1b\uff01\uff1f"
    assert (sign in bounds) is ("src/a.py" in NamedPaths.of(title, "", []))


@PROPERTY
@given(st.lists(st.sampled_from(["src/a.py", *" /.,:;()[]<>`*'\"{}=|\n", "b", "'s"]), max_size=8))
def test_a_mentioned_path_is_a_named_one(parts: list[str]) -> None:
    """What the issue as it was read names, it names: both look at the same signs."""
    title = "".join(parts)
    named = NamedPaths.of(title, "", [])
    assert all(path in named for path in mentioned_paths(title, ""))
    assert ("src/a.py" in named) is ("src/a.py" in mentioned_paths(title, ""))


@pytest.mark.parametrize(
    ("path", "is_named"),
    [
        ("Makefile", False),
        ("save", False),
        ("setup.py", True),
        ("src/", False),
        ("src/ui/", True),
        ("The Makefile, setup.py", False),
        ("save in src/", False),
        ("setup.py ", False),
    ],
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
    assert MAX_MENTIONED >= len(mentioned_paths("a/" * 500_000, body))


def test_mentioned_paths_are_few_and_plain() -> None:
    """Each path-like word once, in order, and never more than the bound."""
    text = "In src/a.py and ./src/a.py, README.md; not https://x.org/b.py or me@x.org or this."
    assert ("src/a.py", "README.md") == mentioned_paths("", text)
    many = " ".join(f"d/f{n}.py" for n in range(100))
    assert tuple(f"d/f{n}.py" for n in range(MAX_MENTIONED)) == mentioned_paths(many, many)
    assert ("src/ui/", "lib/b.c") == mentioned_paths(
        "src/ui/ `/lib/b.c`", "<!-- d/e.py --> web/(f/g.py)"
    )
