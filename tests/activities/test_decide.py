"""Asking the model: whatever an adapter does, what comes back is one bounded, named outcome."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from pydantic import JsonValue
from temporalio.testing import ActivityEnvironment

from activities.decide import DecideActivities
from activities.services import Services
from tests.activities.questions import DECISION, SCOPE, Adapter, Answer, Asking
from tests.clock import PATIENCE_SECONDS
from tests.workflow.decisions import as_object, hand_over, lookup
from triage import extensions
from triage.contracts.canonical import canonical_json
from triage.contracts.decision import MAX_DECISION_BYTES
from triage.contracts.model_faults import MAX_RETRY_AFTER_SECONDS
from triage.contracts.payloads import Asked, DecideOutcome, DecideResult, Usage
from triage.contracts.trail import START
from triage.extensions import Extension
from triage.models.base import ModelRequest
from triage.storage.documents import SHARED, DocumentKind
from triage.storage.evidence import EvidenceRow


async def test_an_answer_comes_back_as_it_is(asking: Asking) -> None:
    """A decision is passed on untouched, in as few words: the workflow judges it."""

    async def answer(_: ModelRequest) -> DecideResult:
        return DecideResult(outcome=DecideOutcome.DECISION, decision={"odd": [1]})

    found = await asking.ask(answer)
    assert DecideResult(outcome=DecideOutcome.DECISION, decision={"odd": [1]}) == found
    assert {"outcome", "decision"} == found.model_fields_set


@pytest.mark.parametrize("is_local", [True, False])
async def test_a_local_call_s_answer_says_what_was_asked(asking: Asking, *, is_local: bool) -> None:
    """No history holds what a local activity was asked, so its result does; no other one's does."""
    env = ActivityEnvironment()
    env.info = replace(env.info, is_local=is_local)
    result = await env.run(DecideActivities(asking.services).decide, asking.request)
    asked = Asked(step=1, version=2, request_digest=asking.request.request_digest)
    assert (asked if is_local else None) == result.asked


@pytest.mark.parametrize("tokens", [12, -(10**9), 10**400], ids=["some", "less", "endless"])
async def test_a_model_that_costs_nothing_charges_nothing(asking: Asking, tokens: int) -> None:
    """Nothing that it says of costs and attempts changes what a run has spent."""

    async def answer(_: ModelRequest) -> DecideResult:
        usage = Usage(tokens=tokens, cost_micros=tokens)
        return DecideResult(outcome=DecideOutcome.DECISION, decision={}, usage=usage, attempts=-100)

    found = await asking.ask(answer)
    assert (DecideOutcome.DECISION, Usage(), None) == (found.outcome, found.usage, found.attempts)


async def test_what_an_adapter_says_beside_is_fit_to_be_read(asking: Asking) -> None:
    """Its detail holds no secret, no character that drives a terminal, and fits on a page."""
    token = "ghp_" + "a1B2" * 9

    async def answer(_: ModelRequest) -> DecideResult:
        detail = f"{token} \x00\x1b[31mred\n\ud800 {'so ' * 1_000}"
        return DecideResult(
            outcome=DecideOutcome.INVALID, detail=detail, retry_after_seconds=10**30
        )

    found = await asking.ask(answer)
    assert found.detail.startswith("[redacted:")
    assert found.detail.isprintable()
    assert (2_000, MAX_RETRY_AFTER_SECONDS) == (len(found.detail), found.retry_after_seconds)


async def test_an_adapter_is_shown_the_request_the_tools_and_the_rules(asking: Asking) -> None:
    """It sees step, request, tools, routes and labels, and nothing of who may approve."""
    seen: list[ModelRequest] = []

    async def answer(request: ModelRequest) -> DecideResult:
        seen.append(request)
        return DECISION

    await asking.ask(answer)
    [request] = seen
    assert (1, "ISSUE-1", ()) == (request.step, request.request.request_id, request.observations)
    assert [
        ("lookup_component_owner", False),
        ("search_triage_policy", False),
        ("apply_labels", True),
        ("read_issue", False),
    ] == [(tool.name, tool.side_effect) for tool in request.tools]
    assert "security_review" in request.routes
    assert "component:api" in request.labels


async def test_observations_are_those_of_before_the_call_in_order(asking: Asking) -> None:
    """Only this run's evidence of earlier versions is shown; expired content is None, not empty."""
    for scope, version, age in ((SCOPE, 6, 1), (SCOPE, 3, -1), (SCOPE, 9, 1), ("other", 3, 1)):
        await asking.services.evidence.put(_evidence(asking.services, scope, version, age))
    seen: list[ModelRequest] = []

    async def answer(request: ModelRequest) -> DecideResult:
        seen.append(request)
        return DECISION

    asking.request = asking.request.model_copy(update={"version": 8})
    await asking.ask(answer)
    assert [(3, None), (6, {"owner": "backend-team"})] == [
        (item.version, item.content) for item in seen[0].observations
    ]
    assert {"tests@1#3", "tests@1#6"} == {item.locator for item in seen[0].observations}


