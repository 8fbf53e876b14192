"""An approval by a service's word: kept with whose it is, and no write without their rights."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from temporalio.testing import ActivityEnvironment

from activities.approvals import NOT_ITSELF, ApprovalActivities
from activities.entitled import NOBODY_KNOWS, NOT_ENTITLED
from activities.label_write import WRITES_STOPPED
from activities.labels import OTHER_TENANT
from activities.signers import KEY_GONE, NO_RING, why_not_signed_now
from tests.activities.conftest import services_on
from tests.activities.scripted_tracker import ScriptedTracker
from tests.activities.writing import Writing
from tests.still_store import StillStore
from triage.contracts.approval import Verdict
from triage.contracts.canonical import digest_of
from triage.contracts.payloads import WriteOutcome, WriteRequest
from triage.contracts.verification import VerifyRequest, VerifyResult
from triage.policy.rules import BUILTIN_RULES
from triage.signing.files import KeyringFile
from triage.signing.keys import Keyring, new_key, signing_key
from triage.signing.tokens import Statement, audience, sign, vouched_claims
from triage.storage.approvals import Approvals
from triage.storage.operations import operation_key
from triage.storage.switches import Switches
from triage.storage.vouchers import Voucher, vouchers_of
from triage.trackers.base import TrackerRefused, TrackerTimeout
from triage.trackers.people import Person, Right

_PRIVATE, ENTRY = new_key("serve", datetime.now(UTC) - timedelta(days=1), vouches_for=("scripted",))
KEY = signing_key(_PRIVATE)
OCTOCAT = Person(id="583231", login="octocat", is_human=True, right=Right.WRITE)


@dataclass
class KnowingTracker(ScriptedTracker):
    """A tracker that knows one person, or says why it does not."""

    answer: Person | Exception | None = field(default=OCTOCAT)
    people_asked: list[tuple[str, str]] = field(default_factory=list)

    async def person(self, repository: str, login: str) -> Person | None:
        """See `KnowsPeople.person`."""
        self.people_asked.append((repository, login))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


async def _approve(
    store: StillStore, request: WriteRequest, ring: KeyringFile, **changes: object
) -> str:
    """Verify a comment's approval of a write, as its run asks for it."""
    operation = request.operation
    statement = Statement(
        audience=audience("default"),
        workflow_id="triage-1",
        operation_id=operation.operation_id,
        version=operation.version,
        digest=operation.approval_digest,
        verdict=Verdict.APPROVE,
        approver="octocat",
    )
    token = sign(vouched_claims(statement, "scripted", "583231", store.moment), KEY)
    question = VerifyRequest(
        scope=request.scope,
        tenant="default",
        operation_id=operation.operation_id,
        version=operation.version,
        operation_digest=operation.digest,
        approval_digest=operation.approval_digest,
        verdict=Verdict.APPROVE,
        approver="octocat",
        token=token,
    ).model_copy(update=changes)
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, workflow_id="triage-1", namespace="default")
    activities = ApprovalActivities(store, ring)
    answer: VerifyResult = await environment.run(activities.verify, question)
    return answer.detail or answer.code


@dataclass(frozen=True)
class Desk:
    """A write that only signed approvals allow, and the tracker that it goes to."""

    writing: Writing
    tracker: KnowingTracker
    ring: KeyringFile
    request: WriteRequest

    async def approve(self, **changes: object) -> str:
        """Approve the write by a comment."""
        return await _approve(self.writing.store, self.request, self.ring, **changes)


def _under(request: WriteRequest, rules: str) -> WriteRequest:
    """Return a write under pinned rules, which its approval covers."""
    operation = request.operation
    covered = [operation.digest, operation.version, request.content_digest, rules]
    shown = operation.model_copy(update={"approval_digest": digest_of(covered)})
    return request.model_copy(update={"policy_digest": rules, "operation": shown})


