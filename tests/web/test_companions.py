"""What runs beside the server: answers are carried on, and what was missed is found."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from pydantic import SecretStr

from tests.cli.conftest import NOWHERE
from tests.unit.trackers.far_ends import github_end
from tests.web.hooks import hook_settings, serving
from tests.web.test_hearing import a_comment
from tests.web.test_runs import eventually
from triage.ingest.companions import companions, vouching
from triage.settings import SettingsError
from triage.signing.files import write_key
from triage.signing.keys import new_key
from triage.storage.commands import Commands
from triage.storage.cursors import Cursor
from triage.storage.engine import Store


async def test_a_server_carries_answers_on_and_finds_what_was_missed(
    light_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `triage serve` runs it: a comment that no run waits for is refused, an issue admitted."""
    monkeypatch.setenv("TEMPORAL_ADDRESS", NOWHERE)
    private, _ = new_key("serve", datetime.now(UTC), vouches_for=("github",))
    write_key(tmp_path / "key.json", private)
    async with github_end(tmp_path) as end:
        settings = hook_settings(
            tmp_path,
            light_url,
            tracker="github",
            roles=("decide",),
            github_base_url=end.control.api,
            github_token=SecretStr("reader"),
            service_key=tmp_path / "key.json",
            poll_repositories=(end.repository,),
        )
        store = await Store.open(light_url)
        cursor = Cursor(store, tenant="default", source="github", repository=end.repository)
        await cursor.position(datetime.now(UTC) - timedelta(days=1))
        await store.close()
        async with serving(settings, partial(companions, settings)) as hook:
            said = a_comment(comment={"created_at": datetime.now(UTC).isoformat()})
            await hook.send(said, X_GitHub_Event="issue_comment")

            async def both() -> bool | None:
                counts = await Commands(hook.store).counts()
                is_both = counts == {"refused/no_run": 1} and len(await hook.requests()) == 1
                return is_both or None

            assert await eventually(both)


async def test_what_does_not_fit_is_told_before_anything_runs(
    light_url: str, tmp_path: Path
) -> None:
    """A key without a tracker that knows people, and one that is not there, serve nobody."""
    private, _ = new_key("serve", datetime.now(UTC), vouches_for=("github",))
    write_key(tmp_path / "key.json", private)
    local = hook_settings(tmp_path, light_url, service_key=tmp_path / "key.json")
    missing = hook_settings(
        tmp_path,
        light_url,
        tracker="github",
        github_token=SecretStr("reader"),
        service_key=tmp_path / "none.json",
    )
    for settings, told in ((local, "set TRIAGE_TRACKER to github"), (missing, "cannot be read")):
        with pytest.raises(SettingsError, match=told):
            async with serving(settings, partial(companions, settings)):
                pass
    with pytest.raises(SettingsError, match="set TRIAGE_TRACKER to github"):
        vouching(missing, object())
