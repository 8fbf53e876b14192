"""`triage policy` checks, shows and accepts rules; no server is needed for any of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from alembic import command

from tests.cli.conftest import Answer
from tests.cli.in_process import Typed
from tests.cli.stored import in_store, in_store_as_it_is
from triage.policy.rules import BUILTIN_RULES
from triage.policy.rules_file import read_rules
from triage.policy.tools import BUILTIN_TOOLS
from triage.storage.acceptances import NOBODY_YET, Acceptances, AcceptedRules
from triage.storage.audit_verify import verify
from triage.storage.engine import Store
from triage.storage.migrate import alembic_config
from triage.storage.version import schema_revision

NARROW = '[policy]\nname = "acme"\nmode = "shadow"\n'
WIDE = '[policy]\nname = "acme"\nmode = "approve"\n[labels]\nship = "descriptive"\n'
WRONG = '[policy]\nmode = "yolo"\n\n[budget]\ntokens = -1\n'
WAITS = "waits for acceptance: triage policy accept"


@pytest.fixture
def typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Typed:
    """A folder of its own."""
    return Typed(tmp_path, monkeypatch, capsys)


def _write(typed: Typed, text: str, name: str = "triage.toml") -> Path:
    path = typed.home / name
    path.write_text(text)
    return path


def _have_database(typed: Typed) -> None:
    in_store(typed.home, schema_revision)


def _digest(text: str) -> str:
    return read_rules(text, [spec.name for spec in BUILTIN_TOOLS]).rules.digest()


def _accepted(typed: Typed) -> AcceptedRules:
    return in_store(typed.home, lambda store: Acceptances(store).current())


def _error(answer: Answer) -> tuple[int, str, str]:
    return answer.status, answer.out, answer.err.partition("\n")[0]


def test_check_names_each_mistake_with_line_and_hint(typed: Typed) -> None:
    """Rules that cannot be used fail the check, and all that is wrong is said at once."""
    path = _write(typed, WRONG, "rules.toml")
    answer = typed("policy", "check", path)
    assert 1 == answer.status
    assert (
        "line 2: policy.mode: must be shadow, suggest or approve\n"
        "  hint: correct the value\n"
        "line 5: budget.tokens: must be at least 0\n"
        "  hint: correct the value\n"
        f"{path}: cannot be used: 2 mistakes\n"
    ) == answer.out


def test_check_tells_a_few_of_thousands_of_mistakes(typed: Typed) -> None:
    """What scrolls by helps nobody, and the number is not made up."""
    many = "".join(f"[x{number}]\n" for number in range(3_000))
    answer = typed("policy", "check", _write(typed, many, "rules.toml"))
    assert 1 == answer.status
    assert answer.out.endswith("rules.toml: cannot be used: more than 50 mistakes\n")
    assert "the file: has 2,950 more\n" in answer.out


def test_check_answers_programs(typed: Typed) -> None:
    """The same as one JSON document, for a file that is wrong and for one that waits."""
    wrong = typed("policy", "check", _write(typed, WRONG, "wrong.toml"), "--format", "json")
    assert (1, False) == (wrong.status, wrong.json()["usable"])
    assert [("error", 2, "policy.mode"), ("error", 5, "budget.tokens")] == [
        (found["level"], found["line"], found["where"]) for found in wrong.json()["findings"]
    ]
    odd = f'{WIDE}deploy = "magic"\n'
    wide = typed("policy", "check", _write(typed, odd, "wide.toml"), "--format", "json")
    found = wide.json()
    assert (0, True, False, _digest(odd), None) == (
        wide.status,
        found["usable"],
        found["in_force"],
        found["digest"],
        found["accepted"],
    )
    assert [("warning", 6)] == [(one["level"], one["line"]) for one in found["findings"]]
    assert ["label", "mode"] == [one["kind"] for one in found["waiting"]]
    assert {"label", "owner", "topic"} == {one["kind"] for one in found["narrows"]}


def test_check_shows_what_waits(typed: Typed) -> None:
    """A file that would allow more is said to wait, with each thing that it would allow."""
    _write(typed, WIDE)
    answer = typed("policy", "check")
    assert (0, True) == (answer.status, WAITS in answer.out)
    shown = answer.out.partition("\n\n")[0]
    rows = [line.split() for line in shown.splitlines()[-3:]]
    assert [
        ["WHAT", "NAME", "BEFORE", "AFTER"],
        ["label", "ship", "none", "descriptive"],
        ["mode", "(all)", "suggest", "approve"],
    ] == rows


def test_check_of_another_file_names_the_whole_command(typed: Typed) -> None:
    """A file that no setting names is accepted, and used by workers, only if its name is said."""
    path = _write(typed, WIDE, "my rules.toml")
    answer = typed("policy", "check", "my rules.toml")
    setting = f"TRIAGE_POLICY='{path}'"
    command = f"{setting} triage policy accept 'my rules.toml'"
    assert f"It waits for acceptance: {command}\n" in answer.out
    assert answer.out.endswith(f"only where it has this setting, too:\n  {setting}\n")
    assert command == typed("policy", "check", "my rules.toml", "--format", "json").json()["next"]
    named = typed("policy", "check", path, env={"TRIAGE_POLICY": str(path)})
    assert f"It {WAITS}\n" in named.out
    assert "TRIAGE_POLICY" not in named.out


def test_a_file_that_no_worker_looks_at_is_not_in_force(typed: Typed) -> None:
    """It may allow nothing new; as long as no setting names it, it is not what counts."""
    path = _write(typed, NARROW, "less.toml")
    checked = typed("policy", "check", path)
    assert (0, False) == (checked.status, "in force" in checked.out)
    assert checked.out.endswith(f"only where it has this setting, too:\n  TRIAGE_POLICY={path}\n")
    assert not typed("policy", "check", path, "--format", "json").json()["in_force"]
    assert "not in force" in typed("policy", "show", path).out
    assert not typed("policy", "show", path, "--format", "json").json()["in_force"]


def test_check_says_what_is_odd_of_a_file_that_is_wrong(typed: Typed) -> None:
    """A label with an unknown effect is not kept back until the mistakes are mended."""
    path = _write(typed, f'{WRONG}[labels]\nship = "magic"\n', "rules.toml")
    answer = typed("policy", "check", path)
    assert "line 7: labels.ship: has an unknown effect" in answer.out
    assert answer.out.endswith("cannot be used: 2 mistakes, beside 1 that may be meant\n")


def test_a_file_that_narrows_is_in_force(typed: Typed) -> None:
    """Nobody has to accept less; looking makes no database."""
    path = _write(typed, NARROW, "less.toml")
    env = {"TRIAGE_POLICY": str(path)}
    checked = typed("policy", "check", env=env).out
    assert "it is in force.\n\nIt takes away or changes, and that needs no acceptance:\n" in checked
    assert "bug" in [line.split()[1] for line in checked.splitlines() if line.startswith("label")]
    shown = typed("policy", "show", "--format", "json", env=env).json()
    assert (True, "file", str(path), _digest(NARROW), [], "shadow") == (
        shown["in_force"],
        shown["source"],
        shown["file"],
        shown["digest"],
        shown["waiting"],
        shown["rules"]["mode"],
    )
    assert ["less.toml"] == [path.name for path in typed.home.iterdir()]


def test_show_tells_where_the_rules_in_force_come_from(typed: Typed) -> None:
    """Built in, from a file, or accepted by somebody while the file waits."""
    builtin = typed("policy", "show", "--format", "json").json()
    assert (True, "builtin", None, BUILTIN_RULES.digest()) == (
        builtin["in_force"],
        builtin["source"],
        builtin["file"],
        builtin["digest"],
    )
    _write(typed, WIDE)
    typed("policy", "accept", "--yes", "--as", "ann", "--create")
    assert "file" == typed("policy", "show", "--format", "json").json()["source"]
    path = _write(typed, WIDE + 'sail = "descriptive"\n')
    waiting = typed("policy", "show", "--format", "json").json()
    assert (True, "accepted", _digest(WIDE), "ann", ["sail"]) == (
        waiting["in_force"],
        waiting["source"],
        waiting["digest"],
        waiting["accepted"]["by"],
        [one["name"] for one in waiting["waiting"]],
    )
    asked = typed("policy", "show", path, "--format", "json").json()
    assert (False, "file", True) == (asked["in_force"], asked["source"], "sail" in str(asked))


def test_show_is_readable(typed: Typed) -> None:
    """Each kind of rule has its place."""
    text = (
        f'{NARROW}[approvals]\nrequired = 2\napprovers = ["ann", "bob"]\nwindow_hours = 72\n'
        '[budget]\ntokens = 10000\n[labels]\n"x [2J" = "control"\n'
        '[repositories]\n"acme/api" = "suggest"\n[tools]\nsearch_triage_policy = false\n'
        '[owners."a.py"]\nowner = "team-a"\n[topics.billing]\nroute = "bug"\nowner = "team-b"\n'
    )
    _write(typed, text)
    shown = typed("policy", "show").out
    assert shown.startswith("in force      the rules in")
    for line in (
        "approvals     2, by ann, bob",
        "wait ends     72 hours; reminded after 24 hours, escalated after 48",
        "budget        tokens 10,000",
        "tools off     search_triage_policy",
        "x [2J  control",
        "acme/api    suggest",
        "a.py  team-a",
        "billing  bug              team-b",
    ):
        assert line in shown


def test_accept_records_what_was_shown(typed: Typed) -> None:
    """A person who says yes has every widening before them, and stands in the audit trail."""
    _write(typed, WIDE)
    _have_database(typed)
    answer = typed("policy", "accept", "--as", "ann\x1b[2J", stdin="yes\n")
    assert (0, True) == (answer.status, r'as "ann\u{1b}[2J": it holds' in answer.out)
    wider, _, narrower = answer.out.partition("\nIt takes away or changes, and that needs no ")
    assert [["label", "ship", "none", "descriptive"], ["mode", "(all)", "suggest", "approve"]] == [
        line.split() for line in wider.splitlines() if line.startswith(("label", "mode"))
    ]
    assert ["label", "bug", "descriptive", "none"] in [
        line.split() for line in narrower.split("\n")
    ]
    accepted = _accepted(typed)
    assert accepted.acceptance is not None
    assert (_digest(WIDE), BUILTIN_RULES.digest(), "ann\x1b[2J") == (
        accepted.digest,
        accepted.acceptance.replaces,
        accepted.acceptance.by,
    )
    assert [] == in_store(typed.home, verify)
    assert "it is in force" in typed("policy", "check").out


def test_accept_answers_programs(typed: Typed) -> None:
    """With --yes it is one JSON document; without, nobody could be asked."""
    _write(typed, WIDE)
    assert 2 == typed("policy", "accept", "--format", "json").status
    _have_database(typed)
    found = typed("policy", "accept", "--yes", "--as", "ann", "--format", "json").json()
    assert (_digest(WIDE), BUILTIN_RULES.digest(), "ann", ["label", "mode"]) == (
        found["digest"],
        found["replaces"],
        found["by"],
        [one["kind"] for one in found["widens"]],
    )
    assert {"label", "owner", "topic"} == {one["kind"] for one in found["narrows"]}


@pytest.mark.parametrize("answer", ["", "no\n", "y\n", "yes please\n"])
def test_only_yes_accepts(typed: Typed, answer: str) -> None:
    """Whatever else is typed, the end of the input too, accepts nothing."""
    _write(typed, WIDE)
    _have_database(typed)
    given = typed("policy", "accept", stdin=answer)
    assert (1, True) == (given.status, "error: nothing was accepted\n" in given.err)
    assert NOBODY_YET == _accepted(typed)


def test_nothing_is_accepted_where_no_worker_was(typed: Typed) -> None:
    """In a folder without a database nobody is asked, nothing is made, and the place is named."""
    _write(typed, WIDE)
    answer = typed("policy", "accept", "--as", "ann", stdin="yes\n")
    issue = typed("issues", "add", "--title", "t", "--body", "b")
    listed = typed("issues", "list")
    assert [(1, "")] * 3 == [(one.status, one.out) for one in (answer, issue, listed)]
    place = f"error: there is no database at SQLite {typed.home / 'triage.db'}: nothing was made\n"
    assert [True] * 3 == [one.err.startswith(place) for one in (answer, issue, listed)]
    assert [True, True, False] == ["--create" in one.err for one in (answer, issue, listed)]
    assert ["triage.toml"] == [path.name for path in typed.home.iterdir()]


def test_nothing_is_accepted_where_nothing_waits(typed: Typed) -> None:
    """Rules that are in force already, or none at all, need no acceptance."""
    none = typed("policy", "accept", "--yes")
    _write(typed, NARROW)
    narrow = typed("policy", "accept", "--yes")
    assert [1, 1] == [none.status, narrow.status]
    assert "error: nothing waits: the built-in rules" in none.err
    assert "error: nothing waits: the rules in" in narrow.err
    assert NOBODY_YET == _accepted(typed)


def test_accept_calls_no_file_in_force_that_no_worker_looks_at(typed: Typed) -> None:
    """It says what is in force instead, and with which setting the file would be."""
    less, more = _write(typed, NARROW, "less.toml"), _write(typed, WIDE, "more.toml")
    status, _, told = _error(typed("policy", "accept", less, "--yes"))
    assert (1, True) == (status, told.endswith("are not in force: the built-in rules are"))
    hint = f"hint: they are where a worker has TRIAGE_POLICY={less}\n"
    assert hint in typed("policy", "accept", less, "--yes").err
    wrong = {"TRIAGE_POLICY": str(_write(typed, WRONG, "wrong.toml"))}
    beside = typed("policy", "accept", less, "--yes", env=wrong).err
    assert "allow nothing new, and are not in force\n" in beside
    accepted = typed("policy", "accept", more, "--yes", "--create").out
    assert accepted.endswith(f"only where it has this setting, too:\n  TRIAGE_POLICY={more}\n")
    assert "every run" not in accepted
    shown = " ".join(typed("policy", "show").out.split())
    assert "the built-in rules would allow" in shown
    assert "more, and wait for acceptance: triage policy accept" in shown


def test_a_file_that_changed_since_it_was_shown_is_not_accepted(
    typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is accepted is exactly what was shown, whatever the file holds by then."""
    path = _write(typed, WIDE)

    def swap(*_: object) -> None:
        path.write_text(f'{WIDE}deploy = "descriptive"\n')

    monkeypatch.setattr("triage.cli.policy_accepting._ask", swap)
    _have_database(typed)
    answer = typed("policy", "accept", "--as", "ann")
    assert (1, True) == (answer.status, "the file changed since it was shown" in answer.err)
    assert NOBODY_YET == _accepted(typed)


