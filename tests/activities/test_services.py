"""What activities share: scripts are read once while they are in use, and only so many are kept."""

from __future__ import annotations

from dataclasses import replace

from activities.services import SCRIPTS_KEPT, Services
from triage.contracts.canonical import canonical_json
from triage.storage.documents import (
    SHARED,
    Document,
    DocumentKind,
    DocumentStore,
    Missing,
    Unavailable,
)


class Counted(DocumentStore):
    """A document store that counts what is read from it."""

    def __init__(self, inner: DocumentStore) -> None:
        super().__init__(inner._store)
        self.reads = 0

    async def get(
        self, scope: str, kind: DocumentKind, digest: str
    ) -> Document | Unavailable | Missing:
        """Count, and read."""
        self.reads += 1
        return await super().get(scope, kind, digest)


async def test_a_script_is_read_once_while_it_is_in_use(services: Services) -> None:
    """Every step of a run asks for its script; the database is asked at the first."""
    documents = Counted(services.documents)
    services = replace(services, documents=documents)
    digests = [
        await documents.put(SHARED, DocumentKind.SCRIPT, canonical_json([{"step": n}]))
        for n in range(SCRIPTS_KEPT + 1)
    ]
    for digest in [*digests[:-1], digests[0], digests[0]]:
        assert await services.load_script(digest) is not None
    assert SCRIPTS_KEPT == documents.reads
    assert [{"step": SCRIPTS_KEPT}] == await services.load_script(digests[-1])
    # What was not asked for longest had to go; what was asked for since is there.
    assert [{"step": 0}] == await services.load_script(digests[0])
    assert SCRIPTS_KEPT + 1 == documents.reads
    assert [{"step": 1}] == await services.load_script(digests[1])
    assert SCRIPTS_KEPT + 2 == documents.reads


async def test_a_script_that_is_not_there_is_looked_for_again(services: Services) -> None:
    """A script may be stored after somebody asked for it in vain."""
    body = canonical_json([{"step": 1}])
    digest = await services.documents.put("elsewhere", DocumentKind.SCRIPT, body)
    assert await services.load_script(digest) is None
    await services.documents.put(SHARED, DocumentKind.SCRIPT, body)
    assert [{"step": 1}] == await services.load_script(digest)
