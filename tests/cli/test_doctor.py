"""Checks that the doctor finds what is wrong, says what to do, and never hangs."""

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from tests.cli.conftest import Stack, Triage
from tests.cli.in_process import Typed
from triage.cli import database_check, secrets_check, temporal_check
from triage.cli.database_check import newest_revision
from triage.cli.findings import Level
from triage.settings import Settings
from triage.storage.schema import REVISIONS


def _rows(document: list[dict[str, str]]) -> dict[str, str]:
    return {row["check"]: row["status"] for row in document}


def test_everything_is_well(stack: Stack) -> None:
    """With a server, a worker and a database each row is ok and the status 0."""
    answer = stack.triage("doctor", "--format", "json")
    rows = _rows(answer.json())
    seen = [row["detail"] for row in answer.json() if row["check"] == "workers"]
    assert 0 == answer.status, answer.out
    assert [True, True] == ["on the queue" in one and " s ago; " in one for one in seen]
    assert {"ok"} == set(rows.values())
    assert {
        "python",
        "temporal",
        "settings",
        "server",
        "attributes",
        "workers",
        "database",
        "writes",
        "rules",
        "model",
        "tracker",
        "comments",
        "approvals",
        "keyring",
        "webhooks",
    } == set(rows)


def test_a_secret_s_file_that_others_may_open_is_named(tmp_path: Path) -> None:
    """Each is a warning with the command that closes it; one that is closed or gone is no row."""
    files = {"github_token": tmp_path / "a token", "webhook_secret": tmp_path / "secret"}
    for path, mode in zip(files.values(), (0o640, 0o600), strict=True):
        path.write_text("s3cret")
        path.chmod(mode)
    [found] = secrets_check.check({**files, "openai_api_key": tmp_path / "nowhere"})
    assert (Level.WARN, f"chmod go= '{tmp_path}/a token'") == (found.level, found.advice)
    assert found.detail.startswith("TRIAGE_GITHUB_TOKEN_FILE: ")


def test_the_schema_that_it_expects_is_the_stores() -> None:
    """The revision that is read from file names is the one that the store works with."""
    assert REVISIONS[-1] == newest_revision()


def test_a_mistyped_variable_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each is a warning that names it and what may be meant, whatever else is wrong."""
    env = {"TRIAGE_MODLE": "s3cret", "TRIAGE_ROLES": "king"}
    answer = Typed(tmp_path, monkeypatch, capsys)("doctor", env=env)
    told = "warn  settings    TRIAGE_MODLE is no setting; did you mean TRIAGE_MODEL?"
    assert (True, False) == (told in answer.out, "s3cret" in answer.out)


def test_no_server(triage: Triage) -> None:
    """An unreachable server is a failed row with advice, and status 3."""
    answer = triage("doctor")
    assert 3 == answer.status
    assert "fail  server" in answer.out
    assert "triage up" in answer.out
    assert "warn  database" in answer.out


def test_another_folder_is_named(triage: Triage, tmp_path: Path) -> None:
    """Whoever looks from elsewhere sees in which folder and database nothing is, and what to do."""
    home = tmp_path / "elsewhere"
    answer = triage("doctor", "--format", "json", env={"TRIAGE_HOME": str(home)})
    rows = {row["check"]: row for row in answer.json()}
    assert f"data in {home}, which is not there yet" in rows["settings"]["detail"]
    assert f"SQLite {home / 'triage.db'}: none is there yet" == rows["database"]["detail"]
    assert "TRIAGE_HOME" in rows["database"]["advice"]


def test_stopped_writes_are_told(triage: Triage) -> None:
    """Whoever looks for what is wrong sees that writes are stopped, by whom, when and why."""
    triage("writes", "stop", "--reason", "wrong labels", "--as", "ann", "--create")
    triage("writes", "stop", "--reason", "abuse", "--as", "bob", "--tenant", "acme")
    rows = triage("doctor", "--format", "json").json()
    told = [(row["status"], row["detail"]) for row in rows if row["check"] == "writes"]
    assert [
        ("warn", "stopped for everybody, by ann"),
        ("warn", "stopped for tenant acme, by bob"),
    ] == [(status, detail.partition(" at ")[0]) for status, detail in told]


def test_looking_changes_nothing(triage: Triage, tmp_path: Path) -> None:
    """The doctor makes neither folder nor database."""
    home = tmp_path / "not-yet"
    triage("doctor", env={"TRIAGE_HOME": str(home)})
    assert not home.exists()


def test_nobody_polls(stack: Stack) -> None:
    """A queue without workers is a warning with advice: the status stays 0."""
    answer = stack.triage("doctor", env={"TRIAGE_TASK_QUEUE": "nobody"})
    assert 0 == answer.status
    assert 2 == answer.out.count("warn  workers")


SEEN = {
    "one": ([12.4], Level.OK, "1 on the queue q, seen 12 s ago; a killed one is missed after a"),
    "two": ([3, 61], Level.OK, "2 on the queue q, seen 3 s to 61 s ago; a killed one is missed"),
    "one that is late": ([2, 80], Level.OK, "1 on the queue q, seen 2 s ago; "),
    "late": ([80, 85], Level.WARN, "none on the queue q for 80 s, and a worker asks every minute"),
    "nobody": ([], Level.WARN, "none on the queue q"),
}


@pytest.mark.parametrize(("seconds", "level", "told"), SEEN.values(), ids=SEEN)
def test_workers_are_told_by_when_they_were_seen(
    seconds: list[float], level: Level, told: str
) -> None:
    """The server does not notice a worker's death: whoever asked last within a minute may live."""
    found = temporal_check.judged("q", [timedelta(seconds=one) for one in seconds])
    assert (level, told) == (found.level, found.detail[: len(told)])


