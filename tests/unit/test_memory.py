"""What a worker holds before its first run: nothing that its settings do not ask for."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Final
from unittest import mock

from temporalio.client import Client

import worker
from triage.kept_runs import HEADROOM
from triage.settings import Role, Settings
from triage.storage.migrate import upgrade

ROOT: Final = Path(__file__).parents[2]
_PATTERN: Final = re.compile(r'pattern=r"([^"]*)"')
_COUNTED: Final = re.compile(
    r"(?:\[\^[^\]]*\]|\[[^\]]*\\[pswdPSWD][^\]]*\]|\\[pswdPSWD](?:\{\w+\})?|\.)\{\d"
)
NOT_FOR_EVERYBODY: Final = {
    "alembic": "an upgrade that has something to do",
    "cryptography": "a key",
    "Carried": "a run that continues as new",
    "gidgethub": "a tracker on GitHub",
    "httpx2": "a tracker on GitHub, or a paid model",
    "joserfc": "a key",
    "mako": "an upgrade",
    "psycopg": "PostgreSQL",
    "pydantic_ai": "a paid model",
    "pygments": "colours",
    "rich": "colours",
    "sqlalchemy.dialects.postgresql": "PostgreSQL",
    "sqlalchemy.orm": "PostgreSQL",
    "starlette": "the page",
    "typer": "a command line",
    "uvicorn": "the page",
}
"""What takes long to load and much room, packages and how one record is read; who needs it."""
_STARTED: Final = """
import asyncio, sys, worker
from triage.settings import Settings
from workflows.carried import Carried
async def start(home):
    settings = Settings(home=home, database_url=f"sqlite:///{home}/triage.db")
    async with worker.open_services(settings) as services:
        worker.decide_activities(services)
asyncio.run(start(sys.argv[1]))
print(*sys.modules, *["Carried"] * Carried.__pydantic_complete__)
"""


async def test_a_worker_loads_what_its_settings_ask_for(tmp_path: Path) -> None:
    """On SQLite, with the rules model, the built-in tracker and no key, none of these is loaded.

    The database is there already, as at every start but the first.
    """
    await upgrade(f"sqlite:///{tmp_path}/triage.db")
    done = subprocess.run(  # noqa: ASYNC221 - nothing else goes on
        [sys.executable, "-c", _STARTED, tmp_path], capture_output=True, text=True, check=True
    )
    assert set() == NOT_FOR_EVERYBODY.keys() & set(done.stdout.split())


def test_a_worker_keeps_as_many_runs_as_it_is_told() -> None:
    """What the runs in memory take is bounded by a setting; what is beyond it is replayed."""
    settings = Settings(roles=(Role.DECIDE,), cached_runs=70)
    with (
        mock.patch.object(worker, "Worker") as made,
        mock.patch.object(worker, "decide_activities"),
    ):
        worker.build_workers(mock.create_autospec(Client), settings, mock.Mock())
    # The SDK's own cache is never to be full: see `triage.kept_runs`.
    places = [call.kwargs["max_cached_workflows"] for call in made.call_args_list]
    assert [70 + HEADROOM] == places
    assert [70] == [call.kwargs["workflow_runner"].kept.limit for call in made.call_args_list]


def test_no_pattern_counts_characters_of_all_scripts() -> None:
    """A field's length is bounded beside its pattern: such a count inside takes megabytes."""
    patterns = {
        found
        for path in sorted((ROOT / "triage").rglob("*.py"))
        for found in _PATTERN.findall(path.read_text(encoding="utf-8"))
    }
    assert patterns
    assert set() == {pattern for pattern in patterns if _COUNTED.search(pattern)}


def test_such_a_count_is_seen() -> None:
    """The test above finds what it looks for, and lets counts of a few letters pass."""
    assert _COUNTED.search(r"^[^\s\p{C}]{1,200}$")
    assert _COUNTED.search(r"^\w{2,9}$")
    assert not _COUNTED.search(r"^[A-Za-z0-9_-]{1,64}$")
    assert not _COUNTED.search(r"^[^\s\p{C}]+$")
