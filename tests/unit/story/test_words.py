"""Checks how a story puts names and times."""

from datetime import timedelta

import pytest

from triage.story.words import labelled, named, span


@pytest.mark.parametrize(
    ("length", "words"),
    [
        (timedelta(milliseconds=-5), "0 ms"),
        (timedelta(milliseconds=82), "82 ms"),
        (timedelta(seconds=5.64), "5.6 s"),
        (timedelta(seconds=59.99), "60 s"),
        (timedelta(minutes=2), "2 min"),
        (timedelta(hours=3, minutes=4, seconds=5), "3 h 4 min"),
        (timedelta(days=2, minutes=3), "2 d"),
    ],
)
def test_spans_are_short(length: timedelta, words: str) -> None:
    """A length of time is told in its two largest units."""
    assert words == span(length)


def test_names_are_bare_only_when_they_are_one_word() -> None:
    """Plain names stand as they are, digests are short, and everything else is in quotes."""
    assert "owners-api" == named("owners-api")
    assert "model@sha256:000000000000" == named(f"model@sha256:{'0' * 64}")
    assert '"two words"' == named("two words")
    assert '"a, b", "c"' == labelled(["a, b", "c"])
    assert 82 == len(named("x y" * 100))
