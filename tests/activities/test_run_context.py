"""Pinning a run, and showing what a write would change: the two local activities of IssueTriage."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.far_end import LOOK_ATTEMPTS
from activities.labels import PreviewActivities
from activities.run_context import RunContextActivities
from activities.services import Services
from tests.activities.scripted_tracker import Read
from tests.activities.writing import TARGET, Writing
from tests.fixed_rules import rules_with
from tests.workflow.decisions import a_request
from triage.contracts.canonical import abbreviated, canonical_json
from triage.contracts.options import BudgetLimits, IssueContext
from triage.contracts.payloads import (
    Asked,
    PinRequest,
    Preview,
    PreviewRequest,
    RunContext,
    Turn,
)
from triage.contracts.request import parse_request
from triage.policy.rules import BUILTIN_RULES
from triage.storage.documents import SHARED, Document, DocumentKind

SCOPE = "5c0fe" * 6


async def pin(services: Services, **changes: Any) -> RunContext:  # noqa: ANN401 - any fields
    """Pin a run of the usual request."""
    request = PinRequest(
        scope=SCOPE, request=parse_request(a_request()), context=IssueContext(), model=None
    ).model_copy(update=changes)
    context: RunContext = await ActivityEnvironment().run(
        RunContextActivities(services).pin, request
    )
    return context


async def preview(services: Services, *labels: str, attempt: int = 1) -> Preview:
    """Show what adding labels would change."""
    env = ActivityEnvironment()
    env.info = replace(env.info, attempt=attempt)
    shown: Preview = await env.run(
        PreviewActivities(services).preview, PreviewRequest(target=TARGET, labels=labels)
    )
    return shown


async def test_a_run_is_pinned_to_what_is_in_force(writing: Writing) -> None:
    """Rules, tools, model and the issue's content come back by digest, the rules as a snapshot."""
    context = await pin(writing.services)
    assert (None, "rules", writing.tracker.digest, True) == (
        context.refused,
        context.model,
        context.content_digest,
        context.local_trust,
    )
    assert context.policy is not None
    assert BUILTIN_RULES.routes == context.policy.routes
    assert BUILTIN_RULES.digest() == context.provenance.policy
    assert writing.services.tools.digest() == context.provenance.tools
    assert context.provenance.model.startswith("rules@")


async def test_the_first_answer_comes_along_where_it_is_sure_to_be_asked_for(
    services: Services,
) -> None:
    """Not unless the run says so, nor of what may cost, nor where rules bound what is spent."""
    turn = Turn(step=1, version=2)
    script = await services.documents.put(SHARED, DocumentKind.SCRIPT, b"[]")
    bounded = replace(services, rules=rules_with(budget=BudgetLimits(evidence_bytes=10)))
    stepless = replace(services, rules=rules_with(max_steps=0))
    pinned = [
        await pin(services, turn=turn),
        await pin(services),
        await pin(services, turn=turn, model=f"recorded:{script}"),
        await pin(bounded, turn=turn),
        await pin(stepless, turn=turn),
    ]
    first, *others = pinned
    assert [None] * 4 == [context.answer for context in others]
    assert first.answer is not None
    digest = abbreviated(first.request_digest)
    assert Asked(step=1, version=2, request_digest=digest) == first.answer.asked
    assert first.without_answer() == pinned[1]
    assert first.without_answer().model_fields_set == pinned[1].model_fields_set


async def test_only_models_that_ask_nobody_are_called_inside_a_task(services: Services) -> None:
    """A run whose models all answer by themselves calls them locally; one other, and none is."""
    script = await services.documents.put(SHARED, DocumentKind.SCRIPT, b"[]")
    recorded = f"recorded:{script}"
    mixed = replace(services, rules=rules_with(fallback_models=(recorded,)))
    alone, other, beside = (
        await pin(services),
        await pin(services, model=recorded),
        await pin(mixed),
    )
    assert (True, False, False) == (alone.local_model, other.local_model, beside.local_model)


async def test_the_request_and_the_rules_are_stored(services: Services) -> None:
    """The request is kept under the run's scope and expires; the rules are shared and stay."""
    context = await pin(services)
    request = await services.documents.get(SCOPE, DocumentKind.REQUEST, context.request_digest)
    assert isinstance(request, Document)
    assert canonical_json(a_request()) == request.body
    assert request.expires_at is not None
    rules = await services.documents.get(SHARED, DocumentKind.POLICY, context.provenance.policy)
    assert isinstance(rules, Document)
    assert rules.expires_at is None


KEPT = {"sooner": (7, 7), "later": (90, 30), "not said": (None, 30)}


