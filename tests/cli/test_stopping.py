"""`triage writes` turns the switch that every worker looks at."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Triage
from tests.cli.in_process import Typed
from tests.cli.stored import in_store
from triage.storage.audit_verify import verify
from triage.storage.switches import Switches


def test_writes_are_stopped_and_allowed_again(triage: Triage, tmp_path: Path) -> None:
    """One command stops them, status says by whom and why, one more allows them."""
    in_store(tmp_path, verify)
    where = f"in SQLite {tmp_path / 'triage.db'}\n"
    assert f"writes are allowed\n{where}" == triage("writes", "status").out
    stopped = triage("writes", "stop", "--reason", "wrong labels", "--as", "ann\x1b[2J")
    assert stopped.out.endswith(where)
    assert 0 == stopped.status
    assert r"writes are stopped for everybody, by ann\u{1b}[2J" in stopped.out
    assert in_store(tmp_path, lambda store: Switches(store).writes_stopped("default"))
    told = triage("writes", "status").out
    assert told == stopped.out
    allowed = triage("writes", "allow", "--format", "json").json()
    assert (None, False) == (allowed["tenant"], allowed["stopped"])
    assert f"SQLite {tmp_path / 'triage.db'}" == allowed["database"]
    assert not in_store(tmp_path, lambda store: Switches(store).writes_stopped("default"))
    assert [] == in_store(tmp_path, verify)


def test_one_tenant_is_stopped(triage: Triage, tmp_path: Path) -> None:
    """A tenant's switch is its own, and the status lists it."""
    triage("writes", "stop", "--reason", "abuse", "--tenant", "acme", "--create")
    shown = triage("writes", "status", "--format", "json").json()
    assert (False, [("acme", True, "abuse")]) == (
        shown["stopped"],
        [(s["tenant"], s["stopped"], s["reason"]) for s in shown["switches"]],
    )
    assert in_store(tmp_path, lambda store: Switches(store).writes_stopped("acme"))
    assert not in_store(tmp_path, lambda store: Switches(store).writes_stopped("default"))


@pytest.mark.parametrize(
    "arguments",
    [
        ("stop", "--reason", " "),
        ("stop", "--reason", "x" * 501),
        ("stop", "--reason", "x", "--as", ""),
        ("allow", "--tenant", ""),
    ],
    ids=range(4),
)
def test_words_that_say_nothing_are_refused(triage: Triage, arguments: tuple[str, ...]) -> None:
    """Who did it and why must be there, and short; otherwise nothing is turned."""
    answer = triage("writes", *arguments)
    assert (2, "") == (answer.status, answer.out)
    assert answer.err.startswith("error: the ")


def test_a_switch_that_cannot_be_turned_is_told(triage: Triage) -> None:
    """Without a database the command fails: nobody may believe that writes are stopped."""
    url = "postgresql://someone:s3cret@127.0.0.1:1/triage"
    answer = triage("writes", "stop", "--reason", "x", env={"TRIAGE_DATABASE_URL": url})
    assert (3, "", False) == (answer.status, answer.out, "s3cret" in answer.err)


@pytest.mark.parametrize(
    "arguments",
    [
        ("writes", "stop", "--reason", "x"),
        ("writes", "allow"),
        ("writes", "status"),
        ("audit", "verify"),
        ("audit", "head"),
        ("operations",),
        ("operations", "reconcile", "op_1"),
    ],
    ids=" ".join,
)
def test_a_database_that_is_not_there_is_told(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
) -> None:
    """In another folder than the workers', nothing is made, and nothing is said of their writes."""
    typed = Typed(tmp_path, monkeypatch, capsys)
    answer = typed(*arguments, env={"TRIAGE_HOME": str(tmp_path / "none")})
    assert (1, "") == (answer.status, answer.out)
    place = tmp_path / "none" / "triage.db"
    assert f"error: there is no database at SQLite {place}: nothing was made\n" in answer.err
    assert "hint: go to the folder that the worker runs in, or set TRIAGE_HOME" in answer.err
    assert ("stop" in arguments) == ("--create" in answer.err)
    assert [] == list(tmp_path.iterdir())
