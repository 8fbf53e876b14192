"""The security list: what raises an issue, however it is written, and what does not."""

from __future__ import annotations

import json
import time
from typing import Final

import pytest

from triage.policy.security import TERMS, is_security
from triage.resources import fixtures_path

CASES: Final = json.loads(fixtures_path("issue_triage_cases.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("title", "body"),
    [
        ("Typo in docs", "Also there is an SQL injection in search, but that is minor."),
        ("XSS", ""),
        ("Crash", "see CVE-2026-12345"),
        ("Crash", "CWE-79 applies"),
        ("Crash", "GHSA-abcd-1234-wxyz"),
        ("Not a security issue", "just a typo"),
        ("Docs", "<!-- remote code execution -->"),
        ("Docs", "```\nremote-code execution\n```"),
        ("Docs", "path&#32;traversal"),
        ("Docs", "path&amp;#32;traversal"),
        ("Docs", "priv\u200bilege esc\u200dalation"),
        ("Docs", "vulner\uff41bility"),
        ("Docs", "Vulnérability"),
        ("Docs", "use\nafter\nfree"),
        ("buffer", "overflow"),
    ],
)
def test_a_word_of_the_list_raises(title: str, body: str) -> None:
    """Wherever it stands, whoever denies it, and however it is encoded."""
    assert is_security(title, body)


@pytest.mark.parametrize(
    ("title", "body"),
    [
        ("Typo in the guide", "Please explain how to install it."),
        ("Security settings page is slow", "The tab takes five seconds."),
        ("Source code", "The resource cannot be found; force the exssample."),
        ("Crash", "cve is a word, 2026 a year and cwe nothing"),
        ("", ""),
    ],
)
def test_ordinary_issues_are_left_alone(title: str, body: str) -> None:
    """Parts of words and common words raise nothing."""
    assert not is_security(title, body)


def test_rules_may_name_more() -> None:
    """A repository's own words count as the built-in ones do; an empty one counts for nothing."""
    assert not is_security("Vault door", "It opens.")
    assert is_security("Vault door", "It opens.", ["vault-door"])
    assert not is_security("Vault door", "It opens.", ["", "  ", "…"])


def test_the_nine_cases_are_not_touched() -> None:
    """What the source program decides about is decided as it does."""
    texts = [(case["request"]["title"], case["request"]["body"]) for case in CASES["cases"]]
    assert 9 == len(texts)
    assert [] == [title for title, body in texts if is_security(title, body)]


def test_the_list_is_short_and_in_order() -> None:
    """Everybody can read it, and sees at once what is on it."""
    assert sorted(set(TERMS)) == list(TERMS)
    assert 80 > len(TERMS)


def test_the_longest_text_is_judged_in_a_moment() -> None:
    """A megabyte of anything takes no more than a second or two of a busy machine."""
    began = time.thread_time()
    assert not is_security("x" * 4_000, "a &amp; b\u200b-c " * 65_000)
    assert 3 > time.thread_time() - began