@pytest.mark.parametrize("name", KEPT)
async def test_rules_may_have_content_removed_sooner(services: Services, name: str) -> None:
    """The request is kept as long as the setting says, or as the rules do if that is shorter."""
    days, kept = KEPT[name]
    ruled = replace(services, rules=rules_with(evidence_retention_days=days))
    context = await pin(ruled)
    request = await services.documents.get(SCOPE, DocumentKind.REQUEST, context.request_digest)
    assert isinstance(request, Document)
    assert request.expires_at is not None
    assert kept == (request.expires_at - request.created_at + timedelta(minutes=1)).days


async def test_pinning_twice_is_pinning_once(services: Services) -> None:
    """A local activity may run twice: the second time changes nothing and answers alike."""
    assert await pin(services) == await pin(services)


async def test_the_context_of_a_run_is_small(services: Services) -> None:
    """It is written into each history, so with the built-in rules it stays under 2 KiB."""
    assert len((await pin(services)).model_dump_json(exclude_unset=True)) < 2_048


@pytest.mark.parametrize("model", ["gpt-5", "recorded", "recorded:sha256:" + "0" * 64, "rules:x"])
async def test_a_model_that_cannot_be_had_is_a_refusal(services: Services, model: str) -> None:
    """An unknown model is an answer, not an error, and the rest of the context stays empty."""
    context = await pin(services, model=model)
    assert context.refused is not None
    assert (None, "", "") == (context.policy, context.request_digest, context.model)


async def test_a_refusal_quotes_little_of_a_strange_name(services: Services) -> None:
    """What a refusal repeats of a model's name is short and printable."""
    context = await pin(services, model="x\x1b[31m" + "y" * 500)
    assert context.refused is not None
    assert "\x1b" not in context.refused
    assert len(context.refused) < 200


async def test_an_issue_or_tracker_that_is_not_there_is_a_refusal(writing: Writing) -> None:
    """A run on an issue that cannot be found, or in an unknown tracker, is refused."""
    unknown = await pin(writing.services, context=IssueContext(tracker="nowhere"))
    assert unknown.refused is not None
    writing.tracker.exists = False
    assert (await pin(writing.services)).refused is not None


async def test_a_changed_rules_file_does_not_reach_pinned_runs(services: Services) -> None:
    """Whoever asks for pinned rules gets those of the digest, whatever is in force by now."""
    old = (await pin(services)).provenance.policy
    changed = replace(services, rules=rules_with(max_steps=9), _rules={})
    new = (await pin(changed)).provenance.policy
    assert old != new
    assert (3, 9) == (
        (await changed.pinned_rules(old)).max_steps,
        (await changed.pinned_rules(new)).max_steps,
    )


async def test_a_preview_shows_labels_before_and_after(writing: Writing) -> None:
    """The labels that are there stay, and the new ones are added, each list sorted."""
    writing.tracker.labels.add("documentation")
    shown = await preview(writing.services, "component:api", "bug")
    assert (("documentation",), ("bug", "component:api", "documentation"), ()) == (
        shown.labels_before,
        shown.labels_after,
        shown.missing,
    )
    assert writing.tracker.digest == shown.content_digest
    assert 0 == writing.tracker.calls


async def test_a_preview_names_what_the_tracker_does_not_have(writing: Writing) -> None:
    """Labels outside the inventory are listed, so that nobody is asked about them."""
    assert ("vip",) == (await preview(writing.services, "bug", "vip")).missing


async def test_a_preview_of_an_issue_that_is_gone_says_so(writing: Writing) -> None:
    """An issue that vanished is an answer."""
    writing.tracker.exists = False
    assert (await preview(writing.services, "bug")).gone


PREVIEW_FAULTS = {
    Read.CUT: ("tool_timeout", False),
    Read.ERROR: ("tool_error", False),
    Read.FORBIDDEN: ("tool_error", True),
}


@pytest.mark.parametrize("fault", PREVIEW_FAULTS)
async def test_a_preview_that_a_tracker_does_not_give_ends_by_name(
    writing: Writing, fault: Read
) -> None:
    """A refusal is final at once, and any other fault after some attempts, under a name of ours."""
    name, is_final = PREVIEW_FAULTS[fault]
    found = []
    for attempt in range(1, LOOK_ATTEMPTS + 1):
        writing.tracker.will(fault)
        with pytest.raises(ApplicationError) as caught:
            await preview(writing.services, "bug", attempt=attempt)
        found.append((caught.value.type, caught.value.non_retryable))
    assert [(name, is_final)] * (LOOK_ATTEMPTS - 1) + [(name, True)] == found


async def test_a_preview_is_bounded(writing: Writing, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tracker that never answers costs a preview its time and no more."""
    monkeypatch.setattr("activities.far_end.LOOK_SECONDS", 0.05)
    writing.tracker.will(Read.HANGS)
    with pytest.raises(ApplicationError, match="does not answer"):
        await preview(writing.services, "bug")