@pytest.fixture
async def desk(store: StillStore, tmp_path: Path) -> Desk:
    """A desk at which one service may vouch."""
    ring = KeyringFile(tmp_path / "keyring.json")
    ring.change(lambda _: Keyring.of([ENTRY]))
    tracker = KnowingTracker()
    services = replace(services_on(store, tracker), local_trust=False, keyring=ring)
    writing = Writing(tracker=tracker, services=services, store=store)
    digest = await services.pin_rules(BUILTIN_RULES)
    request = _under(writing.request(), digest)
    return Desk(writing, tracker, ring, request)


async def test_a_comment_s_approval_writes_once_its_author_s_rights_were_seen(desk: Desk) -> None:
    """Who was vouched for is kept, and asked about by the name that was kept, before the write."""
    assert "accepted" == await desk.approve()
    key = operation_key(desk.request.scope, desk.request.operation.operation_id)
    kept = await vouchers_of(desk.writing.store, key, desk.request.operation.version)
    expected = Voucher(
        operation_key=key,
        version=desk.request.operation.version,
        tracker="scripted",
        person_id="583231",
        login="octocat",
    )
    assert [expected] == kept
    assert WriteOutcome.APPLIED == (await desk.writing.attempt(desk.request)).outcome
    assert [("r", "octocat")] == desk.tracker.people_asked


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (None, NOT_ENTITLED),
        (replace(OCTOCAT, right=Right.READ), NOT_ENTITLED),
        (replace(OCTOCAT, right=Right.TRIAGE), NOT_ENTITLED),
        (replace(OCTOCAT, id="1"), NOT_ENTITLED),
        (replace(OCTOCAT, is_human=False), NOT_ENTITLED),
        (replace(OCTOCAT, is_us=True), NOT_ENTITLED),
        (TrackerRefused("forbidden", "no"), NOBODY_KNOWS),
    ],
)
async def test_who_may_not_any_more_writes_nothing(
    desk: Desk, answer: Person | Exception | None, reason: str
) -> None:
    """Rights that were lost, a login that is another's now, or no word at all: nothing is sent."""
    assert "accepted" == await desk.approve()
    desk.tracker.answer = answer
    result = await desk.writing.attempt(desk.request)
    assert (WriteOutcome.REFUSED, reason) == (result.outcome, result.detail)
    assert 0 == desk.tracker.calls


@pytest.mark.parametrize("other", [("documentation",), ("bug", "documentation"), ()])
async def test_an_approval_of_one_label_writes_no_other(desk: Desk, other: tuple[str, ...]) -> None:
    """Whoever names the approved operation and means other labels is refused, and harms nothing."""
    assert "accepted" == await desk.approve()
    meant = desk.request.operation.model_copy(update={"labels": other})
    result = await desk.writing.attempt(desk.request.model_copy(update={"operation": meant}))
    assert (WriteOutcome.REFUSED, NOT_ITSELF) == (result.outcome, result.detail)
    assert 0 == desk.tracker.calls
    assert WriteOutcome.APPLIED == (await desk.writing.attempt(desk.request)).outcome
    assert {"bug"} == desk.tracker.labels


async def test_while_nobody_can_say_the_write_waits(desk: Desk) -> None:
    """A tracker that is silent about rights is asked again; then the write happens once."""
    assert "accepted" == await desk.approve()
    desk.tracker.answer = TrackerTimeout("no answer")

    def recover(_pause: timedelta) -> None:
        desk.tracker.answer = OCTOCAT

    result = await desk.writing.carry(desk.request, recover)
    assert (WriteOutcome.APPLIED, 1) == (result.outcome, desk.tracker.calls)


async def test_a_tracker_that_knows_nobody_writes_nothing(desk: Desk) -> None:
    """Where rights cannot be asked about, an approval by a comment allows nothing."""
    assert "accepted" == await desk.approve()
    blind = ScriptedTracker()
    services = replace(desk.writing.services, trackers={"scripted": blind})
    writing = replace(desk.writing, services=services, tracker=blind)
    result = await writing.attempt(desk.request)
    assert (WriteOutcome.REFUSED, NOBODY_KNOWS) == (result.outcome, result.detail)


