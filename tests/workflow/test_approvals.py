"""What counts as a review of a pending write, by signal and by update."""

from __future__ import annotations

import pytest
from pydantic import JsonValue

from tests.workflow.decisions import ISSUE, OPERATION, final, label, lookup
from tests.workflow.runs import Run, envelope, outcome, refusal_of
from tests.workflow.world import World
from triage.contracts.response import Status

SCRIPT = [label(), final("mutation-receipt", labels=("bug",))]


async def _waiting(world: World) -> Run:
    run = await world.start(*SCRIPT, mode="approve", context={"author": "@Reporter"})
    await run.waiting()
    return run


@pytest.mark.parametrize("way", ["signal", "update"])
async def test_an_approval_writes_once_and_the_run_goes_on(world: World, way: str) -> None:
    """An approval of exactly what is pending applies the labels, and its receipt can be cited."""
    run = await _waiting(world)
    if way == "signal":
        await run.signal("approve", envelope(await run.waiting()))
    else:
        answer = await run.review("approve")
        assert (True, "accepted", 3) == (answer.accepted, answer.code, answer.version)
    response = await run.response()
    assert (Status.COMPLETED, ("mutation-receipt",)) == (response.status, response.evidence_ids)
    assert ["bug"] == await world.written(run)
    assert [(OPERATION, True, True, "approved")] == await run.mutation_facts()
    assert [(OPERATION, 3, "applied")] == await run.operation_states()
    assert await run.pending() is None


@pytest.mark.parametrize("way", ["signal", "update"])
async def test_a_rejection_ends_the_run_in_review(world: World, way: str) -> None:
    """A rejected write is not sent; the run ends approval_required at the next version."""
    run = await _waiting(world)
    if way == "signal":
        await run.signal("reject", envelope(await run.waiting()))
    else:
        assert (await run.review("reject")).accepted
    assert (Status.REVIEW_REQUIRED, "approval_required") == outcome(await run.response())
    assert [] == await world.written(run)
    assert [(OPERATION, 3, "rejected")] == await run.operation_states()
    assert [(OPERATION, False, False, "approval_required")] == await run.mutation_facts()


OTHER_DIGEST = "sha256:" + "0" * 64
REFUSED: list[tuple[dict[str, JsonValue], str]] = [
    ({"operation_id": "op-106"}, "not_pending"),
    ({"operation_id": "OP-105"}, "not_pending"),
    ({"version": 0}, "stale_version"),
    ({"version": 2}, "stale_version"),
    ({"version": 4}, "stale_version"),
    ({"digest": OTHER_DIGEST}, "digest_mismatch"),
    ({"approver": "reporter"}, "unauthorised"),
    ({"approver": " @REPORTER "}, "unauthorised"),
    ({"approver": "triage[bot]"}, "unauthorised"),
    ({"approver": "@"}, "unauthorised"),
    ({"approver": " "}, "malformed"),
    ({"approver": ""}, "malformed"),
    ({"approver": None}, "malformed"),
    ({"version": "3"}, "malformed"),
    ({"version": 3.0}, "malformed"),
    ({"version": True}, "malformed"),
    ({"version": -1}, "malformed"),
    ({"version": 2**60}, "malformed"),
    ({"digest": "sha256:abc"}, "malformed"),
    ({"operation_id": ""}, "malformed"),
    ({"operation_id": ["op-105"]}, "malformed"),
    ({"surprise": 1}, "malformed"),
    ({"note": "x" * 2_001}, "malformed"),
    ({"token": "x" * 8_193}, "malformed"),
]


async def test_every_other_signal_is_refused_coded_and_kept(world: World) -> None:
    """A signal that does not match is kept with its code, changes nothing and ends nothing."""
    run = await _waiting(world)
    good = envelope(await run.waiting())
    for changes, _ in REFUSED:
        await run.signal("approve", {**good, **changes})
    state = await run.reaches(lambda state: state.refusals_total == len(REFUSED))
    assert [code for _, code in REFUSED] == [refusal.code for refusal in state.refusals]
    assert ("tool_pending", 3) == (state.status, state.version)
    assert await run.is_running()
    assert [] == await world.written(run)
    await run.review("approve")
    assert Status.COMPLETED is (await run.response()).status


