"""Every published case of approval security, played through a whole run.

Why it exists: the list is data that others add to. tests/unit/signing shows what the verifier says
of each token; here each case meets a run that waits, and what counts is what the run then does.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from pydantic import JsonValue

from tests.cli.conftest import FIXTURES
from tests.fixed_rules import rules_with
from tests.reliability.answers import ACCEPTED, CLOSED, TOO_LATE, told, told_why
from tests.reliability.commands import Shell
from tests.reliability.signing import Asked, Signed, opened_signed
from tests.unit.signing.makers import encoded, forged
from tests.workflow.decisions import ISSUE, OPERATION, final, label
from tests.workflow.resets import reset
from tests.workflow.runs import Run, envelope, outcome
from tests.workflow.world import World
from triage.contracts.approval import Verdict
from triage.contracts.canonical import canonical_json, digest_of, short_hash
from triage.contracts.response import Status
from triage.contracts.state import StateView
from triage.signing.keys import new_key, signing_key
from triage.signing.tokens import audience, sign
from triage.storage.operations import OperationRecord

CASES: Final = FIXTURES / "security" / "approval_negative_cases.json"
JUNK: Final = 300
BATCH: Final = 100
LATER: Final = 60
"""Seconds: more than any two clocks here differ."""

Tokens = Callable[[Asked], list[str]]


@pytest.fixture
async def signed(world: World, tmp_path: Path) -> AsyncIterator[Signed]:
    """A worker that counts nothing but signatures."""
    async with opened_signed(world, tmp_path) as opened:
        yield opened


def _now() -> int:
    return int(datetime.now(UTC).timestamp())


def _payload(asked: Asked) -> bytes:
    return canonical_json(asked.claims().model_dump(mode="json", exclude_none=True))


def _expired(asked: Asked) -> list[str]:
    return [asked.token(iat=_now() - LATER, nbf=_now() - LATER, exp=_now() - 1)]


def _lost_role(asked: Asked) -> list[str]:
    token = asked.token()
    asked.signed.forget(asked.signed.key)
    return [token]


def _recycled_login(asked: Asked) -> list[str]:
    """Somebody else took the login, and has a key of it, but not the id of who had it before."""
    asked.signed.forget(asked.signed.key)
    newcomer = asked.signed.person("maintainer", "id-of-somebody-else")
    claimed = canonical_json(
        {**asked.claims(newcomer).model_dump(mode="json"), "sub": asked.signed.key.subject}
    )
    return [asked.token(), forged(key=newcomer, payload=claimed)]


def _unknown_key(asked: Asked) -> list[str]:
    private, _ = new_key("id-of-maintainer", datetime.now(UTC), "maintainer")
    return [asked.token(signing_key(private))]


def _bad_signatures(asked: Asked) -> list[str]:
    head, body, signature = asked.token().split(".")
    variants = [signature[:-1], signature[:-2], f"{signature}=", f"{signature}==", ""]
    return [f"{head}.{body}.{variant}" for variant in (*variants, encoded(b"\0" * 64))]


def _wider_digest(asked: Asked) -> list[str]:
    wider = digest_of(["apply_labels", ISSUE, ["bug", "security"]])
    return [asked.token(operation_digest=wider)]


REFUSED: Final[dict[str, tuple[Tokens, set[str]]]] = {
    "nbf in the future": (lambda a: [a.token(nbf=_now() + LATER)], {"unauthorised"}),
    "exp in the past by 1 s": (_expired, {"expired"}),
    "iss other": (lambda a: [a.token(iss="another-issuer")], {"unauthorised"}),
    "aud other service": (lambda a: [a.token(aud=audience("staging"))], {"unauthorised"}),
    "kid unknown": (_unknown_key, {"unauthorised"}),
    "kid path traversal ../../dev/null": (
        lambda a: [forged(key=a.signed.key, payload=_payload(a), kid="../../dev/null")],
        {"malformed"},
    ),
    "duplicate claim keys in JWT JSON": (
        lambda a: [forged(key=a.signed.key, payload=_payload(a)[:-1] + b',"state_version":3}')],
        {"malformed"},
    ),
    "signature truncated / base64 padding variants": (
        _bad_signatures,
        {"malformed", "unauthorised"},
    ),
    "state_version newer": (lambda a: [a.token(state_version=4)], {"stale_version"}),
    "state_version older": (lambda a: [a.token(state_version=2)], {"stale_version"}),
    "op digest differs by one label": (_wider_digest, {"digest_mismatch"}),
    "approver lost role since issue": (_lost_role, {"unauthorised"}),
    "login renamed/recycled": (_recycled_login, {"unauthorised"}),
    "replay to other workflow": (
        lambda a: [a.token(workflow_id=f"{a.run.id}-other")],
        {"not_pending"},
    ),
}


async def _refused(signed: Signed, tokens: Tokens, codes: set[str]) -> None:
    """By update and by signal: refused with its code, and the run waits as it did."""
    asked = await signed.waiting()
    before = await asked.run.state()
    made = tokens(asked)
    answers = {await told(asked.run, asked.review(token)) for token in made}
    for token in made:
        await asked.run.signal("approve", asked.envelope(token))
    state = await asked.run.reaches(lambda found: found.refusals_total == len(made))
    assert codes == answers == {refusal.code for refusal in state.refusals}
    kept = {"refusals": before.refusals, "refusals_total": 0}
    assert before == state.model_copy(update=kept)
    assert [] == await signed.world.written(asked.run)
    other = signed.person("somebody", "id-of-somebody")
    good = asked.review(asked.token(other), approver="somebody")
    assert ACCEPTED == await told(asked.run, good)
    await _see_written_once(signed, asked.run)


async def _see_written_once(signed: Signed, run: Run) -> None:
    assert Status.COMPLETED is (await run.response()).status
    assert ["bug"] == await signed.world.written(run)


async def _accepted(signed: Signed) -> None:
    asked = await signed.waiting()
    assert ACCEPTED == await told(asked.run, asked.review(asked.token()))
    await _see_written_once(signed, asked.run)


async def _retired(signed: Signed) -> None:
    """An old token lives out its minutes, and what is signed from then on does not count."""
    asked = await signed.waiting()
    early = asked.token()
    signed.ring.change(lambda keys: keys.with_retired(signed.key.kid, datetime.now(UTC)))
    late = asked.token(iat=_now() + 1)
    assert "unauthorised" == await told(asked.run, asked.review(late))
    assert ACCEPTED == await told(asked.run, asked.review(early))
    await _see_written_once(signed, asked.run)


async def _replayed(signed: Signed) -> None:
    """A run that is reset asks again: its used token is refused, and no approval writes again."""
    asked = await signed.waiting()
    used = asked.token()
    assert ACCEPTED == await told(asked.run, asked.review(used))
    await _see_written_once(signed, asked.run)
    again = await reset(signed.world.client, asked.run)
    assert asked.pending.digest == (await again.waiting()).digest
    assert "duplicate" == await told(again, asked.review(used))
    assert ACCEPTED == await told(again, asked.review(asked.token()))
    await _see_written_once(signed, again)
    assert 1 == len(await signed.world.services.ledger.list(workflow_id=again.id))


async def _next_run(signed: Signed) -> None:
    """Neither a token that names its run nor one that was used counts in the next of that name."""
    first = await signed.waiting()
    handle = first.run.handle
    scope = short_hash("default", first.run.id, str(handle.first_execution_run_id))
    named, used = first.token(scope=scope), first.token()
    assert ACCEPTED == await told(first.run, first.review(used))
    await _see_written_once(signed, first.run)
    second = await signed.waiting(run_id=first.run.id)
    assert first.pending.digest == second.pending.digest
    assert "duplicate" == await told(second.run, second.review(used))
    assert "not_pending" == await told(second.run, second.review(named))
    assert ["bug"] == await signed.world.written(second.run)
    assert second.pending == await second.run.pending()
    await second.run.handle.terminate()


async def _closed(signed: Signed, shell: Shell) -> None:
    """Whoever is too late is told so, by client, by command and by the plain program."""
    asked = await signed.waiting()
    reject = asked.claims(verdict=Verdict.REJECT)
    assert ACCEPTED == await told(
        asked.run, asked.review(sign(reject, signed.key), verdict="reject")
    )
    response = await asked.run.response()
    assert CLOSED == await told(asked.run, asked.review(asked.token()))
    name, operation = asked.run.id, asked.pending.operation_id
    approve = await shell.triage("approve", name, operation, "--version", "3", "--as", "ann")
    assert (1, "") == (approve.status, approve.out)
    assert "has ended: no decision counts any more" in approve.err
    signal = await shell.signal(name, "approve", json.dumps(asked.envelope(asked.token())))
    assert (1, True) == (signal.status, "already completed" in signal.err)
    assert (Status.REVIEW_REQUIRED, "approval_required") == outcome(response)
    assert ([], ()) == (
        await signed.world.written(asked.run),
        await signed.world.services.ledger.list(workflow_id=name),
    )


async def _applied_before(signed: Signed) -> None:
    """The operation that a run has applied is not asked for again; its state tells the outcome."""
    script = [label(), label("documentation", operation_id="op-2"), final("mutation-receipt")]
    asked = await signed.waiting(*script)
    assert ACCEPTED == await told(asked.run, asked.review(asked.token()))
    await asked.run.waiting_at(6)
    [receipt] = [row.receipt for row in await _rows(signed, asked.run)]
    code, why = await told_why(asked.run, asked.review(asked.token()))
    assert "duplicate" == code
    assert "approved by maintainer at " in why
    assert "; the operation is applied" in why
    assert receipt is not None
    assert [receipt] == [row.receipt for row in await _rows(signed, asked.run)]
    assert [(OPERATION, 3, "applied")] == await asked.run.operation_states()
    assert ["bug"] == await signed.world.written(asked.run)
    await asked.run.handle.terminate()


async def _rows(signed: Signed, run: Run) -> tuple[OperationRecord, ...]:
    return await signed.world.services.ledger.list(workflow_id=run.id)


async def _one_of_two(signed: Signed) -> None:
    """One person twice, by one name or by two, is one person; a second one's approval sends it."""
    asked = await signed.waiting()
    assert 2 == asked.pending.approvals_required
    alias = signed.person("alias", signed.key.subject)
    second = signed.person("second", "id-of-second")
    assert ACCEPTED == await told(asked.run, asked.review(asked.token()))
    assert "duplicate" == await told(asked.run, asked.review(asked.token()))
    named = asked.review(asked.token(alias), approver="alias")
    assert "duplicate" == await told(asked.run, named)
    state = await asked.run.state()
    assert state.pending is not None
    assert ("tool_pending", ("maintainer",)) == (state.status, state.pending.approved_by)
    assert [] == await signed.world.written(asked.run)
    other = asked.review(asked.token(second), approver="second")
    assert ACCEPTED == await told(asked.run, other)
    await _see_written_once(signed, asked.run)


