"""The doctor looks at the weights that runs would need, and says what to do about them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.unit.models.learned_samples import classifier
from triage.cli.findings import Finding, Level
from triage.cli.weights_check import check
from triage.settings import Settings
from triage.storage.documents import SHARED, DocumentKind, DocumentStore
from triage.storage.engine import Store
from triage.storage.migrate import upgrade

KNOWN = classifier()


@pytest.fixture
async def home(tmp_path: Path) -> Path:
    """A folder whose database has some weights, and something that is none."""
    for body in (KNOWN.weights.body(), classifier(None).weights.body()):
        await _put(tmp_path, body)
    return tmp_path


async def _put(home: Path, body: bytes) -> str:
    url = _settings(home, "rules").database_url
    await upgrade(url)
    store = await Store.open(url)
    try:
        return await DocumentStore(store).put(SHARED, DocumentKind.WEIGHTS, body)
    finally:
        await store.close()


def _settings(home: Path, model: str) -> Settings:
    return Settings(
        home=home, database_url=f"sqlite+aiosqlite:///{home / 'triage.db'}", model=model
    )


async def _only(home: Path, model: str) -> Finding:
    [found] = await check(_settings(home, model))
    return found


async def test_weights_that_can_be_used_are_well(home: Path) -> None:
    """By their digest, with what they were taught by, with a group or without."""
    for model in (f"learned:{KNOWN.digest}", f"learned:{KNOWN.digest}:acme/api"):
        found = await _only(home, model)
        assert Level.OK is found.level
        assert KNOWN.digest in found.detail
        assert "taught by 4 issues" in found.detail


@pytest.mark.parametrize("model", ["rules", "openai:gpt-5-mini"])
async def test_models_without_weights_have_no_line(home: Path, model: str) -> None:
    """What is wrong with a name is the model's own line."""
    assert [] == await check(_settings(home, model))


async def test_missing_weights_are_named(home: Path) -> None:
    """They are not stored, or there is no database that could have them."""
    digest = f"sha256:{'a' * 64}"
    found = await _only(home, f"learned:{digest}")
    assert (Level.FAIL, f"{digest}: not stored, so no run begins") == (found.level, found.detail)
    assert "triage weights store" in found.advice
    nowhere = await _only(home / "elsewhere", f"learned:{digest}")
    assert "there is none yet" in nowhere.detail


async def test_weights_of_another_form_are_named(home: Path) -> None:
    """A document that is no weights, and a group that they have nothing of."""
    digest = await _put(home, KNOWN.weights.body().replace(b"weights-1", b"weights-9"))
    found = await _only(home, f"learned:{digest}")
    assert (Level.FAIL, True) == (found.level, "cannot be used" in found.detail)
    assert "teach them anew" in found.advice
    other = await _only(home, f"learned:{KNOWN.digest}:acme/web")
    assert "nothing of this group's own" in other.detail


async def test_each_group_of_the_same_weights_is_looked_at(home: Path) -> None:
    """A fallback of the same weights without a group hides nothing that is wrong with a group."""
    (home / "rules.toml").write_text(
        f'[policy]\nfallback_models = ["learned:{KNOWN.digest}"]\n', encoding="utf-8"
    )
    settings = _settings(home, f"learned:{KNOWN.digest}:acme/web")
    found = await check(settings.model_copy(update={"policy": home / "rules.toml"}))
    assert [Level.FAIL, Level.OK] == [one.level for one in found]


async def test_weights_that_were_tampered_with_are_named(home: Path) -> None:
    """A body that has not its digest any more is not used, and not taken for missing."""
    with closing(sqlite3.connect(home / "triage.db")) as database:
        other = "CAST(replace(body, '9000', '8999') AS BLOB)"
        database.execute(
            f"UPDATE documents SET body = {other} WHERE digest = ?",  # noqa: S608 - no input
            (KNOWN.digest,),
        )
        database.commit()
    found = await _only(home, f"learned:{KNOWN.digest}")
    assert (Level.FAIL, True) == (found.level, "not what was put" in found.detail)


async def test_weights_that_cannot_be_read_are_named(home: Path) -> None:
    """A file that is no database at all is the weights' trouble, too."""
    (home / "triage.db").write_bytes(b"no database" * 100)
    found = await _only(home, f"learned:{KNOWN.digest}")
    assert (Level.FAIL, True) == (found.level, "cannot be looked for" in found.detail)


async def test_weights_that_answer_nothing_are_a_warning(home: Path) -> None:
    """Without a threshold every issue goes to a person."""
    found = await _only(home, f"learned:{classifier(None).digest}")
    assert (Level.WARN, True) == (found.level, "abstain from everything" in found.detail)
