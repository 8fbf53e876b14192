"""Settings: where they come from, what is refused and how they reach a child process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from triage.settings import (
    Role,
    Settings,
    SettingsError,
    as_environment,
    config_file,
    load_settings,
    process_environment,
    strange,
    worker_environment,
)

SECRET = "sk-never-shown"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory and no setting in the environment."""
    monkeypatch.chdir(tmp_path)
    for name in os.environ:
        if name.startswith("TRIAGE_"):
            monkeypatch.delenv(name)
    return tmp_path


def _problems() -> tuple[str, ...]:
    with pytest.raises(SettingsError) as caught:
        load_settings()
    return caught.value.problems


def test_defaults(place: Path) -> None:
    """Without any setting everything lies in one folder of the working directory."""
    settings = load_settings()
    assert settings.home == place / ".triage"
    assert settings.database_url == f"sqlite:///{place}/.triage/triage.db"
    assert (settings.model, settings.tracker, settings.roles) == ("rules", "local", tuple(Role))
    assert (settings.local_trust, settings.policy) == (None, None)


def test_environment_wins_over_file(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable beats triage.toml, which beats the default; an empty variable is unset."""
    (place / "triage.toml").write_text(
        'model = "recorded"\ntask_queue = "filed"\nlease_seconds = 5\nroles = ["write"]\n'
        "allow_remote_sqlite = true\n"
    )
    monkeypatch.setenv("TRIAGE_TASK_QUEUE", "named")
    monkeypatch.setenv("TRIAGE_MODEL", "")
    settings = load_settings()
    assert (settings.model, settings.task_queue) == ("recorded", "named")
    assert (settings.lease_seconds, settings.roles) == (5.0, (Role.WRITE,))
    assert settings.allow_remote_sqlite


def test_arguments_win(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that names a setting gets it, whatever the environment says."""
    monkeypatch.setenv("TRIAGE_TASK_QUEUE", "named")
    assert Settings(task_queue="given").task_queue == "given"


def test_config_variable_names_the_file(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """TRIAGE_CONFIG points to another file, and to one that exists."""
    other = place / "other.toml"
    monkeypatch.setenv("TRIAGE_CONFIG", str(other))
    assert _problems() == ("TRIAGE_CONFIG: names no file; set it to the path of one",)
    other.write_text('model = "recorded"')
    assert load_settings().model == "recorded"
    assert config_file() == other


def test_rule_tables_are_left_alone(place: Path) -> None:
    """Tables that belong to the rules may stand in triage.toml."""
    (place / "triage.toml").write_text(
        'model = "recorded"\n[policy]\nmode = "suggest"\n[labels]\nbug = "descriptive"\n'
        '[repositories]\n"acme/api" = "shadow"\n'
    )
    assert load_settings().model == "recorded"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('modle = "rules"', "triage.toml: modle is no setting; did you mean model?"),
        ('TRIAGE_MODEL = "x"', "triage.toml: TRIAGE_MODEL is no setting; did you mean model?"),
        (
            "[settings]\nmodel = 'rules'",
            (
                "triage.toml: [settings] is no table of the rules, which are approvals, budget,"
                " daily_budget, labels, owners, policy, repositories, tools, topics; settings stand"
                " above"
            ),
        ),
        (
            "zzz = 1",
            "triage.toml: zzz is no setting; remove it, or put it into its table if it is a rule",
        ),
        (
            f'"{SECRET} \\u001b" = 1',
            "triage.toml: a key is no setting; remove it, or put it into its table if it is a rule",
        ),
        (
            f'model_api_key = "{SECRET}"',
            (
                "triage.toml: model_api_key is a secret;"
                " set TRIAGE_MODEL_API_KEY_FILE or TRIAGE_MODEL_API_KEY instead"
            ),
        ),
        (
            f'database_url = "postgresql://u:{SECRET}@h/db"',
            (
                "triage.toml: database_url holds a password;"
                " set TRIAGE_DATABASE_URL_FILE or TRIAGE_DATABASE_URL"
            ),
        ),
        (
            f"model = {SECRET}",
            (
                "triage.toml: is not TOML at line 1, column 9"
                " (a value is missing, or is text without quotes); correct it there"
            ),
        ),
        (
            "lease_seconds = true",
            (
                "triage.toml: lease_seconds: must be a number;"
                " set it to the seconds that a dispatched write is held"
            ),
        ),
        (
            f"lease_seconds = {'9' * 5_000}",
            "triage.toml: is not TOML at line 1 (a number has too many digits); correct it there",
        ),
        (
            f"lease_seconds = 0x{'f' * 5_000}",
            "triage.toml: lease_seconds: is too large a number; correct it",
        ),
        (
            f"a{'.a' * 5_000} = 1",
            "triage.toml: is not TOML at line 1 (a key has more than 64 parts); correct it there",
        ),
        (
            f"model = {'[' * 5_000}",
            "triage.toml: is not TOML (it is nested too deep); correct it there",
        ),
        ("#" * 1_048_577, "triage.toml: names a file of more than 1048576 bytes"),
        (
            'policy = "gone.toml"',
            "triage.toml: policy: names no file; set it to the path of a rules file",
        ),
    ],
)
def test_mistakes_in_the_file(place: Path, text: str, line: str) -> None:
    """A mistake in triage.toml is one line: the key, what is wrong, what to do, no value."""
    (place / "triage.toml").write_text(text)
    assert _problems() == (line,)


