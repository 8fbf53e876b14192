"""A worker that counts nothing but signatures, and people who sign what a run waits for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from pydantic import JsonValue

from tests.workflow.decisions import Script, final, label
from tests.workflow.runs import Run, envelope
from tests.workflow.world import World, altered_world
from triage.contracts.approval import Verdict
from triage.contracts.state import PendingView
from triage.signing.files import KeyringFile
from triage.signing.keys import SigningKey, new_key, signing_key
from triage.signing.tokens import Claims, Statement, audience, new_claims, sign

SCRIPT: Final[Script] = [label(), final("mutation-receipt", labels=("bug",))]
LONG_AGO: Final = timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class Signed:
    """A world where unsigned approvals do not count, its keyring, and one person who may decide."""

    world: World
    ring: KeyringFile
    key: SigningKey

    async def waiting(
        self,
        *script: JsonValue,
        **options: Any,  # noqa: ANN401 - any options at all
    ) -> Asked:
        """Start a run and return it once it waits."""
        run = await self.world.start(*(script or SCRIPT), mode="approve", **options)
        return Asked(signed=self, run=run, pending=await run.waiting())

    def person(self, approver: str, subject: str) -> SigningKey:
        """Give somebody a key that has counted for a day."""
        private, entry = new_key(subject, datetime.now(UTC) - LONG_AGO, approver)
        self.ring.change(lambda keys: keys.with_key(entry))
        return signing_key(private)

    def forget(self, key: SigningKey) -> None:
        """Take a key out of the keyring, as for somebody who may decide no more."""
        self.ring.change(lambda keys: keys.without(key.kid))


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A run that waits, and what it waits for."""

    signed: Signed
    run: Run
    pending: PendingView

    def claims(
        self,
        key: SigningKey | None = None,
        verdict: Verdict = Verdict.APPROVE,
        **changes: Any,  # noqa: ANN401 - any claim
    ) -> Claims:
        """What `key`'s owner says of what is pending, with some claims changed."""
        key = key or self.signed.key
        statement = Statement(
            audience=audience(self.signed.world.client.namespace),
            workflow_id=self.run.id,
            operation_id=self.pending.operation_id,
            version=self.pending.version,
            digest=self.pending.digest,
            verdict=verdict,
            approver=key.approver,
        )
        # A clock is behind now and then, and the database's clock decides.
        now = datetime.now(UTC) - timedelta(seconds=2)
        return new_claims(statement, key, now).model_copy(update=changes)

    def token(self, key: SigningKey | None = None, **changes: Any) -> str:  # noqa: ANN401 - any claim
        """Sign what `claims` says."""
        return sign(self.claims(key, **changes), key or self.signed.key)

    def envelope(self, token: str | None, **changes: JsonValue) -> dict[str, JsonValue]:
        """The envelope of what is pending, with a token and some fields changed."""
        mine: dict[str, JsonValue] = {"approver": self.signed.key.approver, "token": token}
        return {**envelope(self.pending), **mine, **changes}

    def review(self, token: str | None, **changes: JsonValue) -> dict[str, JsonValue]:
        """The same, as the argument of the `review` update: an approval unless changed."""
        return {"verdict": "approve", **self.envelope(token, **changes)}


@asynccontextmanager
async def opened_signed(world: World, folder: Path) -> AsyncIterator[Signed]:
    """Run a worker beside `world` that looks into a keyring, with one key in it."""
    ring = KeyringFile(folder / "keyring.json")
    private, entry = new_key("id-of-maintainer", datetime.now(UTC) - LONG_AGO, "maintainer")
    ring.change(lambda keys: keys.with_key(entry))
    services = replace(world.services, local_trust=False, keyring=ring)
    async with altered_world(world, services=services) as signing:
        yield Signed(world=signing, ring=ring, key=signing_key(private))
