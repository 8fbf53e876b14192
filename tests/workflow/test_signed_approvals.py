"""Outside local mode only a signature counts: over exactly what is pending, by one who may."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import JsonValue
from sqlalchemy import select
from temporalio.exceptions import ApplicationError

from tests.fixed_rules import rules_with
from tests.workflow.decisions import OPERATION, final, label
from tests.workflow.runs import Run, envelope, outcome, refusal_of
from tests.workflow.world import World, altered_world
from triage.contracts.approval import Verdict
from triage.contracts.canonical import short_hash
from triage.contracts.response import Status
from triage.contracts.state import PendingView
from triage.signing.files import KeyringFile
from triage.signing.keys import Keyring, SigningKey, new_key, signing_key
from triage.signing.tokens import Statement, audience, new_claims, sign
from triage.storage.operations import operation_key
from triage.storage.schema import audit

SCRIPT = [label(), final("mutation-receipt", labels=("bug",))]


@dataclass(frozen=True)
class Signed:
    """A world where unsigned approvals do not count, and one person's key."""

    world: World
    key: SigningKey
    ring: KeyringFile

    def under_another_name(self) -> Signed:
        """Return the same world with another key of the same person, under another name."""
        began = datetime.now(UTC) - timedelta(minutes=1)
        private, entry = new_key(self.key.subject, began, "other-name")
        self.ring.change(lambda keys: keys.with_key(entry))
        return replace(self, key=signing_key(private))

    def other_person(self) -> Signed:
        """Return the same world with another person's key."""
        return replace(self, key=_person(self.ring, "second-maintainer"))

    async def waiting(self) -> tuple[Run, PendingView]:
        """Start a run and return it once it waits."""
        run = await self.world.start(*SCRIPT, mode="approve", context={"author": "reporter"})
        return run, await run.waiting()

    def beforehand(self, run_id: str, pending: PendingView) -> dict[str, JsonValue]:
        """Sign the approval of a write before the run that wants it is started."""
        token = self.token(run_id, pending, Verdict.APPROVE)
        return {"version": pending.version, "approver": self.key.approver, "token": token}

    def token(
        self, run: Run | str, pending: PendingView, verdict: Verdict, key: SigningKey | None = None
    ) -> str:
        """Sign an answer to what is pending."""
        key = key or self.key
        statement = Statement(
            audience=audience(self.world.client.namespace),
            workflow_id=run if isinstance(run, str) else run.id,
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
async def opened_signing(
    world: World, folder: Path, approvals_required: int = 1
) -> AsyncIterator[Signed]:
    """Run workers that count signed approvals only, with one person's key in their ring."""
    ring = KeyringFile(folder / "keyring.json")
    services = replace(
        world.services,
        local_trust=False,
        keyring=ring,
        rules=rules_with(approvals_required=approvals_required),
    )
    async with altered_world(world, services=services) as signed_world:
        yield Signed(signed_world, _person(ring, "maintainer"), ring)


def _person(ring: KeyringFile, name: str) -> SigningKey:
    """Let a person's approvals count and return the key that they sign with."""
    private, entry = new_key(name, datetime.now(UTC) - timedelta(minutes=1))
    ring.change(lambda keys: keys.with_key(entry))
    return signing_key(private)


@pytest.mark.parametrize("way", ["signal", "update"])
async def test_a_signed_approval_writes_once(world: World, tmp_path: Path, way: str) -> None:
    """A signature over exactly what is pending is verified, and the write happens once."""
    async with opened_signing(world, tmp_path) as signed:
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
    async with opened_signing(world, tmp_path) as signed:
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
    async with opened_signing(world, tmp_path) as signed:
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
    async with opened_signing(world, tmp_path) as signed:
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


STARTED: dict[str, tuple[dict[str, JsonValue], str]] = {
    "no token": ({"token": None}, "unauthorised"),
    "another name": ({"approver": "somebody-else"}, "unauthorised"),
    "the author's name": ({"approver": "reporter"}, "unauthorised"),
    "no signature": ({"token": "a.b.c"}, "malformed"),
    "another version": ({"version": 4}, "stale_version"),
}


async def test_an_approval_signed_before_the_start_counts(world: World, tmp_path: Path) -> None:
    """A run that is started with a signature over exactly what it proposes writes once."""
    async with opened_signing(world, tmp_path) as signed:
        first, pending = await signed.waiting()
        name = f"{first.id}-again"
        approvals: JsonValue = {pending.operation_id: signed.beforehand(name, pending)}
        where: dict[str, JsonValue] = {"repository": first.id, "author": "reporter"}
        run = await signed.world.start(*SCRIPT, run_id=name, context=where, approvals=approvals)
        assert Status.COMPLETED is (await run.response()).status
        assert ["bug"] == await signed.world.written(first)
        assert [(pending.operation_id, True, True, "approved")] == await run.mutation_facts()
        await first.handle.terminate()


@pytest.mark.parametrize("name", STARTED)
async def test_no_other_approval_from_the_start_counts(
    world: World, tmp_path: Path, name: str
) -> None:
    """Unsigned, in another name, of another version: refused with its code, nothing written."""
    changes, code = STARTED[name]
    async with opened_signing(world, tmp_path) as signed:
        first, pending = await signed.waiting()
        second = f"{first.id}-again"
        given: JsonValue = {pending.operation_id: {**signed.beforehand(second, pending), **changes}}
        where: dict[str, JsonValue] = {"repository": first.id, "author": "reporter"}
        run = await signed.world.start(*SCRIPT, run_id=second, context=where, approvals=given)
        assert (Status.REVIEW_REQUIRED, "approval_required") == outcome(await run.response())
        assert [code] == await run.refusal_codes()
        assert [] == await signed.world.written(first)
        await first.handle.terminate()


async def test_a_bare_version_at_the_start_is_no_signature(world: World, tmp_path: Path) -> None:
    """Where unsigned approvals do not count, those from the start do not, either."""
    async with opened_signing(world, tmp_path) as signed:
        run = await signed.world.start(*SCRIPT, approvals={OPERATION: 3})
        assert (Status.REVIEW_REQUIRED, "approval_required") == outcome(await run.response())
        assert ["unauthorised"] == await run.refusal_codes()


async def test_where_two_must_sign_one_person_is_one(world: World, tmp_path: Path) -> None:
    """The same person twice leaves the write pending; a second person's signature sends it."""
    async with opened_signing(world, tmp_path, approvals_required=2) as signed:
        run, pending = await signed.waiting()
        assert 2 == pending.approvals_required
        await run.signal("approve", signed.signed(run, pending))
        await run.reaches(lambda s: s.pending is not None and bool(s.pending.approved_by))
        again = await refusal_of(run.update({**signed.signed(run, pending), "verdict": "approve"}))
        assert "duplicate" == again
        assert [] == await signed.world.written(run)
        other = signed.other_person()
        answer = await run.update({**other.signed(run, pending), "verdict": "approve"})
        assert answer.accepted
        assert Status.COMPLETED is (await run.response()).status
        assert ["bug"] == await signed.world.written(run)


@pytest.mark.parametrize("who", ["another person", "the same person"])
@pytest.mark.parametrize("way", ["signal", "update"])
async def test_where_two_must_sign_one_rejection_is_enough(
    world: World, tmp_path: Path, who: str, way: str
) -> None:
    """After one signed approval anybody's signed no decides, also that of who thinks again."""
    async with opened_signing(world, tmp_path, approvals_required=2) as signed:
        run, pending = await signed.waiting()
        await run.update({**signed.signed(run, pending), "verdict": "approve"})
        person = signed.other_person() if who == "another person" else signed
        review = person.signed(run, pending, Verdict.REJECT)
        if way == "signal":
            await run.signal("reject", review)
        else:
            assert (await run.update({**review, "verdict": "reject"})).accepted
        assert (Status.REVIEW_REQUIRED, "approval_required") == outcome(await run.response())
        assert [] == await signed.world.written(run)
        kinds = await audited(signed.world, run)
        assert ["approval.counted", "approval.recorded"] == kinds


async def audited(world: World, run: Run) -> list[str]:
    """Return what the audit trail says of a run's approvals."""
    key = operation_key(
        short_hash("default", run.id, run.handle.first_execution_run_id or ""), OPERATION
    )
    async with world.services.store.read() as connection:
        query = select(audit.c.kind).where(audit.c.subject == key).order_by(audit.c.seq)
        return [*(await connection.execute(query)).scalars()]


async def test_where_two_must_approve_a_start_cannot_bring_one(
    world: World, tmp_path: Path
) -> None:
    """An approval from the start is one person's at most, so it does not count there."""
    async with opened_signing(world, tmp_path, approvals_required=2) as signed:
        first, pending = await signed.waiting()
        name = f"{first.id}-again"
        approvals: JsonValue = {pending.operation_id: signed.beforehand(name, pending)}
        run = await signed.world.start(
            *SCRIPT, run_id=name, context={"repository": first.id}, approvals=approvals
        )
        assert (Status.REVIEW_REQUIRED, "approval_required") == outcome(await run.response())
        assert ["unauthorised"] == await run.refusal_codes()
        await first.handle.terminate()


class Unreadable(KeyringFile):
    """A keyring whose reading fails in a way that nobody thought of."""

    def load(self) -> Keyring:
        """Fail for good."""
        raise ApplicationError("no luck", non_retryable=True)


async def test_a_signature_that_cannot_be_verified_does_not_end_the_wait(
    world: World, tmp_path: Path
) -> None:
    """It does not count, by signal or update, and the run still waits for one that does."""
    async with opened_signing(world, tmp_path) as signed:
        services = replace(signed.world.services, keyring=Unreadable(tmp_path / "keyring.json"))
        async with altered_world(world, services=services) as broken:
            mute = replace(signed, world=broken)
            run, pending = await mute.waiting()
            review = mute.signed(run, pending)
            await run.signal("approve", review)
            await run.reaches(lambda found: found.refusals_total == 1)
            answer = await run.update({**review, "verdict": "approve"})
            assert (False, "unauthorised") == (answer.accepted, answer.code)
            assert ["unauthorised"] == await run.refusal_codes()
            assert await run.pending() is not None
            assert [] == await broken.written(run)
            await run.handle.terminate()


async def test_a_person_with_two_keys_blocks_nobody(world: World, tmp_path: Path) -> None:
    """The same person under another name is a duplicate that leaves no decision behind."""
    async with opened_signing(world, tmp_path, approvals_required=2) as signed:
        run, pending = await signed.waiting()
        await run.update({**signed.signed(run, pending), "verdict": "approve"})
        again = signed.under_another_name()
        answer = await run.update({**again.signed(run, pending), "verdict": "approve"})
        assert (False, "duplicate") == (answer.accepted, answer.code)
        assert await run.pending() is not None
        other = signed.other_person()
        answer = await run.update({**other.signed(run, pending), "verdict": "approve"})
        assert answer.accepted
        assert Status.COMPLETED is (await run.response()).status
        kinds = await audited(signed.world, run)
        assert ["approval.counted", "approval.recorded"] == kinds[:2]


async def test_an_author_has_no_other_name(world: World, tmp_path: Path) -> None:
    """Who opened the issue may not approve it with a key under another name, nor by a claim."""
    async with opened_signing(world, tmp_path) as signed:
        claimed = {"author": signed.key.approver}
        run = await signed.world.start(*SCRIPT, mode="approve", context=claimed)
        pending = await run.waiting()
        again = signed.under_another_name()
        answer = await run.update({**again.signed(run, pending), "verdict": "approve"})
        assert (False, "unauthorised") == (answer.accepted, answer.code)
        known = {"repository": run.id, "author": "somebody-else"}
        second = await signed.world.start(*SCRIPT, mode="approve", context=known)
        review = signed.signed(second, await second.waiting())
        code = await refusal_of(second.update({**review, "verdict": "approve"}))
        assert "unauthorised" == code
        assert [] == await signed.world.written(run)
        await run.handle.terminate()
        await second.handle.terminate()


async def test_trust_that_was_withdrawn_holds_for_runs_that_wait(
    world: World, tmp_path: Path
) -> None:
    """A run that began where unsigned approvals count writes nothing once they do not any more."""
    queue = f"queue-{uuid.uuid4().hex}"
    async with altered_world(world, queue=queue) as trusting:
        run = await trusting.start(*SCRIPT, mode="approve")
        pending = await run.waiting()
    services = replace(
        world.services, local_trust=False, keyring=KeyringFile(tmp_path / "keyring.json")
    )
    async with altered_world(world, services=services, queue=queue) as strict:
        await run.signal("approve", envelope(pending))
        assert (Status.REVIEW_REQUIRED, "policy_block") == outcome(await run.response())
        assert [] == await strict.written(run)