def test_settings_are_told_one_by_one(triage: Triage) -> None:
    """Each bad setting is a row; services are not asked, and the status is 1."""
    bad = {"TRIAGE_MODEL": "gpt", "TRIAGE_ROLES": "king"}
    answer = triage("doctor", "--format", "json", env=bad)
    failed = [row["detail"] for row in answer.json() if row["status"] == "fail"]
    assert 1 == answer.status
    assert [True, True] == [
        any(name in detail for detail in failed) for name in ("TRIAGE_MODEL", "TRIAGE_ROLES")
    ]


def test_databases_that_do_not_work(triage: Triage, tmp_path: Path) -> None:
    """A file that is no database, and a server that is not there, are told without the password."""
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"not a database" * 100)
    local = triage("doctor", env={"TRIAGE_DATABASE_URL": f"sqlite:///{broken}"})
    url = "postgresql://someone:s3cret@127.0.0.1:1/triage"
    remote = triage("doctor", env={"TRIAGE_DATABASE_URL": url})
    assert [3, 3] == [local.status, remote.status]
    assert ["fail  database"] * 2 == [
        line[:14] for a in (local, remote) for line in a.out.splitlines() if "database" in line[:14]
    ]
    assert "s3cret" not in remote.out + remote.err


async def test_a_database_that_another_process_holds_is_not_moved_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has the file as a whole is done soon: the advice is only to try again."""
    path = tmp_path / "held.db"
    monkeypatch.setattr(database_check, "BUSY_SECONDS", 0)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("CREATE TABLE notes (name TEXT)")
        other.execute("BEGIN EXCLUSIVE")
        [found] = await database_check.check(Settings(database_url=f"sqlite:///{path}"))
    assert f"SQLite {path}: is locked by another process" == found.detail
    assert (Level.FAIL, "try again") == (found.level, found.advice)


def test_what_is_not_built_in(triage: Triage) -> None:
    """A model that this version does not have, or a tracker without credentials, fails."""
    answer = triage("doctor", env={"TRIAGE_MODEL": "openai:gpt", "TRIAGE_TRACKER": "github"})
    assert "fail  model" in answer.out
    assert "fail  tracker" in answer.out
    assert "TRIAGE_GITHUB_TOKEN_FILE" in answer.out


def test_the_secret_of_deliveries_is_told_by_being_there(triage: Triage) -> None:
    """Whether there is one, and one before it, and that one alone does not do; never what it is."""
    secret, name = "s3cret-s3cret-s3cret", "TRIAGE_WEBHOOK_SECRET"
    given = [{}, {name: secret}, {name: secret, f"{name}_PREVIOUS": secret}]
    given.append({f"{name}_PREVIOUS": secret})
    answers = [triage("doctor", "--format", "json", env=env) for env in given]
    rows = [row for a in answers for row in a.json() if row["check"] == "webhooks"]
    assert ["ok", "ok", "ok", "fail"] == [row["status"] for row in rows]
    assert 4 == len({row["detail"] for row in rows})
    assert all(secret not in answer.out + answer.err for answer in answers)
