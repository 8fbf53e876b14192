"""Evidence stands once a step, and outlives its content as locator and digest."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, replace
from datetime import datetime, timedelta

import pytest

from triage.contracts.canonical import abbreviated, digest_of_bytes
from triage.contracts.trail import START, along, onward
from triage.storage.engine import Store
from triage.storage.evidence import EvidenceRow, EvidenceStore, followed, receipts_among

CONTENT = b'{"owner":"docs-team"}'
ROW = EvidenceRow(
    scope="scope",
    version=3,
    evidence_id="owners-docs",
    tool="lookup_component_owner",
    arguments=b'{"path":"docs/x.md"}',
    source="rules\x00",
    locator="CODEOWNERS@abc#L12\ud800",
    digest=digest_of_bytes(CONTENT),
    content=CONTENT,
    size_bytes=len(CONTENT),
)


@pytest.fixture
def evidence(store: Store) -> EvidenceStore:
    """The evidence of a store."""
    return EvidenceStore(store)


async def _now(store: Store) -> datetime:
    async with store.read() as connection:
        return await store.now(connection)


async def test_evidence_comes_back_as_it_was_put(evidence: EvidenceStore) -> None:
    """Every field is kept exactly."""
    stored = await evidence.put(ROW)
    assert [stored] == await evidence.load("scope", before_version=4)
    assert asdict(ROW) == {name: getattr(stored, name) for name in asdict(ROW)}


async def test_the_first_result_of_a_step_stands(evidence: EvidenceStore) -> None:
    """A read that runs twice gives the run what its first attempt found."""
    first = await evidence.put(ROW)
    again = replace(ROW, evidence_id="other", content=b"other", digest="sha256:other")
    assert first == await evidence.put(again)
    assert [first] == await evidence.load("scope", before_version=100)


async def test_attempts_that_race_agree(evidence: EvidenceStore) -> None:
    """Attempts at the same time all get the one result that stands."""
    rows = [replace(ROW, evidence_id=f"e{number}") for number in range(10)]
    assert 1 == len(set(await asyncio.gather(*(evidence.put(row) for row in rows))))


async def test_a_run_sees_its_own_evidence_of_before(evidence: EvidenceStore) -> None:
    """Evidence is given in order, up to the version that asks, and of this run only."""
    for version in (9, 3, 6):
        await evidence.put(replace(ROW, version=version))
    await evidence.put(replace(ROW, scope="other"))
    loaded = await evidence.load("scope", before_version=9)
    assert [3, 6] == [row.version for row in loaded]
    assert [] == await evidence.load("scope", before_version=3)


async def test_a_trail_leads_past_what_was_read_in_vain(evidence: EvidenceStore) -> None:
    """Of rows at the same version, by the same scope, a run's own are those that follow on."""
    calls = [replace(ROW, call="first"), replace(ROW, call="second", evidence_id="other")]
    first, vain = [await evidence.put(row) for row in calls]
    later = replace(ROW, version=6, evidence_id="later", call="third", after=first.trail)
    last = await evidence.put(later)
    rows = await evidence.load("scope", before_version=9)
    assert [first, vain, last] == sorted(rows, key=lambda row: row.call)
    assert [first, last] == followed(rows, last.trail)
    assert [vain] == followed(rows, vain.trail)
    assert [] == followed(rows, START)
    assert followed(rows, onward(last.trail, "gone", "sha256:gone")) is None
    assert [last.trail, vain.trail] == [
        along(START, [(row.evidence_id, row.digest) for row in rows])
        for rows in ([first, last], [vain])
    ]


async def test_receipts_are_found_by_their_digest(evidence: EvidenceStore) -> None:
    """Whole or abbreviated, and no other's."""
    row = await evidence.put(ROW)
    for digest in (ROW.digest, abbreviated(ROW.digest)):
        assert [row] == receipts_among([row], [digest])
    assert [] == receipts_among([row], [digest_of_bytes(b"another")])


async def test_a_copy_is_a_run_s_beginning(evidence: EvidenceStore, store: Store) -> None:
    """Rows of another scope are what the new one has read so far; what has gone, has gone there."""
    rows = [
        await evidence.put(replace(ROW, version=3, expires_at=await _now(store))),
        await evidence.put(replace(ROW, version=6, evidence_id="other", call="c", after="4" * 16)),
    ]
    await evidence.purge_expired()
    for _ in range(2):
        copies = await evidence.copy(rows, "target")
        assert [(3, None), (6, CONTENT)] == [(row.version, row.content) for row in copies]
        assert copies == followed(await evidence.load("target", 9), copies[-1].trail)
    assert [START, copies[0].trail] == [row.after for row in copies]
    assert [] == await evidence.copy([], "empty")


async def test_content_expires_and_the_rest_stays(evidence: EvidenceStore, store: Store) -> None:
    """Expired content reads as gone, before and after it is purged; everything else stays."""
    expired = replace(ROW, expires_at=await _now(store))
    stored = await evidence.put(expired)
    assert stored.content is None
    for removed in (1, 0):
        assert removed == await evidence.purge_expired()
        assert [stored] == await evidence.load("scope", before_version=4)
    assert (ROW.locator, ROW.digest, ROW.size_bytes) == (
        stored.locator,
        stored.digest,
        stored.size_bytes,
    )


async def test_a_purge_takes_only_what_is_due(evidence: EvidenceStore, store: Store) -> None:
    """Content that has not expired, or never does, stays; a purge is bounded."""
    now = await _now(store)
    for version in range(3):
        await evidence.put(replace(ROW, version=version, expires_at=now))
    await evidence.put(replace(ROW, version=3, expires_at=now + timedelta(days=30)))
    await evidence.put(replace(ROW, version=4))
    moment = now + timedelta(seconds=1)
    assert [2, 1, 0] == [await evidence.purge_expired(moment, limit=2) for _ in range(3)]
    loaded = await evidence.load("scope", before_version=5)
    assert [None, None, None, CONTENT, CONTENT] == [row.content for row in loaded]


async def test_empty_content_is_not_gone(evidence: EvidenceStore) -> None:
    """A tool that found nothing to say is told apart from content that expired."""
    stored = await evidence.put(replace(ROW, content=b"", size_bytes=0))
    assert b"" == stored.content
