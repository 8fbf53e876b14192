"""Outside local mode only a signature counts: over exactly what is pending, by one who may."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import JsonValue

from tests.workflow.decisions import final, label
from tests.workflow.runs import Run, envelope, outcome
from tests.workflow.world import World, altered_world
from triage.contracts.approval import Verdict
from triage.contracts.response import Status
from triage.contracts.state import PendingView
from triage.signing.files import KeyringFile
from triage.signing.keys import SigningKey, new_key, signing_key
from triage.signing.tokens import Statement, audience, new_claims, sign

SCRIPT = [label(), final("mutation-receipt", labels=("bug",))]


@dataclass(frozen=True)
class Signed:
    """A world where unsigned approvals do not count, and one person's key."""

    world: World
    key: SigningKey

    async def waiting(self) -> tuple[Run, PendingView]:
        """Start a run and return it once it waits."""
        run = await self.world.start(*SCRIPT, mode="approve", context={"author": "reporter"})
        return run, await run.waiting()

    def token(
        self, run: Run, pending: PendingView, verdict: Verdict, key: SigningKey | None = None
    ) -> str:
        """Sign an answer to what is pending."""
        key = key or self.key
        statement = Statement(
            audience=audience(self.world.client.namespace),
            workflow_id=run.id,
            operation_id=pending.operation_id,
            version=pending.version,
            digest=pending.digest,
            verdict=verdict,
            approver=key.approver,
        )
        return sign(new_claims(statement, key, datetime.now(UTC)), key)

    def signed(
        self, run: Run, pending: PendingView, verdict: Verdict = Verdict.APPROVE
    ) -> dict[str, JsonValue]:
        """Return a signed envelope."""
        token = self.token(run, pending, verdict)
        return {
            **envelope(pending),
            "approver": self.key.approver,
            "digest": pending.digest,
            "token": token,
        }


@asynccontextmanager
async def _signing(world: World, folder: Path) -> AsyncIterator[Signed]:
    ring = KeyringFile(folder / "keyring.json")
    private, entry = new_key("maintainer", datetime.now(UTC) - timedelta(minutes=1))
    ring.change(lambda keys: keys.with_key(entry))
    services = replace(world.services, local_trust=False, keyring=ring)
    async with altered_world(world, services=services) as signed_world:
        yield Signed(signed_world, signing_key(private))


@pytest.mark.parametrize("way", ["signal", "update"])
async def test_a_signed_approval_writes_once(world: World, tmp_path: Path, way: str) -> None:
    """A signature over exactly what is pending is verified, and the write happens once."""
    async with _signing(world, tmp_path) as signed:
        run, pending = await signed.waiting()
        review = signed.signed(run, pending)
        if way == "signal":
            await run.signal("approve", review)
        else:
            assert (await run.update({**review, "verdict": "approve"})).accepted
        assert Status.COMPLETED is (await run.response()).status
        assert ["bug"] == await signed.world.written(run)


@pytest.mark.parametrize("way", ["signal", "update"])
async def test_a_signed_rejection_ends_in_review(world: World, tmp_path: Path, way: str) -> None:
    """A signed no counts as a signed yes does, and nothing is written."""
    async with _signing(world, tmp_path) as signed:
        run, pending = await signed.waiting()
        review = signed.signed(run, pending, Verdict.REJECT)
        if way == "signal":
            await run.signal("reject", review)
        else:
            assert (await run.update({**review, "verdict": "reject"})).accepted
        assert (Status.REVIEW_REQUIRED, "approval_required") == outcome(await run.response())
        assert [] == await signed.world.written(run)


BROKEN: dict[str, tuple[dict[str, JsonValue], str]] = {
    "no token": ({"token": None}, "unauthorised"),
    "no digest": ({"digest": None}, "digest_mismatch"),
    "another name": ({"approver": "somebody-else"}, "unauthorised"),
    "the author's name": ({"approver": "reporter"}, "unauthorised"),
    "no signature": ({"token": "a.b.c"}, "malformed"),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_what_is_not_properly_signed_is_refused(
    world: World, tmp_path: Path, name: str
) -> None:
    """A review without a good signature is refused with its code, and the run still waits."""
    changes, code = BROKEN[name]
    async with _signing(world, tmp_path) as signed:
        run, pending = await signed.waiting()
        review = signed.signed(run, pending) | changes
        await run.signal("approve", review)
        state = await run.reaches(lambda found: found.refusals_total == 1)
        assert [code] == [refusal.code for refusal in state.refusals]
        assert state.pending is not None
        await run.signal("reject", signed.signed(run, pending, Verdict.REJECT))
        await run.response()
        assert [] == await signed.world.written(run)


async def test_a_token_of_another_run_is_refused(world: World, tmp_path: Path) -> None:
    """A signature for one run does not approve the same write in another."""
    async with _signing(world, tmp_path) as signed:
        first, pending = await signed.waiting()
        second, other = await signed.waiting()
        stolen = signed.signed(first, pending) | {"digest": other.digest}
        await second.signal("approve", stolen)
        state = await second.reaches(lambda found: found.refusals_total == 1)
        assert "accepted" not in [refusal.code for refusal in state.refusals]
        assert state.pending is not None
        await first.signal("approve", signed.signed(first, pending))
        assert Status.COMPLETED is (await first.response()).status
        assert [] == await signed.world.written(second)
        await second.handle.terminate()
