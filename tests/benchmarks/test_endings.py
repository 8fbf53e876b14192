"""However a benchmark ends: in one line, with the status that says so, and with what it found."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks import checks, room
from benchmarks.arms import FLOOR, WrongEnd
from benchmarks.cold_start import ColdStart
from benchmarks.plan import Plan
from benchmarks.results import Results
from benchmarks.room import NoSpace, enough_room
from tests.benchmarks.test_report import a_measurement, a_window
from tests.clock import PATIENCE_SECONDS

Ending = Callable[[], object]

HUNG = """
import sys, threading, types
from unittest import mock
sys.modules["temporalio"] = types.ModuleType("temporalio")
# As a thread of the SDK's that the interpreter's end waits for.
threading.Thread(target=threading.Event().wait).start()
from triage.cli.running import leave
leave(2)
"""


def _ends(monkeypatch: pytest.MonkeyPatch, ending: Ending, *, found: bool = True) -> None:
    """Let a measurement find one window, and then end in some way."""

    async def play(_plan: Plan, _command: str, results: Results) -> None:
        if found:
            results.put(a_measurement(a_window()))
        await asyncio.sleep(0)
        ending()
        await asyncio.sleep(5)

    monkeypatch.setattr(command, "play", play)


def _fails(error: BaseException) -> Ending:
    def ending() -> None:
        raise error

    return ending


def _is_sent(number: int) -> Ending:
    return lambda: os.kill(os.getpid(), number)


def _full(least: int) -> Ending:
    return _fails(NoSpace(f"no space left in /tmp: {least}"))


@pytest.mark.parametrize(
    ("ending", "status", "line"),
    [
        (_fails(WrongEnd("run-1 ended refused")), 2, "WrongEnd: run-1 ended refused"),
        (_fails(ExceptionGroup("", [TimeoutError("late")])), 2, "TimeoutError: late"),
        (_full(7), 2, "no space left in /tmp: 7"),
        (_is_sent(signal.SIGINT), 130, "interrupted"),
        (_is_sent(signal.SIGTERM), 143, "ended by SIGTERM"),
    ],
)
def test_what_was_measured_before_the_end_is_shown(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    ending: Ending,
    status: int,
    line: str,
) -> None:
    """The report says that it is partial and why, and stderr holds one line and no traceback."""
    _ends(monkeypatch, ending)
    assert status == command.main(["--arms", "W"])
    shown, said = capsys.readouterr()
    assert f"bench: {line}\n" == said
    assert f"PARTIAL: it ended early, and what came after is not here: {line}\n" in shown
    assert "1 windows, 8 runs of each arm" in shown


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_end_before_the_first_window_leaves_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: int, tmp_path: Path
) -> None:
    """There is no report of nothing, and no file of one."""
    _ends(monkeypatch, _is_sent(number), found=False)
    assert 128 + number == command.main(["--output", str(tmp_path / "out")])
    shown, said = capsys.readouterr()
    assert ("", 1) == (shown, said.count("\n"))
    assert [] == list(tmp_path.iterdir())


def test_an_error_that_nobody_foresaw_shows_where_it_came_from(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It loses nothing that was measured, either."""
    _ends(monkeypatch, _fails(KeyError("what")))
    assert 2 == command.main([])
    shown, said = capsys.readouterr()
    assert "Traceback" in said
    assert "PARTIAL" in shown


def test_a_thread_that_never_ends_keeps_no_benchmark() -> None:
    """The process leaves with its status, whatever the SDK's threads still try."""
    done = subprocess.run([sys.executable, "-c", HUNG], timeout=PATIENCE_SECONDS, check=False)
    assert 2 == done.returncode
    source = Path(command.__file__ or "").read_text(encoding="utf-8")
    assert source.endswith('if __name__ == "__main__":\n    leave(main())\n')


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--set", "nonsense=1"], "--set nonsense: there is no such setting"),
        (["--set", "model=zzz"], "--set model: "),
        (["--output", "{folder}/none/out"], "--output: {folder}/none/out.txt cannot be written: "),
        (["--output", "{folder}/taken"], "--output: {folder}/taken.json cannot be written: "),
    ],
)
def test_what_would_fail_later_is_refused_at_once(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One line names the option; nothing was played, and no file is left behind."""
    _ends(monkeypatch, _fails(AssertionError("it was played")))
    (tmp_path / "taken.json").mkdir()
    assert 2 == command.main([each.format(folder=tmp_path) for each in arguments])
    shown, line = capsys.readouterr()
    assert ("", 1) == (shown, line.count("\n"))
    assert line.startswith(f"bench: {said.format(folder=tmp_path)}")
    assert ["taken.json"] == [file.name for file in tmp_path.iterdir()]


def test_the_output_s_whole_name_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A dot in it begins no suffix."""
    _ends(monkeypatch, _fails(WrongEnd("late")))
    assert 2 == command.main(["--output", str(tmp_path / "out.v1")])
    assert ["out.v1.json", "out.v1.txt"] == sorted(file.name for file in tmp_path.iterdir())


def test_a_report_that_cannot_be_saved_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A folder that went away while it was measured costs the file and not the figures."""
    folder = tmp_path / "folder"
    folder.mkdir()

    async def play(_plan: Plan, _command: str, results: Results) -> None:
        results.put(a_measurement(a_window()))
        await asyncio.to_thread(shutil.rmtree, folder)

    monkeypatch.setattr(command, "play", play)
    assert 2 == command.main(["--output", str(folder / "out")])
    shown, said = capsys.readouterr()
    assert "It counts" in shown
    assert [
        f"bench: --output: {folder}/out{end} cannot be written: No such file or directory"
        for end in (".txt", ".json")
    ] == said.splitlines()


def test_a_full_disk_is_refused_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """It says which folder, and how much is needed."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(checks, "NEEDED_BYTES", 10**18)
    assert 2 == command.main([])
    said = capsys.readouterr().err
    assert said.startswith(f"bench: no space left in {tmp_path}: ")
    assert 1 == said.count("\n")


async def test_a_disk_that_becomes_full_ends_the_measurement(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whoever waits for a server that cannot write waits for ever, and is not left to it."""
    monkeypatch.setattr(room, "LEAST_BYTES", 10**18)
    with pytest.raises(NoSpace, match="no space left in"):
        async with asyncio.timeout(PATIENCE_SECONDS), enough_room(tmp_path):
            await asyncio.Event().wait()


async def test_a_write_that_found_no_room_is_told_as_that(tmp_path: Path) -> None:
    """The error of the system has a number, and whatever else goes wrong stays what it is."""
    with pytest.raises(NoSpace, match=f"no space left in {tmp_path}"):
        async with enough_room(tmp_path):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with pytest.raises(WrongEnd, match="another"):
        async with enough_room(tmp_path):
            raise WrongEnd("another")


def test_a_floor_that_was_not_measured_twice_counts_for_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What has nothing to be held against is not said to count; that is no failure."""

    async def play(_plan: Plan, _command: str, results: Results) -> None:
        results.cold_starts.append(ColdStart("triage", (1.0,), (1.0,)))
        results.others_during["cold"] = 0.25

    monkeypatch.setattr(command, "play", play)
    assert 0 == command.main(["--arms", "cold"])
    lines = capsys.readouterr().out.splitlines()
    assert [
        "others used, meanwhile: cold 25%",
        "TAKEN ON A BUSY MACHINE: others used 25% of its time.",
        f"There was nothing to hold the floor against: no arm here measured {FLOOR} again.",
    ] == lines[-3:]
