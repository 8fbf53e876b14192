"""What a command reads is not what it writes, by whichever name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from triage.cli.errors import InputError
from triage.cli.inputs import STDIN
from triage.cli.writing import check_places


@contextmanager
def _standard_input(path: Path) -> Iterator[None]:
    """Let a file be the standard input of this process."""
    own = os.dup(0)
    try:
        with path.open("rb") as file:
            os.dup2(file.fileno(), 0)
        yield
    finally:
        os.dup2(own, 0)
        os.close(own)


def test_what_comes_by_standard_input_is_not_written_over(tmp_path: Path) -> None:
    """A file that the shell opened is known again; another one, or one that is new, is free."""
    read = tmp_path / "read.jsonl"
    read.write_text("kept")
    with _standard_input(read):
        with pytest.raises(InputError, match="reads or writes it already"):
            check_places([read], [STDIN])
        check_places([tmp_path / "new.json"], [STDIN])
    assert "kept" == read.read_text()


def test_a_hard_link_is_the_file(tmp_path: Path) -> None:
    """Neither what is read is written, nor one file twice."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("kept")
    second.hardlink_to(first)
    for written, read in (([second], [first]), ([first, second], [])):
        with pytest.raises(InputError, match="reads or writes it already"):
            check_places(written, read)


def test_a_file_called_as_standard_input_is_no_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is written to - goes into a file of that name."""
    monkeypatch.chdir(tmp_path)
    read = tmp_path / "read.jsonl"
    read.write_text("kept")
    with _standard_input(read):
        check_places([STDIN], [STDIN])
