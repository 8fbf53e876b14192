"""Verifying a signed approval: what counts is kept once, and nothing of a token leaves."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update
from temporalio.testing import ActivityEnvironment

from activities.approvals import ApprovalActivities
from tests.conftest_storage import postgres_server, store, store_url
from triage.contracts.approval import Verdict
from triage.contracts.canonical import canonical_json, digest_of
from triage.contracts.verification import VerifyRequest, VerifyResult
from triage.signing.files import KeyringFile
from triage.signing.keys import Keyring, SigningKey, new_key, signing_key
from triage.signing.tokens import Statement, audience, new_claims, sign
from triage.storage.approvals import ApprovalRow, Approvals, ApprovalSource
from triage.storage.engine import Store
from triage.storage.ledger import Ledger
from triage.storage.operations import OperationRow, Reserved, operation_key
from triage.storage.schema import approvals

__all__ = ["postgres_server", "store", "store_url"]

SCOPE, NEXT_SCOPE = "a" * 32, "b" * 32
DIGEST, OPERATION_DIGEST = digest_of("seen"), digest_of("sent")
RUN = replace(ActivityEnvironment.default_info(), workflow_id="triage-101", namespace="default")


def _person(name: str) -> tuple[SigningKey, Any]:
    private, entry = new_key(f"id-of-{name}", datetime.now(UTC) - timedelta(days=1), name)
    return signing_key(private), entry


ALICE, ALICE_ENTRY = _person("alice")
BOB, BOB_ENTRY = _person("bob")


def _token(key: SigningKey = ALICE, verdict: Verdict = Verdict.APPROVE, **changes: Any) -> str:  # noqa: ANN401 - any claim
    statement = Statement(
        audience=audience("default"),
        workflow_id="triage-101",
        operation_id="op-1",
        version=3,
        digest=DIGEST,
        verdict=verdict,
        approver=key.approver,
    )
    claims = new_claims(statement, key, datetime.now(UTC) - timedelta(seconds=2))
    return sign(claims.model_copy(update=changes), key)


def _request(token: str, key: SigningKey = ALICE, **changes: Any) -> VerifyRequest:  # noqa: ANN401 - any field
    request = VerifyRequest(
        scope=SCOPE,
        tenant="default",
        operation_id="op-1",
        version=3,
        operation_digest=OPERATION_DIGEST,
        approval_digest=DIGEST,
        verdict=Verdict.APPROVE,
        approver=key.approver,
        token=token,
        use_by="2099-01-01T00:00:00+00:00",
    )
    return request.model_copy(update=changes)


@dataclass(frozen=True)
class Desk:
    """The activity over one store and one ring."""

    store: Store
    ring: KeyringFile
    activities: ApprovalActivities

    async def ask(self, request: VerifyRequest) -> VerifyResult:
        """Run the activity as Temporal would, for the run `triage-101`."""
        environment = ActivityEnvironment()
        environment.info = RUN
        answer: VerifyResult = await environment.run(self.activities.verify, request)
        return answer

    async def code(self, request: VerifyRequest) -> tuple[str, str]:
        """Ask, and return only the code and the detail."""
        answer = await self.ask(request)
        assert answer.accepted == (answer.code == "accepted")
        return answer.code, answer.detail

    async def stands(self, scope: str = SCOPE) -> ApprovalRow | None:
        """Return the decision that is kept."""
        return await Approvals(self.store).get(operation_key(scope, "op-1"), 3)


@pytest.fixture
def desk(store: Store, tmp_path: Path) -> Desk:
    """A desk at which Alice and Bob may approve."""
    ring = KeyringFile(tmp_path / "keyring.json")
    ring.change(lambda _: Keyring.of([ALICE_ENTRY, BOB_ENTRY]))
    return Desk(store, ring, ApprovalActivities(store, ring))


async def _consume(desk: Desk, scope: str = SCOPE) -> None:
    """Use the decision for a write, as the ledger does."""
    kept = await desk.stands(scope)
    assert kept
    row = OperationRow(
        operation_key=kept.operation_key,
        scope=scope,
        tenant="default",
        workflow_id="triage-101",
        operation_id="op-1",
        version=3,
        operation_type="apply_labels",
        digest=OPERATION_DIGEST,
        target="{}",
        arguments="[]",
    )
    ledger = Ledger(desk.store)
    approval = replace(kept, token_id=None, source=ApprovalSource.UPDATE)
    answer = await ledger.reserve(row, approval)
    assert isinstance(answer, Reserved), answer
    assert await ledger.dispatch(row.operation_key, answer.epoch)


async def test_a_signed_approval_is_kept_as_the_decision(desk: Desk) -> None:
    """What counts is recorded with its owner's stable id and its single use."""
    answer = await desk.ask(_request(_token()))
    assert ("accepted", "alice") == (answer.code, answer.approver)
    kept = await desk.stands()
    assert kept
    assert ("id-of-alice", ApprovalSource.TOKEN) == (kept.approver, kept.source)
    assert (answer.token_id, DIGEST, OPERATION_DIGEST) == (
        kept.token_id,
        kept.digest,
        kept.operation_digest,
    )
    assert answer.expires_at == "2099-01-01T00:00:00+00:00"


