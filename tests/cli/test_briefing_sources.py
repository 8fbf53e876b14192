"""Checks that what a reviewer is shown is what the run was given, or is said not to be there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import pytest

from tests.cli.samples import evidence_view, pending_view, state_view
from tests.cli.stored import in_store, url_in
from triage.cli.briefing import Gone, ModelText, ShownEvidence, ShownIssue, ShownRequest
from triage.cli.briefing_sources import (
    NOT_HERE,
    named_approvers,
    stored_evidence,
    stored_request,
    tracked_issue,
    writes_stopped,
)
from triage.cli.stores import look_into_store
from triage.contracts.canonical import digest_of, digest_of_bytes
from triage.contracts.request import TriageRequest
from triage.contracts.state import PendingView
from triage.policy.rules import BUILTIN_RULES
from triage.settings import Settings
from triage.storage.documents import SHARED, DocumentKind, DocumentStore
from triage.storage.engine import Store
from triage.storage.errors import StorageError
from triage.storage.evidence import EvidenceRow, EvidenceStore
from triage.storage.switches import Switches
from triage.trackers.local import LocalTracker

SCOPE = "scope"
CONTENT = b'{"owner":"backend-team"}'
PAST = datetime(2020, 1, 1, tzinfo=UTC)
POLICY = ""
Answer = TypeVar("Answer")
Work = Callable[[Store], Awaitable[Answer]]


def _row(**changes: object) -> EvidenceRow:
    fields: dict[str, object] = {
        "scope": SCOPE,
        "version": 3,
        "evidence_id": "owners-api",
        "tool": "lookup_component_owner",
        "arguments": b"{}",
        "source": "builtin",
        "locator": "builtin@02db005f4e56#owners-api",
        "digest": digest_of_bytes(CONTENT),
        "content": CONTENT,
        "size_bytes": len(CONTENT),
    }
    return EvidenceRow(**{**fields, **changes})  # type: ignore[arg-type]  # fields by name


@pytest.mark.parametrize(
    ("row", "shown"),
    [
        (_row(), CONTENT),
        (_row(expires_at=PAST), Gone("its content has expired")),
        (_row(scope="another run's"), Gone(NOT_HERE)),
        (_row(version=7), Gone(NOT_HERE)),
        (_row(content=b"{}"), Gone("what is stored is not what the run was given")),
    ],
    ids=["stored", "expired", "another run", "later", "another content"],
)
def test_evidence_is_shown_if_it_is_what_the_run_was_given(
    tmp_path: Path, row: EvidenceRow, shown: bytes | Gone
) -> None:
    """Content that is gone, of another run or not of this digest is never shown as this one's."""
    view = evidence_view(digest=digest_of_bytes(CONTENT))
    pending = pending_view()

    async def look(store: Store) -> tuple[ShownEvidence, ...]:
        await EvidenceStore(store).put(row)
        return await stored_evidence(store, SCOPE, state_view(pending, view), pending)

    assert (ShownEvidence(view, shown),) == in_store(tmp_path, look)


REQUEST = TriageRequest(
    request_id="R-1", title="It fails", body="Always", changed_paths=(), source="test"
)


@pytest.mark.parametrize(
    ("body", "scope", "expires_at", "shown"),
    [
        (REQUEST.model_dump_json().encode(), SCOPE, None, ShownRequest("It fails", "Always")),
        (REQUEST.model_dump_json().encode(), SCOPE, PAST, Gone("its content has expired")),
        (REQUEST.model_dump_json().encode(), "another run's", None, Gone(NOT_HERE)),
        (b"{}", SCOPE, None, Gone("another version of this program stored it")),
    ],
    ids=["stored", "expired", "another run", "unreadable"],
)
def test_the_text_that_the_model_was_given_is_shown(
    tmp_path: Path,
    body: bytes,
    scope: str,
    expires_at: datetime | None,
    shown: ShownRequest | Gone,
) -> None:
    """It is the very text that the model's last call named, or a reason why not."""

    async def look(store: Store) -> ShownRequest | Gone:
        documents = DocumentStore(store)
        digest = await documents.put(scope, DocumentKind.REQUEST, body, expires_at=expires_at)
        model = ModelText("final", "bug", "", (), (), "", request_digest=digest)
        return await stored_request(store, SCOPE, model)

    assert shown == in_store(tmp_path, look)


