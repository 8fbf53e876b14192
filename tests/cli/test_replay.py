"""Checks that replay tells histories that fit from those that do not, whatever is in the file."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Stack, Triage, id_in, write_request
from triage.cli.errors import InputError
from triage.cli.replaying import _existing


@pytest.fixture(scope="session")
def good(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Record a run of today's code, as the temporal program writes it."""
    folder = tmp_path_factory.mktemp("histories")
    request = write_request(folder)
    stack.triage("start", request, "--wait")
    history = stack.temporal("workflow", "show", "-w", f"triage-{id_in(request)}")
    path = folder / "good.json"
    path.write_text(json.dumps(history))
    return path


def test_each_file_is_told(triage: Triage, tmp_path: Path, good: Path) -> None:
    """Files that are no history, cut or changed are each told, and do not hide the others."""
    history = json.loads(good.read_text())
    cut = tmp_path / "cut.json"
    cut.write_text(json.dumps({"events": history["events"][:1]}))
    other = tmp_path / "other.json"
    other.write_text("[1, 2]")
    changed = tmp_path / "changed.json"
    marker = "markerRecordedEventAttributes"
    first = next(event for event in history["events"] if marker in event)
    first[marker]["markerName"] = "something_else"
    changed.write_text(json.dumps(history))
    files = [good, cut, other, changed, good]
    answer = triage("replay", *files, "--format", "json")
    assert 1 == answer.status
    assert [True, False, False, False, True] == [row["ok"] for row in answer.json()]
    assert [str(file) for file in files] == [row["file"] for row in answer.json()]
    assert "Nondeterminism" in answer.json()[3]["error"]
    assert "2 of 5 histories replay" in answer.err


def test_text_has_a_line_a_file(triage: Triage, good: Path) -> None:
    """A history that fits is one line, and the status is 0."""
    answer = triage("replay", good)
    assert (0, f"ok      {good}\n") == (answer.status, answer.out)


@pytest.mark.parametrize("arguments", [(), ("no-such.json",), ("/",)], ids=range(3))
def test_files_that_are_not_there(triage: Triage, arguments: tuple[str, ...]) -> None:
    """A missing file is wrong usage: nothing is replayed."""
    answer = triage("replay", *arguments)
    assert (2, "") == (answer.status, answer.out)


def test_what_is_no_file_is_named_for_what_it_is(tmp_path: Path) -> None:
    """A folder or a device is there, so nobody is told that it is not."""
    for file, told in ((tmp_path, "a folder"), (Path("/dev/null"), "no regular file")):
        with pytest.raises(InputError, match=told):
            _existing(file)


def test_a_worker_in_the_current_folder_is_not_run(
    triage: Triage, tmp_path: Path, good: Path
) -> None:
    """Replaying runs the installed program, not a file that happens to lie here."""
    (tmp_path / "worker.py").write_text("raise SystemExit('hijacked')")
    assert 0 == triage("replay", good).status