async def test_a_retried_attempt_gets_the_same_answer(desk: Desk) -> None:
    """Temporal may run the activity again after it recorded the decision."""
    request = _request(_token())
    assert await desk.ask(request) == await desk.ask(request)


async def test_a_used_token_is_refused(desk: Desk) -> None:
    """The ledger uses the kept decision up, and from then on its token is a replay."""
    request = _request(_token())
    await desk.ask(request)
    await _consume(desk)
    assert ("duplicate", "token_replayed") == await desk.code(request)


async def test_a_token_is_not_used_in_a_second_run(desk: Desk) -> None:
    """A token that decided in one run is refused in the next one of the same name."""
    token = _token()
    await desk.ask(_request(token))
    assert ("duplicate", "token_replayed") == await desk.code(_request(token, scope=NEXT_SCOPE))
    assert await desk.stands(NEXT_SCOPE) is None


async def test_a_token_that_names_its_scope_counts_in_no_other(desk: Desk) -> None:
    """Whoever signs for one run of a workflow has said nothing about the next."""
    token = _token(scope=SCOPE)
    assert ("not_pending", "other_run") == await desk.code(_request(token, scope=NEXT_SCOPE))
    assert ("accepted", "") == await desk.code(_request(token))


async def test_the_first_decision_wins(desk: Desk) -> None:
    """A rejection after an approval of the same operation is answered as a duplicate."""
    assert ("accepted", "") == await desk.code(_request(_token()))
    rejection = _request(_token(BOB, Verdict.REJECT), BOB, verdict=Verdict.REJECT)
    assert ("duplicate", "decided_otherwise") == await desk.code(rejection)
    kept = await desk.stands()
    assert kept
    assert "approve" == kept.verdict


async def test_many_answers_at_once_leave_one_decision(desk: Desk) -> None:
    """Of parallel approvals and rejections one verdict stands, and only its like are accepted."""
    requests = [
        _request(_token(key, verdict), key, verdict=verdict)
        for key in (ALICE, BOB)
        for verdict in (Verdict.APPROVE, Verdict.REJECT) * 5
    ]
    answers = await asyncio.gather(*(desk.ask(request) for request in requests))
    kept = await desk.stands()
    assert kept
    for request, answer in zip(requests, answers, strict=True):
        assert answer.accepted == (request.verdict.value == kept.verdict.value)
    assert 1 == sum(answer.token_id == kept.token_id for answer in answers)


async def test_a_second_approval_leans_on_the_first(desk: Desk) -> None:
    """After a reset a run asks again; a new token finds the decision that stands."""
    first = await desk.ask(_request(_token()))
    second = await desk.ask(_request(_token(BOB), BOB))
    kept = await desk.stands()
    assert kept
    assert second.accepted
    assert (first.token_id, "id-of-alice") == (kept.token_id, kept.approver)