async def test_evidence_that_a_run_has_read_and_nobody_has_is_unavailable(asking: Asking) -> None:
    """A question is not asked about a part of what it rests on."""
    asking.request = asking.request.model_copy(update={"version": 8, "trail": "0" * 16})
    assert DecideOutcome.UNAVAILABLE is (await asking.decide("rules")).outcome
    asking.request = asking.request.model_copy(update={"trail": START})
    assert DecideOutcome.DECISION is (await asking.decide("rules")).outcome


async def _raises(_: ModelRequest) -> DecideResult:
    raise RuntimeError("api key sk-ant-secret was refused")


async def _raises_timeout(_: ModelRequest) -> DecideResult:
    raise TimeoutError


async def _hangs(_: ModelRequest) -> DecideResult:
    await asyncio.Event().wait()
    raise AssertionError


async def _cancelled(_: ModelRequest) -> DecideResult:
    raise asyncio.CancelledError


async def _exits(_: ModelRequest) -> DecideResult:
    raise SystemExit(3)


def _at_once(_: ModelRequest) -> Any:  # noqa: ANN401 - that is the mistake
    raise RuntimeError


def _constructed(**parts: Any) -> Answer:  # noqa: ANN401 - any parts
    async def answer(_: ModelRequest) -> DecideResult:
        return DecideResult.model_construct(**parts)

    return answer


async def _nothing(_: ModelRequest) -> None:
    return None


async def _a_dict(_: ModelRequest) -> JsonValue:
    return hand_over()


def _deciding(decision: Any) -> Answer:  # noqa: ANN401 - any answer
    async def answer(_: ModelRequest) -> DecideResult:
        return DecideResult(outcome=DecideOutcome.DECISION, decision=decision)

    return answer


def _nested(depth: int) -> JsonValue:
    value: JsonValue = 1
    for _ in range(depth):
        value = [value]
    return value


BROKEN: list[tuple[str, Answer, DecideOutcome]] = [
    ("raises", _raises, DecideOutcome.INVALID),
    ("raises a timeout", _raises_timeout, DecideOutcome.TIMEOUT),
    ("raises a cancellation", _cancelled, DecideOutcome.INVALID),
    ("exits", _exits, DecideOutcome.INVALID),
    ("is no coroutine function", _at_once, DecideOutcome.INVALID),
    ("an outcome of its own", _constructed(outcome="so", decision={1: 2}), DecideOutcome.INVALID),
    (
        "parts of other types",
        _constructed(outcome=DecideOutcome.DECISION, decision=hand_over(), detail=5, fault="z"),
        DecideOutcome.INVALID,
    ),
    (
        "a detail without end",
        _constructed(outcome=DecideOutcome.INVALID, detail="x" * 3_000_000),
        DecideOutcome.INVALID,
    ),
    ("answers nothing", _nothing, DecideOutcome.INVALID),
    ("answers plain data", _a_dict, DecideOutcome.INVALID),
    ("a huge answer", _deciding("x" * MAX_DECISION_BYTES), DecideOutcome.INVALID),
    ("a huge answer in few characters", _deciding("é" * 20_000), DecideOutcome.INVALID),
    ("a deep answer", _deciding(_nested(300)), DecideOutcome.INVALID),
    ("NaN", _deciding({"score": float("nan")}), DecideOutcome.INVALID),
    ("infinity", _deciding([float("inf")]), DecideOutcome.INVALID),
    ("a lone surrogate", _deciding("\ud800"), DecideOutcome.INVALID),
]


@pytest.mark.parametrize(("case", "answer", "outcome"), BROKEN, ids=[case[0] for case in BROKEN])
async def test_a_broken_adapter_is_a_named_outcome(
    asking: Asking, case: str, answer: Answer, outcome: DecideOutcome
) -> None:
    """An adapter that raises or answers what cannot be carried never fails the activity."""
    result = await asking.ask(answer)
    assert (outcome, None) == (result.outcome, result.decision)
    assert "sk-ant" not in result.model_dump_json()
    assert len(result.detail) < 200


async def test_an_answer_of_the_largest_size_is_carried(asking: Asking) -> None:
    """The bound is on the canonical form, and what just fits comes through."""
    text = "x" * (MAX_DECISION_BYTES - 2)
    assert DecideOutcome.DECISION is (await asking.ask(_deciding(text))).outcome


