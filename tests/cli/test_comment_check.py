"""Doctor says whether comments count, and how many people tried."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr

from triage.cli.comment_check import check
from triage.cli.findings import Level
from triage.contracts.approval import Verdict
from triage.settings import Settings
from triage.signing.files import KeyringFile, write_key
from triage.signing.keys import Keyring, new_key
from triage.storage.admission import Delivery, Subject
from triage.storage.commands import Command, Commands
from triage.storage.engine import Store
from triage.storage.migrate import upgrade


async def test_who_signs_and_who_tried_is_told(tmp_path: Path) -> None:
    """Without a key the row says that orders are ignored; with one that may not vouch, it fails."""
    [unset] = await check(Settings(home=tmp_path))
    assert (Level.OK, True) == (unset.level, "ignores orders" in unset.detail)
    private, entry = new_key("serve", datetime.now(UTC), vouches_for=("github",))
    write_key(tmp_path / "key.json", private)
    ring = KeyringFile(tmp_path / "ring.json")
    ring.change(lambda _: Keyring())
    settings = Settings(
        home=tmp_path,
        tracker="github",
        service_key=tmp_path / "key.json",
        keyring=tmp_path / "ring.json",
        github_token=SecretStr("reader"),
    )
    [found] = await check(settings)
    assert Level.FAIL is found.level
    assert "--vouches-for github" in found.detail
    ring.change(lambda known: known.with_key(entry))
    assert "count, signed by serve; so far: none" == (await check(settings))[0].detail
    await upgrade(settings.database_url)
    store = await Store.open(settings.database_url)
    await _refuse(Commands(store))
    await store.close()
    assert "so far: refused/old 1" in (await check(settings))[0].detail


@pytest.mark.parametrize("has_database", [False, True])
async def test_a_tracker_that_serve_refuses_is_named_before_the_keyring(
    tmp_path: Path, *, has_database: bool
) -> None:
    """Where the tracker knows nobody, the row fails as `triage serve` does: no key mends that."""
    private, _ = new_key("serve", datetime.now(UTC), vouches_for=("github",))
    write_key(tmp_path / "key.json", private)
    KeyringFile(tmp_path / "ring.json").change(lambda _: Keyring())
    settings = Settings(
        home=tmp_path, service_key=tmp_path / "key.json", keyring=tmp_path / "ring.json"
    )
    if has_database:
        await upgrade(settings.database_url)
    [found] = await check(settings)
    assert Level.FAIL is found.level
    assert "the tracker local cannot say who may do what" in found.detail
    assert "set TRIAGE_TRACKER to github" in found.detail


async def _refuse(commands: Commands) -> None:
    subject = Subject(tenant="t", source="github", repository="a/b", repository_id="1", number="1")
    delivery = Delivery(delivery_id="d", event="issue_comment", action="created", body_digest="x")
    said = Command(
        comment_id="1",
        person_id="2",
        login="octocat",
        operation_id="op-6",
        version=6,
        verdict=Verdict.APPROVE,
        said_at=datetime.now(UTC) - timedelta(hours=2),
    )
    await commands.admit(delivery, subject, said)
    held = await commands.take()
    assert held is not None
    assert await commands.refused(held, "old")