@pytest.mark.parametrize("name", ["", "  ", "x" * 501])
def test_who_accepts_must_have_a_name(typed: Typed, name: str) -> None:
    """Without a name, or with one too long, nothing is accepted and nothing is shown."""
    _write(typed, WIDE)
    _have_database(typed)
    status, out, error = _error(typed("policy", "accept", "--yes", "--as", name))
    assert (2, "", True) == (status, out, error.startswith("error: the name "))
    assert NOBODY_YET == _accepted(typed)


@pytest.mark.parametrize("command", ["show", "accept"])
def test_rules_that_cannot_be_used_are_told(typed: Typed, command: str) -> None:
    """A wrong file is a mistake of whoever wrote it: its lines are named, without a traceback."""
    _write(typed, WRONG)
    answer = typed("policy", command)
    assert (2, "") == (answer.status, answer.out)
    assert "error: line 2: policy.mode: must be" in answer.err
    assert "line 5: budget.tokens: must be at least 0" in answer.err


@pytest.mark.parametrize("command", ["check", "show", "accept"])
def test_a_database_that_does_not_answer_is_told(typed: Typed, command: str) -> None:
    """What was accepted is not guessed."""
    _write(typed, WIDE)
    url = {"TRIAGE_DATABASE_URL": "postgresql://someone:s3cret@127.0.0.1:1/triage"}
    answer = typed("policy", command, env=url)
    assert (3, "", False) == (answer.status, answer.out, "s3cret" in answer.err)


