"""Checks that tables fit the terminal they are printed on, and break no id."""

from __future__ import annotations

import sys

import pytest

from triage.cli.output import put_long, put_table

HEADERS = ("ID", "STATUS", "ROUTE", "SINCE")
LONG = "triage-ISSUE-0123456789-0123456789"
ROWS = [(LONG, "tool_pending", "-", "2026-01-31 12:34 UTC"), ("b", "completed", "-", "-")]


def test_a_column_without_content_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    """What is empty in every row takes no place; piped output is not coloured, however wide."""
    put_table(HEADERS, ROWS)
    lines = capsys.readouterr().out.splitlines()
    assert ["ID", "STATUS", "SINCE"] == lines[0].split()
    assert [LONG, "tool_pending", "2026-01-31 12:34 UTC"] == lines[1].split(maxsplit=2)
    assert "\x1b" not in "".join(lines)


def test_a_narrow_terminal_gets_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where a row does not fit, each of its cells has a line, and ids stay whole."""
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    put_table(HEADERS, ROWS)
    assert [
        LONG,
        "  status  tool_pending",
        "  since   2026-01-31 12:34 UTC",
        "b",
        "  status  completed",
    ] == capsys.readouterr().out.splitlines()


def test_a_long_line_is_folded_for_a_terminal_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pipe gets a line a fact; on a terminal no rest of it reaches the left edge."""
    line = "word " * 30 + "end"
    put_long(line)
    piped = capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    put_long(line)
    first, *others = capsys.readouterr().out.splitlines()
    assert f"{line}\n" == piped
    assert (line.split(), True) == (
        [*first.split(), *" ".join(others).split()],
        all(other.startswith("    ") and len(other) <= 60 for other in others),
    )


def test_headers_are_escaped_as_cells_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The labels of a confusion table are headers, and whoever wrote the file named them."""
    put_table(("LABEL", "a\x1b[31m\u202eb"), [("x", "1")])
    assert r"a\u{1b}[31m\u{202e}b" in capsys.readouterr().out