@pytest.mark.parametrize(
    ("body", "approvers"),
    [
        (BUILTIN_RULES.model_copy(update={"approvers": ("ann", "bob")}).body(), 2),
        (BUILTIN_RULES.body(), 0),
        (b"{}", 0),
    ],
    ids=["named", "anybody", "another version"],
)
def test_the_approvers_are_those_of_the_run_s_rules(
    tmp_path: Path, body: bytes, approvers: int
) -> None:
    """They are read by the digest that the run is held to; rules that are not there name nobody."""

    async def look(store: Store) -> tuple[tuple[str, ...], tuple[str, ...]]:
        digest = await DocumentStore(store).put(SHARED, DocumentKind.POLICY, body)
        return await named_approvers(store, digest), await named_approvers(store, "")

    assert (("ann", "bob")[:approvers], ()) == in_store(tmp_path, look)


def _covering(content_digest: str) -> PendingView:
    """Return an operation whose digest is over an issue's content, made up as the run does."""
    plain = pending_view()
    operation = digest_of([plain.tool, plain.target, ["bug"]])
    return pending_view(digest=digest_of([operation, plain.version, content_digest, POLICY]))


@pytest.mark.parametrize("changed", [False, True])
def test_an_issue_is_held_to_the_digest(tmp_path: Path, *, changed: bool) -> None:
    """Whoever approves is told whether the text that they see is the one that they approve."""

    async def look(store: Store) -> ShownIssue | Gone:
        tracker = LocalTracker(store)
        issue = await tracker.create_issue(
            "local", title="It fails", body="Always", author="", number="1"
        )
        pending = _covering(digest_of("another text") if changed else issue.content_digest)
        return await tracked_issue(Settings(), store, state_view(pending), pending)

    shown = in_store(tmp_path, look)
    assert isinstance(shown, ShownIssue)
    assert (not changed, "It fails") == (shown.is_covered, shown.issue.title)


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ({"tracker": "local", "repository": "local", "issue": "404"}, "has no such issue"),
        ({"tracker": "elsewhere", "repository": "r", "issue": "1"}, "cannot be reached from here"),
    ],
)
def test_an_issue_that_is_not_here_is_told(
    tmp_path: Path, target: dict[str, str], why: str
) -> None:
    """An unknown issue or tracker is a reason, and no error."""
    pending = pending_view(target=target)

    async def look(store: Store) -> ShownIssue | Gone:
        return await tracked_issue(Settings(), store, state_view(pending), pending)

    shown = in_store(tmp_path, look)
    assert isinstance(shown, Gone)
    assert why in shown.why


def test_only_what_stops_this_write_is_told(tmp_path: Path) -> None:
    """Everybody's switch and the tenant's own count, another tenant's does not."""

    async def look(store: Store) -> tuple[str | None, ...]:
        switches = Switches(store)
        await switches.stop("ann", "all of it")
        await switches.stop("ann", "abuse", tenant="acme")
        await switches.stop("ann", "abuse", tenant="other")
        await switches.stop("ann", "abuse", tenant="mine")
        await switches.allow("ann", tenant="mine")
        return tuple(stop.tenant for stop in await writes_stopped(store, "acme"))

    assert (None, "acme") == in_store(tmp_path, look)


def test_looking_makes_no_database(tmp_path: Path) -> None:
    """Whoever looks from a folder without one is told, and leaves none behind."""
    settings = Settings(home=tmp_path / "none", database_url=url_in(tmp_path / "none"))

    async def look() -> None:
        async with look_into_store(settings):
            pytest.fail("there is a store")

    with pytest.raises(StorageError, match="there is none yet"):
        asyncio.run(look())
    assert [] == list(tmp_path.iterdir())
