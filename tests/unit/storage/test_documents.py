"""Documents are found by digest, and one whose body is gone never reads as empty."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from sqlalchemy import update

from triage.contracts.canonical import abbreviated, digest_of_bytes
from triage.storage.documents import (
    SHARED,
    Document,
    DocumentKind,
    DocumentStore,
    Missing,
    Unavailable,
)
from triage.storage.engine import Store
from triage.storage.errors import StorageMisconfigured
from triage.storage.schema import documents

BODY = b"any \x00 bytes \xff"
REQUEST = DocumentKind.REQUEST


@pytest.fixture
def shelf(store: Store) -> DocumentStore:
    """The documents of a store."""
    return DocumentStore(store)


async def _now(store: Store) -> datetime:
    async with store.read() as connection:
        return await store.now(connection)


async def test_a_document_is_found_by_its_digest(shelf: DocumentStore) -> None:
    """Any bytes come back, under the digest of the bytes."""
    digest = await shelf.put("scope", REQUEST, BODY)
    assert digest_of_bytes(BODY) == digest
    found = await shelf.get("scope", REQUEST, digest)
    assert isinstance(found, Document)
    assert (BODY, REQUEST, None) == (found.body, found.kind, found.expires_at)


async def test_a_document_is_found_by_an_abbreviated_digest(shelf: DocumentStore) -> None:
    """The first 16 digits name it; fewer, none or those of another document do not."""
    digest = await shelf.put("scope", REQUEST, BODY)
    other = await shelf.put("scope", REQUEST, b"other")
    found = await shelf.get("scope", REQUEST, abbreviated(digest))
    assert isinstance(found, Document)
    assert (BODY, digest) == (found.body, found.digest)
    for wrong in ("", "sha256:", abbreviated(digest)[:15], abbreviated(digest_of_bytes(b"third"))):
        assert isinstance(await shelf.get("scope", REQUEST, wrong), Missing), wrong
    assert isinstance(await shelf.get("scope", REQUEST, abbreviated(other)), Document)


async def test_an_abbreviation_that_names_two_documents_names_none(
    shelf: DocumentStore, store: Store
) -> None:
    """Whoever makes two documents with the same first digits gets neither of them shown."""
    digest = await shelf.put("scope", REQUEST, BODY)
    await shelf.put("scope", REQUEST, b"other")
    twin = digest[:-1] + ("0" if digest[-1] != "0" else "1")
    async with store.write() as connection:
        is_other = documents.c.digest == digest_of_bytes(b"other")
        await connection.execute(update(documents).where(is_other).values(digest=twin))
    assert isinstance(await shelf.get("scope", REQUEST, abbreviated(digest)), Missing)
    assert isinstance(await shelf.get("scope", REQUEST, digest), Document)


async def test_an_empty_document_is_there(shelf: DocumentStore) -> None:
    """An empty body is a body."""
    digest = await shelf.put("scope", REQUEST, b"")
    assert isinstance(await shelf.get("scope", REQUEST, digest), Document)


async def test_putting_a_document_again_is_the_same_document(shelf: DocumentStore) -> None:
    """A repeated activity stores nothing new."""
    first = await shelf.put(SHARED, DocumentKind.POLICY, BODY)
    before = await shelf.get(SHARED, DocumentKind.POLICY, first)
    assert first == await shelf.put(SHARED, DocumentKind.POLICY, BODY)
    assert before == await shelf.get(SHARED, DocumentKind.POLICY, first)


async def test_scopes_and_kinds_are_apart(shelf: DocumentStore) -> None:
    """A digest from another run, or of another kind, finds nothing."""
    digest = await shelf.put("scope", REQUEST, BODY)
    missing = Missing(digest=digest)
    assert missing == await shelf.get("other", REQUEST, digest)
    assert missing == await shelf.get("scope", DocumentKind.PROMPT, digest)
    assert not missing


async def test_an_expired_document_is_unavailable(shelf: DocumentStore, store: Store) -> None:
    """From its expiry on a body is unavailable, before and after it is purged."""
    now = await _now(store)
    digest = await shelf.put("scope", REQUEST, BODY, expires_at=now)
    kept = await shelf.put("scope", REQUEST, b"later", expires_at=now + timedelta(days=30))
    expired = await shelf.get("scope", REQUEST, digest)
    assert Unavailable(digest=digest, reason="expired") == expired
    assert not expired
    assert 1 == await shelf.purge_expired()
    assert 0 == await shelf.purge_expired()
    purged = await shelf.get("scope", REQUEST, digest)
    assert Unavailable(digest=digest, reason="purged") == purged
    assert isinstance(await shelf.get("scope", REQUEST, kept), Document)


async def test_a_purge_removes_at_most_so_many(shelf: DocumentStore, store: Store) -> None:
    """A purge is a short transaction, however much is due."""
    now = await _now(store)
    for number in range(3):
        await shelf.put("scope", REQUEST, bytes([number]), expires_at=now)
    removed = [await shelf.purge_expired(now + timedelta(seconds=1), limit=2) for _ in range(3)]
    assert [2, 1, 0] == removed


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [(1, 2, 2), (2, 1, 2), (1, None, None), (None, 1, None)],
    ids=["later", "earlier", "now for ever", "was for ever"],
)
async def test_the_later_expiry_stands(
    shelf: DocumentStore,
    store: Store,
    first: int | None,
    second: int | None,
    expected: int | None,
) -> None:
    """Whoever needs a document longest decides how long it stays."""
    now = await _now(store)
    days = {n: now + timedelta(days=n) for n in (1, 2)} | {None: None}
    for expiry in (first, second):
        digest = await shelf.put("scope", REQUEST, BODY, expires_at=days[expiry])
    found = await shelf.get("scope", REQUEST, digest)
    assert isinstance(found, Document)
    assert days[expected] == found.expires_at


async def test_a_purged_document_that_is_put_again_is_back(
    shelf: DocumentStore, store: Store
) -> None:
    """The same text, met again, is available again."""
    now = await _now(store)
    digest = await shelf.put("scope", REQUEST, BODY, expires_at=now)
    await shelf.purge_expired()
    await shelf.put("scope", REQUEST, BODY, expires_at=now + timedelta(days=1))
    assert isinstance(await shelf.get("scope", REQUEST, digest), Document)


async def test_a_body_that_was_changed_is_an_error(shelf: DocumentStore, store: Store) -> None:
    """A run never goes on with a text that is not the one it pinned."""
    digest = await shelf.put("scope", REQUEST, BODY)
    async with store.write() as connection:
        await connection.execute(update(documents).values(body=b"forged"))
    with pytest.raises(StorageMisconfigured, match="does not have its digest"):
        await shelf.get("scope", REQUEST, digest)