async def test_rules_may_let_a_triager_decide(desk: Desk) -> None:
    """The rules of the run say which rights are enough."""
    rules = BUILTIN_RULES.model_copy(update={"comment_rights": ("triage",)})
    digest = await desk.writing.services.pin_rules(rules)
    desk = replace(desk, request=_under(desk.request, digest))
    assert "accepted" == await desk.approve()
    desk.tracker.answer = replace(OCTOCAT, right=Right.TRIAGE)
    assert WriteOutcome.APPLIED == (await desk.writing.attempt(desk.request)).outcome


async def test_one_of_several_is_looked_at_too(desk: Desk) -> None:
    """Where several have to agree, each who was vouched for has to have their rights still."""
    assert "accepted" == await desk.approve(decides=False)
    key = operation_key(desk.request.scope, desk.request.operation.operation_id)
    kept = await vouchers_of(desk.writing.store, key, desk.request.operation.version)
    assert ["octocat"] == [voucher.login for voucher in kept]


async def test_a_barred_person_is_known_by_the_tracker_s_id(desk: Desk, tmp_path: Path) -> None:
    """The keyring's names of a person count for what they say in a comment, too."""
    _, alice = new_key("583231", datetime.now(UTC) - timedelta(days=1), "alice")
    desk.ring.change(lambda ring: ring.with_key(alice))
    assert "barred_person" == await desk.approve(barred=("alice",))
    assert "same_person" == await desk.approve(subjects=("583231",))


async def test_a_key_that_was_taken_out_approves_nothing_any_more(desk: Desk) -> None:
    """Its line left the ring after it had signed: the write is not sent, and says why."""
    assert "accepted" == await desk.approve()
    desk.ring.change(lambda ring: ring.without(KEY.kid))
    result = await desk.writing.carry(desk.request)
    assert (WriteOutcome.REFUSED, KEY_GONE, 0) == (
        result.outcome,
        result.detail,
        desk.tracker.calls,
    )


async def test_an_approval_allows_no_write_in_another_tenant_s_name(desk: Desk) -> None:
    """A request that names another tenant passes neither its switch nor anything else."""
    assert "accepted" == await desk.approve()
    await Switches(desk.writing.store).stop("ann", "wrong labels", tenant="default")
    told = [
        (await desk.writing.carry(request)).detail
        for request in (desk.request.model_copy(update={"tenant": "another"}), desk.request)
    ]
    assert [OTHER_TENANT, WRITES_STOPPED] == told
    assert 0 == desk.tracker.calls


async def test_what_a_retired_key_signed_before_still_counts(desk: Desk) -> None:
    """Retiring is for rotation: the key is still in the ring."""
    assert "accepted" == await desk.approve()
    desk.ring.change(lambda ring: ring.with_retired(KEY.kid, datetime.now(UTC)))
    assert WriteOutcome.APPLIED is (await desk.writing.carry(desk.request)).outcome


@pytest.mark.parametrize(
    ("needed", "other", "why"),
    [(1, "taken-out", None), (2, "taken-out", KEY_GONE), (2, None, KEY_GONE)],
)
async def test_of_several_signers_enough_keys_have_to_count(
    desk: Desk, needed: int, other: str | None, why: str | None
) -> None:
    """One of two keys was taken out, or is not on record: too few where two have to sign."""
    services = desk.writing.services
    rules = BUILTIN_RULES.model_copy(update={"approvals_required": needed})
    desk = replace(desk, request=_under(desk.request, await services.pin_rules(rules)))
    assert "accepted" == await desk.approve()
    key = operation_key(desk.request.scope, desk.request.operation.operation_id)
    approvals = Approvals(desk.writing.store)
    stands = await approvals.get(key, desk.request.operation.version)
    assert stands is not None
    await approvals.note(replace(stands, approver="another"), "default", key_id=other)
    assert why == await why_not_signed_now(services, desk.request)


async def test_without_a_ring_no_signature_counts(desk: Desk) -> None:
    """A worker that cannot read the keys does not take them for good."""
    assert "accepted" == await desk.approve()
    services = replace(desk.writing.services, keyring=KeyringFile(None))
    assert NO_RING == await why_not_signed_now(services, desk.request)
