"""Deliveries as GitHub sends them, and a real server that takes them."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import socket
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx2
from sqlalchemy import Table, select

from tests.clock import PATIENCE_SECONDS
from triage.settings import Settings
from triage.storage.documents import Document, DocumentKind, DocumentStore
from triage.storage.engine import Store
from triage.storage.schema import deliveries, requests
from triage.web.serving import Companions, serve

SECRET: Final = "It's a Secret to Everybody"
PREVIOUS: Final = "the one that was used before"
STRANGER: Final = "somebody else's own secret"
FIXTURES: Final = Path(__file__).parents[2] / "fixtures"
EARLY, LATER, LATEST = (f"2026-01-01T00:00:0{second}Z" for second in range(3))


def an_event(
    action: str = "opened",
    *,
    title: str = "Orders fail",
    body: str | None = "Every POST fails with status 500.",
    at: str = EARLY,
    number: int = 101,
    sender: str = "reporter",
    repository: str = "acme/shop",
    **issue: Any,  # noqa: ANN401 - any JSON value
) -> dict[str, Any]:
    """A payload with what is looked at, and some that is not."""
    names = {"acme/shop": 1, "acme/other": 2}
    return {
        "action": action,
        "issue": {
            "number": number,
            "title": title,
            "body": body,
            "state": "open",
            "user": {"login": "reporter", "id": 7},
            "updated_at": at,
            "labels": [{"name": "unused"}],
            **issue,
        },
        "repository": {"id": names[repository], "full_name": repository, "private": False},
        "sender": {"login": sender, "type": "User"},
    }


def encoded(event: object) -> bytes:
    """Return a payload's bytes: nothing is escaped that need not be."""
    return json.dumps(event, ensure_ascii=False).encode()


def signature(body: bytes, secret: str = SECRET, kind: str = "sha256") -> str:
    """Sign as GitHub does."""
    return f"{kind}={hmac.new(secret.encode(), body, getattr(hashlib, kind)).hexdigest()}"


def headers_for(body: bytes, **changes: str | None) -> dict[str, str]:
    """Return what GitHub sends with a body; a change to None leaves a header out."""
    headers: Mapping[str, str | None] = {
        "Content-Type": "application/json",
        "X-GitHub-Event": "issues",
        "X-GitHub-Delivery": str(uuid.uuid4()),
        "X-Hub-Signature-256": signature(body),
        **{name.replace("_", "-"): value for name, value in changes.items()},
    }
    return {name: value for name, value in headers.items() if value is not None}


@dataclass(frozen=True)
class Hook:
    """A server that takes deliveries, and what it recorded."""

    url: str
    client: httpx2.AsyncClient
    store: Store

    async def post(self, body: bytes, **headers: str | None) -> httpx2.Response:
        """Deliver bytes, signed unless a header says otherwise."""
        return await self.client.post(
            f"{self.url}/webhooks/github", content=body, headers=headers_for(body, **headers)
        )

    async def send(self, event: object, **headers: str | None) -> httpx2.Response:
        """Deliver a payload."""
        return await self.post(encoded(event), **headers)

    async def get(self, path: str) -> httpx2.Response:
        """Ask for a page."""
        return await self.client.get(f"{self.url}{path}")

    async def requests(self) -> list[dict[str, Any]]:
        """Return the requests, oldest version first."""
        return await self._rows(requests, "version")

    async def deliveries(self) -> list[dict[str, Any]]:
        """Return the deliveries in the order in which they came."""
        return await self._rows(deliveries, "received_at")

    async def document(self, request_key: str) -> Any:  # noqa: ANN401 - any JSON value
        """Return what the run of a request is started with."""
        [row] = [row for row in await self.requests() if row["request_key"] == request_key]
        store = DocumentStore(self.store)
        found = await store.get(request_key, DocumentKind.REQUEST, row["document_digest"])
        assert isinstance(found, Document)
        return json.loads(found.body)

    async def _rows(self, table: Table, order: str) -> list[dict[str, Any]]:
        async with self.store.read() as connection:
            found = await connection.execute(select(table).order_by(table.c[order]))
            return [dict(row) for row in found.mappings()]


def hook_settings(home: Path, url: str, **changes: Any) -> Settings:  # noqa: ANN401 - any setting
    """Return the settings of a server that takes deliveries."""
    given = {
        "home": home,
        "database_url": url,
        "webhook_secret": SECRET,
        "webhook_secret_previous": PREVIOUS,
        "webhook_ignored_senders": ("triage-app[bot]",),
    }
    return Settings(**{**given, **changes})


@asynccontextmanager
async def serving(settings: Settings, companions: Companions | None = None) -> AsyncIterator[Hook]:
    """Serve on a free port, as `triage serve` does; what runs beside it only if it is given."""
    ready = asyncio.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        task = asyncio.create_task(serve(settings, listening, ready.set, companions))
        waiting = asyncio.create_task(ready.wait())
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            waiting.cancel()
            await task
        store = await Store.open(settings.database_url)
        try:
            async with httpx2.AsyncClient(timeout=PATIENCE_SECONDS) as client:
                yield Hook(url, client, store)
        finally:
            waiting.cancel()
            task.cancel()
            await asyncio.gather(task, waiting, return_exceptions=True)
            await store.close()