def test_a_file_full_of_mistakes_is_told_in_a_few_lines(place: Path) -> None:
    """Twenty keys that are wrong are enough to begin with."""
    (place / "triage.toml").write_text("".join(f"zzz{number} = 1\n" for number in range(500)))
    assert len(_problems()) == 20


def test_a_mark_of_the_byte_order_is_no_part_of_the_file(place: Path) -> None:
    """An editor that begins a file with one has not made it another file."""
    (place / "triage.toml").write_text('model = "recorded"\n', encoding="utf-8-sig")
    assert load_settings().model == "recorded"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TRIAGE_LEASE_SECONDS", SECRET),
        ("TRIAGE_LEASE_SECONDS", "0"),
        ("TRIAGE_LEASE_SECONDS", "nan"),
        ("TRIAGE_EVIDENCE_RETENTION_DAYS", "1.5"),
        ("TRIAGE_LOCAL_TRUST", SECRET),
        ("TRIAGE_TRACKER", SECRET),
        ("TRIAGE_ROLES", f"decide,{SECRET}"),
        ("TRIAGE_ROLES", ","),
        ("TRIAGE_MODEL", SECRET),
        ("TRIAGE_MODEL", "openai:"),
        ("TRIAGE_TASK_QUEUE", f"{SECRET} queue"),
        ("TRIAGE_DATABASE_URL", f"mysql://user:{SECRET}@host/db"),
        ("TRIAGE_DATABASE_URL", SECRET),
        ("TRIAGE_MODEL_BASE_URL", f"https://user:{SECRET}@host/v1"),
        ("TRIAGE_MODEL_BASE_URL", f"file:///{SECRET}"),
        ("TRIAGE_MODEL_BASE_URL", f"http://[{SECRET}"),
        ("TRIAGE_POLICY", f"/{SECRET}"),
    ],
)
def test_mistakes_in_variables(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    """A wrong variable is named with what to do, and its value is never shown."""
    monkeypatch.setenv(name, value)
    problems = _problems()
    assert problems
    assert all(line.startswith(f"{name}: ") and "; set it to " in line for line in problems)
    assert SECRET not in "".join(problems)


def test_all_problems_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several mistakes are reported together."""
    monkeypatch.setenv("TRIAGE_MODEL", "other")
    monkeypatch.setenv("TRIAGE_TRACKER", "other")
    assert len(_problems()) == 2


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("sqlite:///a.db", "sqlite:///a.db"),
        ("sqlite+aiosqlite:///a.db", "sqlite:///a.db"),
        ("postgres://u@h/d", "postgresql+psycopg://u@h/d"),
        ("postgresql://u@h/d", "postgresql+psycopg://u@h/d"),
        ("postgresql+psycopg://u@h/d", "postgresql+psycopg://u@h/d"),
    ],
)
def test_driver_is_added(monkeypatch: pytest.MonkeyPatch, given: str, used: str) -> None:
    """A database URL in any usual form gets the driver that is used."""
    monkeypatch.setenv("TRIAGE_DATABASE_URL", given)
    assert load_settings().database_url == used


def test_secret_from_file(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A secret may lie in a file, is not shown, and reaches a child as the file's path."""
    file = place / "key"
    file.write_text(f"{SECRET}\n")
    monkeypatch.setenv("TRIAGE_MODEL_API_KEY_FILE", "key")
    settings = load_settings()
    assert settings.model_api_key is not None
    assert settings.model_api_key.get_secret_value() == SECRET
    assert SECRET not in repr(settings)
    environment = as_environment(settings)
    assert environment["TRIAGE_MODEL_API_KEY_FILE"] == str(file)
    assert SECRET not in str(environment)


def test_database_password_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A database URL, which may hold a password, stays out of the settings' representation."""
    monkeypatch.setenv("TRIAGE_DATABASE_URL", f"postgresql://u:{SECRET}@h/d")
    assert SECRET not in repr(load_settings())


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (None, "cannot be read (No such file or directory); check path and rights"),
        (b"\n", "names an empty file; put the secret into it"),
        (b"\xff", "names a file that is not UTF-8 text"),
    ],
)
def test_bad_secret_file(
    place: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None, line: str
) -> None:
    """A secret's file that is missing, empty or binary is one clear line."""
    if content is not None:
        (place / "key").write_bytes(content)
    monkeypatch.setenv("TRIAGE_MODEL_API_KEY_FILE", "key")
    assert _problems() == (f"TRIAGE_MODEL_API_KEY_FILE: {line}",)


