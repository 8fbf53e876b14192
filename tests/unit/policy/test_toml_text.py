"""A text that is not TOML is told with its place and the reason, and never quoted."""

from __future__ import annotations

import tomllib

import pytest

from triage.policy.toml_text import TomlError, toml_table

OPEN = "a text is not closed"
TWICE = "a name is given twice"
FIXED = "an inline table or array cannot be added to"
SECRET = "s3cret"

REASONS = {
    "!": "neither a key nor a table begins so",
    "a = 1 s3cret": "something follows a value on its line",
    "s3cret 1": "there is no '=' after a key",
    "[s3cret": "there is no ']' at the end of a table's name",
    "[[s3cret]": "there is no ']]' at the end of a table's name",
    "[s3cret]\n[s3cret]": "a table is declared twice",
    "s3cret = 1\ns3cret = 2": TWICE,
    "s3cret = {}\ns3cret.b = 1": FIXED,
    "a = {s3cret = 1, s3cret = 2}": "a name is given twice in an inline table",
    "a = {s3cret = 1 b = 2}": "an inline table is not closed, or lacks a comma",
    "a = {": "a key is missing, or does not begin as one",
    "a = s3cret": "a value is missing, or is text without quotes",
    "a = ['s3cret'": "an array is not closed, or lacks a comma",
    "a = 's3cret": OPEN,
    "a = 's3cret\n'": OPEN,
    'a = "s3cret': OPEN,
    'a = "s3cret\n"': OPEN,
    "a = '''s3cret": OPEN,
    'a = """s3cret': OPEN,
    'a = "s3cret\\q"': "a backslash has to be doubled",
    'a = "\\uD800"': "an escape names no character",
    'a = "\\uZZ"': "an escape needs hexadecimal digits",
    'a = "\x01"': "a character has to be escaped",
    "# \x01": "a character may not stand there",
    "a = 2026-02-31": "there is no such date or time",
    "a = " + "[" * 5_000: "it is nested too deep",
    f"a = {'9' * 5_000}": "a number has too many digits",
    "a" + ".a" * 64 + " = 1": "a key has more than 64 parts",
}


@pytest.mark.parametrize(("text", "reason"), REASONS.items(), ids=range(len(REASONS)))
def test_the_reason_is_told_in_words_of_ours(text: str, reason: str) -> None:
    """Whoever wrote it sees what to look for; what the parser quotes of the text is left out."""
    with pytest.raises(TomlError) as caught:
        toml_table(text)
    assert reason == caught.value.reason
    assert SECRET not in f"{caught.value.told()}{caught.value}"


def test_a_message_that_is_not_known_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another parser may quote anything: its place is read, and of its words none is passed on."""

    def parse(text: str) -> None:
        raise tomllib.TOMLDecodeError(text)

    monkeypatch.setattr("triage.policy.toml_text.tomllib.loads", parse)
    with pytest.raises(TomlError) as caught:
        toml_table(f"{SECRET} is wrong (at line 7, column 3)")
    assert "is not TOML at line 7, column 3" == caught.value.told()
