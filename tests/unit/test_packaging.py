"""Checks that the locks are safe to install from and that a wheel carries all it needs."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
LOCKS = (
    "requirements.lock",
    "requirements-llm.lock",
    "requirements-peers.lock",
    "requirements-runtime.lock",
    "requirements-uv.txt",
)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES = ("activities", "triage", "workflows")
DATA = {
    "fixtures": "triage/_fixtures",
    "triage/models": "triage/models",
    "triage/storage": "triage/storage",
}


def _pins(lock: str) -> dict[str, str]:
    text = (ROOT / lock).read_text(encoding="utf-8")
    return dict(re.findall(r"^([a-z0-9-]+)(?:\[[a-z,-]+\])?==(\S+)", text, re.MULTILINE))


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_names_no_address(lock: str) -> None:
    """Whoever installs from a lock chooses the registry."""
    text = (ROOT / lock).read_text(encoding="utf-8")
    assert None is re.search(r"://|@ |--(?:index|extra-index|find-links|trusted-host)", text)


@pytest.mark.parametrize("lock", LOCKS)
def test_each_pin_has_a_hash(lock: str) -> None:
    """A registry can serve nothing but the files that were locked."""
    entries = (ROOT / lock).read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    pin = r"[a-z0-9-]+(\[[a-z,-]+\])?==\S+( ; .+?)?( +--hash=sha256:[0-9a-f]{64})+ *"
    assert [] == [entry for entry in entries if not re.fullmatch(pin, entry)]


def test_the_runtime_lock_is_part_of_the_lock() -> None:
    """The image runs what the tests ran."""
    assert _pins("requirements-runtime.lock").items() <= _pins("requirements.lock").items()


def test_peers_are_measured_beside_the_releases_that_are_tested() -> None:
    """Both locks are installed into one environment, so no pin of one contradicts the other's."""
    tested = _pins("requirements.lock")
    other = {name: pin for name, pin in _pins("requirements-peers.lock").items() if name in tested}
    assert {name: tested[name] for name in other} == other


@pytest.mark.parametrize(
    ("lock", "wanted"),
    [
        ("requirements-runtime.lock", PROJECT["project"]["dependencies"]),
        ("requirements.lock", PROJECT["project"]["optional-dependencies"]["dev"]),
        ("requirements.lock", PROJECT["build-system"]["requires"]),
        ("requirements-llm.lock", PROJECT["dependency-groups"]["local-model"]),
        ("requirements-peers.lock", PROJECT["dependency-groups"]["peers"]),
    ],
    ids=["runtime", "dev", "build", "local model", "peers"],
)
def test_the_lock_follows_the_project(lock: str, wanted: list[str]) -> None:
    """A dependency that was added or raised without `make lock` is seen."""
    pins = _pins(lock)
    unmet = [
        line
        for line in wanted
        for need in [Requirement(line)]
        if not need.specifier.contains(pins.get(need.name, "0"))
    ]
    assert [] == unmet


def test_each_package_is_listed() -> None:
    """A new folder of code reaches the wheel, since the list is held to the tree."""
    found = {
        ".".join(path.parent.relative_to(ROOT).parts)
        for package in PACKAGES
        for path in (ROOT / package).rglob("__init__.py")
        if "migrations" not in path.parts
    }
    assert found | {"triage._fixtures"} == set(PROJECT["tool"]["setuptools"]["packages"])


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from a copy of the sources, as a user's pip would."""
    source = tmp_path_factory.mktemp("source")
    for name in ("LICENSE", "README.md", "pyproject.toml", "worker.py"):
        shutil.copy(ROOT / name, source)
    for name in (*PACKAGES, "fixtures"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index"]
    subprocess.run(
        [*command, "--no-build-isolation", "--wheel-dir", source / "dist", source],
        check=True,
        capture_output=True,
    )
    return next((source / "dist").glob("*.whl"))


def _expected_files() -> set[str]:
    files = {"worker.py", "triage/py.typed"}
    for package in PACKAGES:
        files |= {str(path.relative_to(ROOT)) for path in (ROOT / package).rglob("*.py")}
    for source, target in DATA.items():
        files |= {
            f"{target}/{path.relative_to(ROOT / source)}"
            for path in (ROOT / source).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
    return files


def test_a_wheel_carries_code_migrations_and_fixtures(wheel: Path) -> None:
    """An installed triage can do what a clone can, and nothing else travels along."""
    names = set(zipfile.ZipFile(wheel).namelist())
    assert _expected_files() == {name for name in names if ".dist-info/" not in name}


def test_an_installed_wheel_finds_its_fixtures(wheel: Path, tmp_path: Path) -> None:
    """The demo's input is found where the wheel put it, with no clone around."""
    zipfile.ZipFile(wheel).extractall(tmp_path)
    code = "from triage.resources import fixtures_path; print(fixtures_path('README.md').resolve())"
    found = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    assert str(tmp_path / "triage" / "_fixtures" / "README.md") == found
    assert Path(found).is_file()


def test_continuous_integration_runs_the_tests() -> None:
    """What CI runs is what a developer runs, and nothing else."""
    script = ROOT / ".ci" / "run"
    commands = script.read_text(encoding="utf-8").splitlines()
    assert ["#!/usr/bin/env bash", "set -euo pipefail", "make test"] == [
        line for line in commands if not line.startswith("cd ")
    ]
    assert os.access(script, os.X_OK)