async def test_every_other_update_is_refused_at_once_and_leaves_no_history(world: World) -> None:
    """An update that does not match is answered with the code of its refusal and not recorded."""
    run = await _waiting(world)
    good = {**envelope(await run.waiting()), "verdict": "approve"}
    before = len(await run.events())
    no_verdict: dict[str, JsonValue] = {"verdict": "maybe"}
    for changes, code in [*REFUSED, (no_verdict, "malformed")]:
        assert code == await refusal_of(run.update({**good, **changes})), changes
    assert before == len(await run.events())
    assert 0 == (await run.state()).refusals_total
    assert [] == await world.written(run)
    await run.review("approve")
    assert Status.COMPLETED is (await run.response()).status


async def test_a_verdict_belongs_to_the_signals_name(world: World) -> None:
    """A signal that carries a verdict of its own is malformed, even if it agrees."""
    run = await _waiting(world)
    good = envelope(await run.waiting())
    await run.signal("reject", {**good, "verdict": "approve"})
    await run.signal("approve", {**good, "verdict": "approve"})
    state = await run.reaches(lambda state: state.refusals_total == 2)
    assert ["malformed", "malformed"] == [refusal.code for refusal in state.refusals]
    await run.handle.terminate()


async def test_the_optional_parts_of_an_envelope_are_accepted(world: World) -> None:
    """An approval may leave its digest out and may bring a note and a token."""
    run = await _waiting(world)
    changes: dict[str, JsonValue] = {"digest": None, "note": "looks right", "token": "later"}
    assert (await run.review("approve", **changes)).accepted
    assert Status.COMPLETED is (await run.response()).status


async def test_a_refusal_says_who_what_and_when(world: World) -> None:
    """A kept refusal names operation, version, approver and time, and a malformed one nothing."""
    run = await _waiting(world)
    await run.signal("approve", {**envelope(await run.waiting()), "version": 9})
    await run.signal("approve", {"approver": "mallory"})
    first, second = (await run.reaches(lambda state: state.refusals_total == 2)).refusals
    assert ("stale_version", OPERATION, 9, "maintainer") == (
        first.code,
        first.operation_id,
        first.version,
        first.approver,
    )
    assert first.at.endswith("+00:00")
    assert (None, None, None) == (second.operation_id, second.version, second.approver)
    await run.handle.terminate()


async def test_early_approvals_are_refused_and_not_stored(world: World) -> None:
    """An approval that comes before its operation is pending does not count later either."""
    early: JsonValue = {"operation_id": OPERATION, "version": 6, "approver": "maintainer"}
    run = await world.start(lookup(), *SCRIPT, mode="approve", start_signal=("approve", early))
    assert 6 == (await run.waiting()).version
    assert ["not_pending"] == [refusal.code for refusal in (await run.state()).refusals]
    assert [] == await world.written(run)
    await run.handle.terminate()


async def test_the_first_review_decides(world: World) -> None:
    """Of reviews that arrive together the first counts, and each later one is refused."""
    run = await _waiting(world)
    good = envelope(await run.waiting())
    await run.signal("approve", good)
    await run.signal("reject", good)
    await run.signal("approve", {**good, "approver": "second"})
    assert Status.COMPLETED is (await run.response()).status
    assert ["bug"] == await world.written(run)
    codes = [refusal.code for refusal in (await run.state()).refusals]
    assert {"duplicate", "not_pending"}.issuperset(codes)


async def test_a_review_after_the_end_finds_no_run(world: World) -> None:
    """Once a run has ended, its state says that nothing is pending, and its answer stays."""
    run = await _waiting(world)
    await run.review("approve")
    response = await run.response()
    state = await run.state()
    assert (None, response) == (state.pending, state.response)


async def test_only_the_latest_refusals_are_kept_and_all_are_counted(world: World) -> None:
    """However many reviews are refused, the state keeps fifty and the true count."""
    run = await _waiting(world)
    for number in range(60):
        await run.signal("approve", {**envelope(await run.waiting()), "version": 100 + number})
    state = await run.reaches(lambda state: state.refusals_total == 60)
    assert list(range(110, 160)) == [refusal.version for refusal in state.refusals]
    await run.handle.terminate()


async def test_the_author_that_the_tracker_knows_cannot_approve(world: World) -> None:
    """Whoever opened the issue may not decide on it, though the run was not told who that is."""
    repository = "known-author"
    await world.tracker.create_issue(repository, title="t", body="b", author="Carol", number=ISSUE)
    await world.tracker.seed_labels(repository, ["bug"])
    run = await world.start(*SCRIPT, mode="approve", context={"repository": repository})
    assert "unauthorised" == await refusal_of(run.review("approve", approver="@carol"))
    assert (await run.review("reject", approver="dave")).accepted
    await run.response()
