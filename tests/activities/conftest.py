"""Stores for the activities: real ones, on a SQLite file of their own for each test."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from activities.services import Services
from tests.activities.questions import Asking, a_question
from tests.activities.scripted_tracker import ScriptedTracker
from tests.activities.writing import Writing
from tests.fixed_rules import FixedRules
from tests.still_store import StillStore
from triage.policy.tools import BUILTIN_TOOLS
from triage.signing.files import KeyringFile
from triage.storage.documents import DocumentStore
from triage.storage.engine import Store
from triage.storage.evidence import EvidenceStore
from triage.storage.ledger import Ledger
from triage.storage.migrate import upgrade


@pytest.fixture(scope="session")
async def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated database without rows, to be copied."""
    path = tmp_path_factory.mktemp("template") / "triage.db"
    await upgrade(f"sqlite:///{path}")
    return path


@pytest.fixture
async def store(template: Path, tmp_path: Path) -> AsyncIterator[StillStore]:
    """An open store without rows, whose clock a test moves."""
    path = tmp_path / "triage.db"
    shutil.copyfile(template, path)
    opened = await StillStore.open(f"sqlite:///{path}")
    yield opened
    await opened.close()


def services_on(store: Store, tracker: ScriptedTracker) -> Services:
    """What activities work with, on `store` and with a tracker that is told what to do."""
    return Services(
        store=store,
        documents=DocumentStore(store),
        evidence=EvidenceStore(store),
        ledger=Ledger(store, lease_seconds=60, quiet_period_seconds=120, max_redispatch=2),
        trackers={"scripted": tracker},
        tools=BUILTIN_TOOLS,
        rules=FixedRules(),
        orchestrator="tests",
        default_model="rules",
        default_tracker="scripted",
        local_trust=True,
        keyring=KeyringFile(None),
        model_timeout=timedelta(seconds=20),
        write_timeout=timedelta(seconds=20),
    )


@pytest.fixture
def writing(store: StillStore) -> Writing:
    """A far end, a ledger and a clock."""
    tracker = ScriptedTracker()
    return Writing(tracker=tracker, services=services_on(store, tracker), store=store)


@pytest.fixture
def services(writing: Writing) -> Services:
    """What activities work with."""
    return writing.services


@pytest.fixture
async def ticking(services: Services) -> AsyncIterator[Services]:
    """The same on the database's own clock, for a far end that keeps the time itself."""
    opened = await Store.open(services.store.address.url.render_as_string(hide_password=False))
    yield services_on(opened, ScriptedTracker())
    await opened.close()


@pytest.fixture
async def asking(services: Services, monkeypatch: pytest.MonkeyPatch) -> Asking:
    """A run whose request and rules are stored."""
    return await a_question(services, monkeypatch)