async def _raced(signed: Signed, *verdicts: Verdict) -> None:
    """Two people at once: one is heard, the other is told, and the effect is that one's."""
    asked = await signed.waiting()
    people = [signed.key, signed.person("second", "id-of-second")]
    reviews = [
        asked.review(
            sign(asked.claims(key, verdict), key), approver=key.approver, verdict=verdict.value
        )
        for key, verdict in zip(people, verdicts, strict=True)
    ]
    answers = await asyncio.gather(*(told(asked.run, review) for review in reviews))
    response = await asked.run.response()
    assert 1 == answers.count(ACCEPTED)
    assert {*answers} - {ACCEPTED} <= TOO_LATE
    if verdicts[answers.index(ACCEPTED)] is Verdict.APPROVE:
        await _see_written_once(signed, asked.run)
    else:
        assert Status.REVIEW_REQUIRED is response.status
        assert [] == await signed.world.written(asked.run)


def _has_refused(count: int, state: StateView) -> bool:
    return state.refusals_total == count


async def _junk(signed: Signed, count: int) -> Asked:
    """However much junk arrives, all of it is counted, and the run can still be approved."""
    asked = await signed.waiting()
    junk: list[JsonValue] = [True, {}, envelope(asked.pending), asked.envelope("a.b.c")]
    for sent in range(0, count, BATCH):
        signals = (asked.run.signal("approve", junk[n % len(junk)]) for n in range(BATCH))
        await asyncio.gather(*signals)
        # Faster than a worker can look at them they are another fault: see docs/reliability.md.
        await asked.run.reaches(partial(_has_refused, sent + BATCH))
    state = await asked.run.state()
    assert (3, asked.pending) == (state.version, state.pending)
    assert ACCEPTED == await told(asked.run, asked.review(asked.token()))
    await _see_written_once(signed, asked.run)
    return asked