async def test_a_revoked_decision_is_not_given_again(desk: Desk) -> None:
    """A decision that was taken back cannot be had by sending its token once more."""
    request = _request(_token())
    await desk.ask(request)
    async with desk.store.write() as connection:
        await connection.execute(update(approvals).values(revoked_at=datetime.now(UTC)))
    assert ("unauthorised", "revoked") == await desk.code(request)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"version": 4}, ("stale_version", "other_version")),
        ({"operation_id": "op-2"}, ("not_pending", "other_operation")),
        ({"approval_digest": digest_of("other")}, ("digest_mismatch", "other_digest")),
        ({"verdict": Verdict.REJECT}, ("unauthorised", "other_verdict")),
        ({"approver": "bob"}, ("unauthorised", "other_approver")),
        ({"token": "a.b.c"}, ("malformed", "not_canonical")),
    ],
)
async def test_what_is_refused_is_not_kept(
    desk: Desk, changes: dict[str, Any], expected: tuple[str, str]
) -> None:
    """A refusal names its code and check, and leaves no decision."""
    assert expected == await desk.code(_request(_token()).model_copy(update=changes))
    assert await desk.stands() is None


async def test_a_run_or_namespace_cannot_be_claimed(desk: Desk) -> None:
    """Run and namespace are the activity's own, not the argument's."""
    assert ("not_pending", "other_workflow") == await desk.code(
        _request(_token(workflow_id="triage-102"))
    )
    elsewhere = _token(aud=audience("staging"))
    assert ("unauthorised", "other_audience") == await desk.code(_request(elsewhere))


async def test_the_databases_clock_decides(store: Store, store_url: str, tmp_path: Path) -> None:
    """A token has expired when the database's clock says so, whatever a worker's clock says."""
    ring = KeyringFile(tmp_path / "keyring.json")
    ring.change(lambda _: Keyring.of([ALICE_ENTRY]))
    later = await Store.open(store_url, clock_offset=timedelta(minutes=15))
    late = Desk(later, ring, ApprovalActivities(later, ring))
    assert ("expired", "expired") == await late.code(_request(_token()))
    earlier = await Store.open(store_url, clock_offset=timedelta(seconds=-30))
    early = Desk(earlier, ring, ApprovalActivities(earlier, ring))
    assert ("unauthorised", "not_yet_valid") == await early.code(_request(_token()))
    lenient = ApprovalActivities(earlier, ring, skew=timedelta(minutes=1))
    assert ("accepted", "") == await replace(early, activities=lenient).code(_request(_token()))
    await later.close()
    await earlier.close()


async def test_keys_are_rotated_without_a_restart(desk: Desk) -> None:
    """A key counts as soon as it is in the ring, and not once it is out of it."""
    carol, entry = _person("carol")
    request = _request(_token(carol), carol)
    assert ("unauthorised", "unknown_key") == await desk.code(request)
    desk.ring.change(lambda ring: ring.with_key(entry))
    assert ("accepted", "") == await desk.code(request)
    desk.ring.change(lambda ring: ring.without(entry.kid))
    assert ("unauthorised", "unknown_key") == await desk.code(request)


@pytest.mark.parametrize("content", [None, b"[", b"[{}]"])
async def test_without_a_usable_ring_nothing_counts(
    desk: Desk, tmp_path: Path, content: bytes | None
) -> None:
    """A ring that is missing or damaged refuses every approval; the run goes on waiting."""
    path = tmp_path / "keyring.json"
    path.unlink() if content is None else path.write_bytes(content)
    assert ("unauthorised", "keyring_unusable") == await desk.code(_request(_token()))


async def test_nothing_of_a_token_or_key_leaves(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither answers nor logs nor the argument's own text hold a part of a token."""
    caplog.set_level(logging.DEBUG)
    good = _token()
    requests = [_request(good), _request(good, scope=NEXT_SCOPE), _request(good[:-2] + "AA")]
    answers = [await desk.ask(request) for request in requests]
    shown = "".join(map(repr, (*answers, *requests))) + caplog.text
    parts: Sequence[str] = [*good.split("."), good[-20:-2]]
    assert not [part for part in parts if part in shown]
    assert "a signed approval was refused: token_replayed" in caplog.text
    assert b'"token":' in canonical_json(requests[0].model_dump(mode="json"))
