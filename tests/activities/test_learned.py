"""Weights by digest: a run is pinned to them, and every model of it has the same second reader."""

from __future__ import annotations

from dataclasses import replace

import pytest
from temporalio.testing import ActivityEnvironment

from activities.decide import DecideActivities
from activities.run_context import RunContextActivities
from activities.services import Services
from tests.activities.test_run_context import SCOPE, pin
from tests.fixed_rules import rules_with
from tests.unit.models.learned_samples import classifier
from tests.workflow.decisions import a_request, as_object
from triage.contracts.canonical import canonical_json, short_hash
from triage.contracts.options import IssueContext
from triage.contracts.payloads import DecideOutcome, DecideRequest, DecideResult, PinRequest
from triage.contracts.request import parse_request
from triage.models.second_opinion import DISAGREES
from triage.storage.documents import SHARED, DocumentKind

KNOWN = classifier()
MODEL = f"learned:{KNOWN.digest}"
FINAL = {
    "kind": "final",
    "route": "bug",
    "labels": ["bug"],
    "owner": "backend-team",
    "evidence_ids": ["owners-api"],
    "reason": "r",
}


@pytest.fixture
async def stored(services: Services) -> Services:
    """A worker whose database has the weights."""
    body = KNOWN.weights.body()
    assert KNOWN.digest == await services.documents.put(SHARED, DocumentKind.WEIGHTS, body)
    return services


async def _decide(services: Services, model: str, title: str, opinion: str | None) -> DecideResult:
    rules = rules_with(second_opinion=opinion).rules
    body = canonical_json(a_request(title=title))
    request = DecideRequest(
        scope=SCOPE,
        step=1,
        version=2,
        model=model,
        request_digest=await services.documents.put(SCOPE, DocumentKind.REQUEST, body),
        policy_digest=await services.pin_rules(rules),
    )
    activities = DecideActivities(services)
    result: DecideResult = await ActivityEnvironment().run(activities.decide, request)
    return result


async def _script(services: Services) -> str:
    body = canonical_json([FINAL])
    return f"recorded:{await services.documents.put(SHARED, DocumentKind.SCRIPT, body)}"


async def test_a_run_is_pinned_to_its_weights(stored: Services) -> None:
    """Model and second opinion are named by their digests in what the run was decided with."""
    services = replace(stored, rules=rules_with(second_opinion=KNOWN.digest))
    context = await pin(services, model=MODEL)
    assert (None, MODEL) == (context.refused, context.model)
    beside = f"learned@{KNOWN.digest}"
    assert f"{beside}, beside {beside}" == context.provenance.model


async def test_a_run_without_its_weights_does_not_begin(services: Services) -> None:
    """Neither as its model nor as its second opinion."""
    assert "no weights are stored" in str((await pin(services, model=MODEL)).refused)
    services = replace(services, rules=rules_with(second_opinion=KNOWN.digest))
    assert "the second opinion are not stored" in str((await pin(services)).refused)


async def test_what_the_two_disagree_on_goes_to_a_person(stored: Services) -> None:
    """Whatever the run's model is; where they agree, its answer stands."""
    script = await _script(stored)
    agreed = await _decide(stored, script, "crash", KNOWN.digest)
    assert FINAL == agreed.decision
    disagreed = await _decide(stored, script, "add", KNOWN.digest)
    assert isinstance(disagreed.decision, dict)
    assert ("request_review", "bug", DISAGREES) == tuple(
        disagreed.decision[name] for name in ("kind", "route", "reason")
    )
    assert FINAL == (await _decide(stored, script, "add", None)).decision


async def test_an_opinion_that_is_gone_is_no_agreement(services: Services) -> None:
    """Weights that were removed while a run went on send it to review."""
    result = await _decide(services, await _script(services), "crash", KNOWN.digest)
    assert DecideOutcome.UNAVAILABLE is result.outcome


async def test_weights_are_checked_once_while_they_are_in_use(stored: Services) -> None:
    """Every step asks for them; what is not weights is as good as none."""
    first = await stored.load_classifier(KNOWN.digest)
    assert first is not None
    assert first is await stored.load_classifier(KNOWN.digest)
    digest = await stored.documents.put(SHARED, DocumentKind.WEIGHTS, b"{}")
    assert await stored.load_classifier(digest) is None


async def test_a_run_s_repository_chooses_the_group(stored: Services) -> None:
    """What was taught about one repository counts for its issues, and for no other's.

    In ``acme/api`` a crash is asked for, so that a final of the route bug is disagreed with.
    """
    services = replace(stored, rules=rules_with(second_opinion=KNOWN.digest))
    script = await _script(stored)
    kinds = []
    for repository in ("acme/api", "acme/web"):
        scope = short_hash("scope", repository)
        context = IssueContext(repository=repository, issue="7")
        asked = parse_request(a_request(title="crash"))
        request = PinRequest(scope=scope, request=asked, context=context, model=script)
        pinned = await ActivityEnvironment().run(RunContextActivities(services).pin, request)
        decided = await ActivityEnvironment().run(
            DecideActivities(services).decide,
            DecideRequest(
                scope=scope,
                step=1,
                version=2,
                model=script,
                request_digest=pinned.request_digest,
                policy_digest=pinned.provenance.policy,
            ),
        )
        kinds.append(as_object(decided.decision)["kind"])
    assert ["request_review", "final"] == kinds


async def test_only_who_makes_something_of_it_is_told_where_an_issue_is(stored: Services) -> None:
    """Runs of other models store and read nothing for it."""
    for model, kept in ((await _script(stored), False), (MODEL, True)):
        request = PinRequest(
            scope=short_hash("scope", model),
            request=parse_request(a_request()),
            context=IssueContext(repository="acme/api", issue="7"),
            model=model,
        )
        await ActivityEnvironment().run(RunContextActivities(stored).pin, request)
        found = await stored.documents.newest(request.scope, DocumentKind.TARGET)
        assert kept is (found is not None)