async def _some_junk(signed: Signed, _: Shell) -> None:
    await _junk(signed, JUNK)


PLAYED: Final[dict[str, Callable[[Signed, Shell], Awaitable[None]]]] = {
    "none": lambda signed, _: _accepted(signed),
    "kid retired after issue": lambda signed, _: _retired(signed),
    "replay same token after consumption": lambda signed, _: _replayed(signed),
    "replay to next run (continue-as-new)": lambda signed, _: _next_run(signed),
    "approval after workflow closed": _closed,
    "approval for an op already applied": lambda signed, _: _applied_before(signed),
    "approve then reject race": lambda signed, _: _raced(signed, Verdict.APPROVE, Verdict.REJECT),
    "concurrent double approve": lambda signed, _: _raced(signed, Verdict.APPROVE, Verdict.APPROVE),
    "10,000 junk signals": _some_junk,
}
OF_TWO: Final = "two approvers required, same person twice"


def test_every_case_has_its_place() -> None:
    """A case that is added to the list fails here until somebody plays it."""
    listed = [case["case"] for case in json.loads(CASES.read_text(encoding="utf-8"))]
    assert sorted(listed) == sorted((*REFUSED, *PLAYED, OF_TWO))


@pytest.mark.parametrize("case", REFUSED)
async def test_a_refused_case(signed: Signed, case: str) -> None:
    """By update and by signal: refused with its code, and the run waits as it did."""
    await _refused(signed, *REFUSED[case])


@pytest.mark.parametrize("case", PLAYED)
async def test_a_played_case(signed: Signed, tmp_path: Path, case: str) -> None:
    """What the run does, whom it tells, and what is written, is what the case expects."""
    await PLAYED[case](signed, Shell(tmp_path, signed.world.client))


async def test_two_approvers_required(world: World, tmp_path: Path) -> None:
    """Where the rules want two people, the same person twice leaves the write pending."""
    services = replace(world.services, rules=rules_with(approvals_required=2))
    stricter = replace(world, services=services)
    async with opened_signed(stricter, tmp_path) as opened:
        await _one_of_two(opened)


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_ten_thousand_junk_signals(signed: Signed) -> None:
    """The whole flood, on a server with its ordinary limits: counted, carried, and not ended."""
    asked = await _junk(signed, 10_000)
    execution = (await asked.run.handle.describe()).run_id
    assert execution != asked.run.handle.first_execution_run_id