async def test_what_is_too_large_is_not_looked_through(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To look for secrets takes seconds for some megabytes, in which a worker does nothing else."""
    looked: list[JsonValue] = []
    monkeypatch.setattr("activities.model_answers.without_secrets", looked.append)
    found = await asking.ask(_deciding({"reason": "x" * 5_000_000}))
    assert (DecideOutcome.INVALID, []) == (found.outcome, looked)
    assert f"the answer is larger than {MAX_DECISION_BYTES} bytes" == found.detail


async def test_a_cancelled_call_is_cancelled(asking: Asking) -> None:
    """A worker that stops does not take its own cancellation for an answer."""
    task = asyncio.create_task(asking.ask(_hangs))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_deadline_is_the_workers_own(asking: Asking) -> None:
    """The activity keeps the deadline around the adapter itself, well before the server would."""
    asking.services = replace(asking.services, model_timeout=timedelta(milliseconds=10))
    async with asyncio.timeout(PATIENCE_SECONDS):
        result = await asking.ask(_hangs)
    assert (DecideOutcome.TIMEOUT, None) == (result.outcome, result.decision)


async def test_a_request_that_is_gone_is_unavailable(asking: Asking) -> None:
    """Without the request's content there is nothing to ask about, and no adapter is asked."""
    result = await asking.decide("rules", request_digest="sha256:" + "0" * 64)
    assert DecideOutcome.UNAVAILABLE is result.outcome


async def test_a_script_that_is_gone_is_unavailable(asking: Asking) -> None:
    """A recorded model whose script is not stored any more has no answer, and none is invented."""
    result = await asking.decide("recorded:sha256:" + "0" * 64)
    assert DecideOutcome.UNAVAILABLE is result.outcome


async def test_a_model_that_cannot_be_made_is_no_answer(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A maker that raises, where it did not when the run began, is not asked over and over."""
    broken = {"x-bad": Extension(models={"x-bad": _no_model})}
    monkeypatch.setattr(extensions, "_INSTALLED", broken)
    found = await asking.decide("x-bad")
    assert (DecideOutcome.INVALID, "model 'x-bad' cannot be made (RuntimeError)") == (
        found.outcome,
        found.detail,
    )


def _no_model(_: str) -> Adapter:
    raise RuntimeError("sk-ant-secret")


async def test_rules_that_are_gone_are_a_fault_of_the_platform(asking: Asking) -> None:
    """A run whose pinned rules are not in the store is never decided under other rules."""
    with pytest.raises(LookupError):
        await asking.decide("rules", policy_digest="sha256:" + "0" * 64)


async def test_a_recorded_model_answers_a_retry_alike(asking: Asking) -> None:
    """The position comes from the step, so an attempt that is repeated gets the same decision."""
    script: list[JsonValue] = [lookup(), hand_over()]
    digest = await asking.services.documents.put(
        SHARED, DocumentKind.SCRIPT, canonical_json(script)
    )
    answers = [await asking.decide(f"recorded:{digest}", step=2) for _ in range(3)]
    assert [hand_over()] * 3 == [answer.decision for answer in answers]


async def test_no_credential_of_a_model_is_written_anywhere(asking: Asking) -> None:
    """Wherever a model puts one, it does not leave the activity; what is looked up stays as is."""
    token, mail = "ghp_" + "a1B2" * 9, "ann@example.org"
    said: JsonValue = {**as_object(hand_over(token, reason=f"{mail} {token}")), token: [token]}

    async def answer(_request: ModelRequest) -> DecideResult:
        return DecideResult(outcome=DecideOutcome.DECISION, decision=said)

    found = str((await asking.ask(answer)).decision)
    assert token not in found
    assert mail not in found
    path = f"docs/{mail}"

    async def look(_request: ModelRequest) -> DecideResult:
        return DecideResult(outcome=DecideOutcome.DECISION, decision=lookup(path))

    assert lookup(path) == (await asking.ask(look)).decision


def _evidence(services: Services, scope: str, version: int, days: int) -> EvidenceRow:
    content = canonical_json({"owner": "backend-team"})
    return EvidenceRow(
        scope=scope,
        version=version,
        evidence_id="owners-api",
        tool="lookup_component_owner",
        arguments=canonical_json({"path": "backend/api.py"}),
        source="tests",
        locator=f"tests@1#{version}",
        digest="sha256:" + "0" * 64,
        content=content,
        size_bytes=len(content),
        expires_at=replace(services, retention=timedelta(days=days)).content_expiry(),
    )


@pytest.mark.parametrize(("attempt", "asked"), [(2, True), (3, False)])
async def test_calls_lost_with_their_workers_are_charged_to_the_budget(
    asking: Asking, attempt: int, asked: bool
) -> None:
    """An attempt beyond those that the budget leaves asks nobody: those before were calls, too."""
    request = asking.request.model_copy(
        update={"model": await _stored(asking, hand_over()), "attempts_left": 2}
    )
    env = ActivityEnvironment()
    env.info = replace(env.info, attempt=attempt)
    result: DecideResult = await env.run(DecideActivities(asking.services).decide, request)
    expected = DecideOutcome.DECISION if asked else DecideOutcome.EXHAUSTED
    assert (expected, attempt) == (result.outcome, result.attempts)


async def _stored(asking: Asking, *script: JsonValue) -> str:
    documents = asking.services.documents
    return f"recorded:{await documents.put(SHARED, DocumentKind.SCRIPT, canonical_json(script))}"