@pytest.mark.parametrize("command", ["check", "show", "accept"])
def test_a_file_that_is_not_there_is_told(typed: Typed, command: str) -> None:
    """So is a folder in its place, as every other command tells it."""
    missing = _error(typed("policy", command, "nowhere.toml"))
    assert (2, "", "error: nowhere.toml: cannot be read: No such file or directory") == missing
    folder = _error(typed("policy", command, typed.home))
    assert (2, "", f"error: {typed.home}: cannot be read: Is a directory") == folder


def test_a_database_from_before_acceptances_has_none(typed: Typed) -> None:
    """Looking at an older database changes nothing; accepting upgrades it first."""
    _write(typed, WIDE)
    in_store_as_it_is(typed.home, _make_old)
    assert WAITS in typed("policy", "check").out
    assert "0002" == in_store_as_it_is(typed.home, schema_revision)
    assert 0 == typed("policy", "accept", "--yes", "--as", "ann").status
    assert _digest(WIDE) == _accepted(typed).digest


async def _make_old(store: Store) -> None:
    async with store.write() as connection:
        await connection.run_sync(lambda old: command.upgrade(alembic_config(old), "0002"))


def test_the_doctor_tells_of_rules(typed: Typed) -> None:
    """Built in, in force, odd, waiting or wrong: one row or more, with what to do."""
    env = {"TEMPORAL_ADDRESS": "127.0.0.1:1"}
    found = []
    for text in ("", NARROW, f'{NARROW}[labels]\nx = "?"\n', WIDE, WRONG):
        _write(typed, text)
        rows = typed("doctor", "--format", "json", env=env).json()
        found.append([row for row in rows if row["check"] == "rules"])
    assert [["ok"], ["ok"], ["ok", "warn"], ["warn"], ["fail", "fail"]] == [
        [row["status"] for row in rows] for rows in found
    ]
    assert found[0][0]["detail"].startswith("the built-in rules, sha256:")
    assert found[3][0]["detail"].endswith(f"would allow 2 more, and {WAITS}")
    assert "line 2: policy.mode" in found[4][0]["detail"]