def test_secret_given_twice(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A secret given as value and as file is refused: nobody could tell which one counts."""
    (place / "key").write_text(SECRET)
    monkeypatch.setenv("TRIAGE_MODEL_API_KEY_FILE", "key")
    monkeypatch.setenv("TRIAGE_MODEL_API_KEY", SECRET)
    assert _problems() == (
        "TRIAGE_MODEL_API_KEY: is set, and TRIAGE_MODEL_API_KEY_FILE too; unset one of them",
    )


def test_child_process_gets_the_same_settings(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child started elsewhere, with the variables that we pass, reads the same settings."""
    (place / "rules.toml").write_text("")
    (place / "triage.toml").write_text('policy = "rules.toml"\nmodel = "recorded"\n')
    monkeypatch.setenv("TRIAGE_MODEL_API_KEY", SECRET)
    monkeypatch.setenv("TRIAGE_ROLES", "decide")
    settings = load_settings().model_copy(update={"local_trust": True, "lease_seconds": 0.25})
    (place / "elsewhere").mkdir()
    child = subprocess.run(
        [
            sys.executable,
            "-c",
            "from triage.settings import load_settings as s; print(s().model_dump_json())",
        ],
        cwd=place / "elsewhere",
        env=process_environment() | as_environment(settings),
        capture_output=True,
        text=True,
        check=True,
    )
    assert Settings.model_validate_json(child.stdout) == settings.model_copy(
        update={"model_api_key": Settings.model_validate_json(child.stdout).model_api_key}
    )
    assert SECRET in as_environment(settings).values()


@pytest.mark.parametrize(
    ("roles", "given"),
    [
        ("decide,write", {"GITHUB_TOKEN", "GITHUB_WRITE_TOKEN", "MODEL_API_KEY"}),
        ("decide", {"GITHUB_TOKEN", "MODEL_API_KEY"}),
        ("write", {"GITHUB_TOKEN", "GITHUB_WRITE_TOKEN"}),
    ],
)
def test_a_worker_gets_the_secrets_of_its_roles_alone(
    place: Path, monkeypatch: pytest.MonkeyPatch, roles: str, given: set[str]
) -> None:
    """No worker is told what deliveries are signed with, and only one that writes how to write."""
    names = {"GITHUB_TOKEN", "GITHUB_WRITE_TOKEN", "MODEL_API_KEY", "WEBHOOK_SECRET"}
    for name in {*names, "WEBHOOK_SECRET_PREVIOUS"}:
        monkeypatch.setenv(f"TRIAGE_{name}", f"{SECRET}-{name.lower()}")
    (place / "key.json").write_text("{}")
    for name in ("SIGNING_KEY", "SERVICE_KEY"):
        monkeypatch.setenv(f"TRIAGE_{name}", "key.json")
    settings = load_settings().model_copy(update={"roles": tuple(map(Role, roles.split(",")))})
    environment = worker_environment(settings)
    held = {name for name, value in environment.items() if SECRET in value}
    assert {f"TRIAGE_{name}" for name in given} == held
    assert {"TRIAGE_SIGNING_KEY", "TRIAGE_SERVICE_KEY"}.isdisjoint(environment)
    assert roles == environment["TRIAGE_ROLES"]


def test_children_inherit_no_stray_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment for a child keeps everything but our settings, which are passed apart."""
    monkeypatch.setenv("TRIAGE_MODEL", "recorded")
    monkeypatch.setenv("SOMETHING_ELSE", "kept")
    environment = process_environment()
    assert "TRIAGE_MODEL" not in environment
    assert environment["SOMETHING_ELSE"] == "kept"


def test_a_worker_that_only_decides_holds_no_token_that_writes(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing is written, the token that writes is refused instead of kept."""
    (place / "token").write_text("ghp_write\n")
    monkeypatch.setenv("TRIAGE_ROLES", "decide")
    assert load_settings().github_write_token is None
    monkeypatch.setenv("TRIAGE_GITHUB_WRITE_TOKEN_FILE", str(place / "token"))
    [problem] = _problems()
    assert problem.startswith("TRIAGE_GITHUB_WRITE_TOKEN_FILE: is given to a process")
    monkeypatch.setenv("TRIAGE_ROLES", "write")
    token = load_settings().github_write_token
    assert token is not None
    assert "ghp_write" == token.get_secret_value()
    assert "ghp_write" not in repr(load_settings())


@pytest.mark.parametrize("token", ["two words", "line\nbreak", "naïve", " "])
def test_what_is_no_token_is_refused(monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    """A token with a sign that would end a header's line is refused, and not quoted."""
    monkeypatch.setenv("TRIAGE_GITHUB_TOKEN", token)
    [problem] = _problems()
    assert problem.startswith("TRIAGE_GITHUB_TOKEN: is no token")
    assert token.strip() == "" or token not in problem


def test_what_deliveries_are_told_by(monkeypatch: pytest.MonkeyPatch) -> None:
    """Senders come as a list with commas; a secret that can be guessed is refused unquoted."""
    monkeypatch.setenv("TRIAGE_WEBHOOK_IGNORED_SENDERS", "triage-app[bot], other")
    assert ("triage-app[bot]", "other") == load_settings().webhook_ignored_senders
    monkeypatch.setenv("TRIAGE_WEBHOOK_SECRET", "guess-me")
    with pytest.raises(SettingsError, match="TRIAGE_WEBHOOK_SECRET: has fewer") as caught:
        load_settings()
    assert "guess-me" not in str(caught.value)


def test_a_variable_that_no_setting_has_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the nearest name, and without its value; one that something else reads is none."""
    wrong = ("TRIAGE_MODLE", "TRIAGE_GITHUB_TOKEN_FIEL", "TRIAGE_\x1b[2J", "TRIAGE_QQ")
    links = ("TRIAGE_PORT", "TRIAGE_SERVICE_HOST", "TRIAGE_PORT_7233_TCP_ADDR", "TRIAGE_UI_PORT")
    files = ("TRIAGE_GITHUB_TOKEN_FILE", "TRIAGE_CONFIG", "TRIAGE_DEBUG", "TRIAGE_DB_PASSWORD")
    for name in (*wrong, *links, *files, "TRIAGE_Model", "TRIAGELESS"):
        monkeypatch.setenv(name, SECRET)
    monkeypatch.setenv("TRIAGE_EMPTY", "")
    assert (
        "a variable TRIAGE_… is no setting",
        "TRIAGE_GITHUB_TOKEN_FIEL is no setting; did you mean TRIAGE_GITHUB_TOKEN_FILE?",
        "TRIAGE_MODLE is no setting; did you mean TRIAGE_MODEL?",
        "TRIAGE_QQ is no setting",
    ) == strange()
