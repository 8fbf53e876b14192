"""Every way in which a run ends by its model's decisions, with the versions it goes through."""

from __future__ import annotations

import pytest
from pydantic import JsonValue

from tests.workflow.decisions import (
    ISSUE,
    TIMEOUT,
    a_request,
    as_object,
    call,
    final,
    hand_over,
    label,
    lookup,
    policy,
)
from tests.workflow.runs import outcome
from tests.workflow.world import World
from triage.contracts.response import Status, TriageResponse

REVIEW, FAILED = Status.REVIEW_REQUIRED, Status.FAILED


async def test_a_grounded_final_completes_the_run(world: World) -> None:
    """A run whose final answer cites what its tools returned completes with exactly that answer."""
    response = await world.play(lookup(), final("owners-api"))
    expected = TriageResponse(
        run_id=f"run-{ISSUE}",
        request_id=ISSUE,
        status=Status.COMPLETED,
        route="bug",
        labels=("bug", "component:api"),
        owner="backend-team",
        evidence_ids=("owners-api",),
        failure=None,
        reason="the API's owner takes its bugs",
        tool_sequence=("lookup_component_owner",),
        retries=0,
        steps=2,
    )
    assert expected == response


async def test_a_review_carries_route_reason_and_evidence(world: World) -> None:
    """A run that its model hands over ends in review with the model's words and no failure."""
    handed = hand_over("policy-security", route="security_review", reason="may be an exploit")
    response = await world.play(policy(), handed)
    assert (REVIEW, None) == outcome(response)
    assert ("security_review", "may be an exploit") == (response.route, response.reason)
    assert (("policy-security",), (), None) == (
        response.evidence_ids,
        response.labels,
        response.owner,
    )


async def test_lists_keep_their_order_and_duplicates(world: World) -> None:
    """Labels and evidence ids come back as the model gave them, repeats included."""
    script = final("owners-api", "policy-feature", "owners-api", labels=("bug", "bug"))
    response = await world.play(policy("feature"), lookup(), script)
    assert ("owners-api", "policy-feature", "owners-api") == response.evidence_ids
    assert ("bug", "bug") == response.labels


async def test_a_review_needs_no_evidence(world: World) -> None:
    """A model may hand over at once, citing nothing."""
    response = await world.play(hand_over())
    assert (REVIEW, None, 1) == (*outcome(response), response.steps)


async def test_the_reason_of_a_response_is_bounded(world: World) -> None:
    """A reason of any length comes back cut to 2,000 characters, with the cut marked."""
    response = await world.play(hand_over(reason="x" * 60_000))
    assert ("x" * 1_999 + "…") == response.reason


UNGROUNDED: list[tuple[str, list[JsonValue], str]] = [
    ("a final without evidence", [lookup(), final()], "final_output_invalid"),
    ("a final before any read", [final("owners-api")], "final_output_invalid"),
    (
        "a final with one invented id",
        [lookup(), final("owners-api", "owners-ui")],
        "final_output_invalid",
    ),
    ("a review with an invented id", [lookup(), hand_over("owners-ui")], "model_invalid_output"),
    ("a receipt of a write that never was", [final("mutation-receipt")], "final_output_invalid"),
]


@pytest.mark.parametrize(("case", "script", "failure"), UNGROUNDED, ids=[c[0] for c in UNGROUNDED])
async def test_only_evidence_of_this_run_can_be_cited(
    world: World, case: str, script: list[JsonValue], failure: str
) -> None:
    """An answer that cites what no tool returned in this run fails, and nothing of it is kept."""
    response = await world.play(*script)
    assert (FAILED, failure) == outcome(response)
    assert (None, (), None, ()) == (
        response.route,
        response.labels,
        response.owner,
        response.evidence_ids,
    )


NO_DECISIONS: list[JsonValue] = [
    None,
    True,
    7,
    "final",
    [],
    [final("owners-api")],
    {},
    {"kind": "delete_repository"},
    {"kind": ["final"]},
    {"kind": "final"},
    {**as_object(final("owners-api")), "confidence": 0.9},
    {**as_object(final("owners-api")), "route": "vip"},
    {**as_object(final("owners-api")), "labels": ["triage:automerge"]},
    {**as_object(final("owners-api")), "owner": ""},
    {**as_object(final("owners-api")), "labels": "bug"},
    {**as_object(hand_over()), "evidence_ids": [1]},
    {**as_object(hand_over()), "reason": None},
    {"kind": "call_tool", "tool": {"name": "lookup_component_owner"}},
    call("", {"path": "a"}),
    {"error": "model_timeout", "kind": "final"},
]


@pytest.mark.parametrize("decision", NO_DECISIONS, ids=range(len(NO_DECISIONS)))
async def test_what_is_not_exactly_one_decision_fails_the_run(
    world: World, decision: JsonValue
) -> None:
    """Output that is not one decision ends the run at once: no tool runs and nothing is retried."""
    response = await world.play(decision, lookup(), final("owners-api"))
    assert (FAILED, "model_invalid_output") == outcome(response)
    assert ((), 1, 0) == (response.tool_sequence, response.steps, response.retries)


async def test_a_script_past_its_end_is_no_decision(world: World) -> None:
    """A model that has nothing more to say fails the run."""
    response = await world.play(lookup())
    assert (FAILED, "model_invalid_output", 2) == (*outcome(response), response.steps)


WRONG_CALLS: list[tuple[JsonValue, str]] = [
    (call("delete_repository", {}), "unknown_tool"),
    (call("Lookup_Component_Owner", {"path": "a"}), "unknown_tool"),
    (call("decide", {"scope": "a"}), "unknown_tool"),
    (call("pin_run_context", {}), "unknown_tool"),
    (call("lookup_component_owner", {}), "invalid_tool_arguments"),
    (call("lookup_component_owner", {"path": ""}), "invalid_tool_arguments"),
    (call("lookup_component_owner", {"path": 3}), "invalid_tool_arguments"),
    (call("lookup_component_owner", {"path": "a", "depth": 1}), "invalid_tool_arguments"),
    (call("search_triage_policy", {"path": "a"}), "invalid_tool_arguments"),
    (call("apply_labels", {"issue_id": ISSUE, "labels": []}), "invalid_tool_arguments"),
    (call("apply_labels", {"issue_id": ISSUE, "labels": "bug"}), "invalid_tool_arguments"),
    (call("apply_labels", {"issue_id": 1, "labels": ["bug"]}), "invalid_tool_arguments"),
]


@pytest.mark.parametrize(("wrong", "failure"), WRONG_CALLS, ids=range(len(WRONG_CALLS)))
async def test_a_call_outside_the_registry_never_runs(
    world: World, wrong: JsonValue, failure: str
) -> None:
    """An unregistered tool, or arguments that are not its schema's, fail the run by name."""
    run = await world.start(wrong, lookup(), final("owners-api"), mode="approve")
    response = await run.response()
    assert (FAILED, failure, 1) == (*outcome(response), len(response.tool_sequence))
    # Received, validated, deciding, failed: it was never pending.
    assert 3 == (await run.state()).version
    assert [] == await run.mutations()


@pytest.mark.parametrize("max_steps", [0, 1, 2, 3, 7])
async def test_steps_are_bounded(world: World, max_steps: int) -> None:
    """A model that never ends gets exactly `max_steps` decisions, and then the run fails."""
    run = await world.start(*[lookup()] * 9, max_steps=max_steps)
    response = await run.response()
    assert (FAILED, "max_steps_exceeded", max_steps) == (*outcome(response), response.steps)
    assert ("lookup_component_owner",) * max_steps == response.tool_sequence
    # Validated; deciding, pending and complete for each step; failed.
    assert 1 + 3 * max_steps + 1 == (await run.state()).version


async def test_the_default_is_three_steps(world: World) -> None:
    """Without an option a run has three steps and one retry."""
    response = await world.play(*[lookup()] * 4)
    assert (FAILED, "max_steps_exceeded", 3) == (*outcome(response), response.steps)


async def test_the_last_step_may_end_the_run(world: World) -> None:
    """A decision in the last permitted step counts."""
    response = await world.play(lookup(), final("owners-api"), max_steps=2)
    assert (Status.COMPLETED, None, 2) == (*outcome(response), response.steps)


TIMEOUTS: list[tuple[list[JsonValue], int, tuple[Status, str | None, int, int], int]] = [
    ([TIMEOUT, lookup(), final("owners-api")], 1, (Status.COMPLETED, None, 1, 3), 6),
    ([lookup(), TIMEOUT, final("owners-api")], 1, (Status.COMPLETED, None, 1, 3), 6),
    ([TIMEOUT, TIMEOUT, hand_over()], 1, (REVIEW, "model_timeout", 1, 2), 3),
    ([TIMEOUT, hand_over()], 0, (REVIEW, "model_timeout", 0, 1), 3),
    ([TIMEOUT, TIMEOUT, hand_over()], 2, (REVIEW, None, 2, 3), 3),
    ([TIMEOUT] * 4, 9, (FAILED, "max_steps_exceeded", 3, 3), 3),
]


@pytest.mark.parametrize(
    ("script", "retries", "expected", "version"), TIMEOUTS, ids=range(len(TIMEOUTS))
)
async def test_model_retries_are_visible_bounded_and_no_transitions(
    world: World,
    script: list[JsonValue],
    retries: int,
    expected: tuple[Status, str | None, int, int],
    version: int,
) -> None:
    """A timeout costs a step and counts as a retry, but moves no version."""
    run = await world.start(*script, max_model_retries=retries)
    response = await run.response()
    assert expected == (*outcome(response), response.retries, response.steps)
    assert version == (await run.state()).version


async def test_the_first_proposed_tools_are_pending_at_three_six_and_nine(world: World) -> None:
    """The version of the first tool call is 3, and each further one adds 3."""
    script = [lookup(), policy("feature"), label(), final("owners-api")]
    run = await world.start(*script, max_steps=4, mode="approve")
    assert 9 == (await run.waiting()).version
    await run.review("reject")
    response = await run.response()
    assert (REVIEW, "approval_required") == outcome(response)
    assert 10 == (await run.state()).version


async def test_decisions_are_recorded_in_order(world: World) -> None:
    """The state lists each decision with its step, kind, call id and tool."""
    run = await world.start(TIMEOUT, lookup(), final("owners-api"))
    await run.response()
    found = [(d.step, d.kind, d.call_id, d.tool) for d in (await run.state()).decisions]
    expected = [
        (2, "call_tool", "call-1", "lookup_component_owner"),
        (3, "final", None, None),
    ]
    assert expected == found


ENTAILED: list[tuple[str, list[JsonValue], tuple[Status, str | None]]] = [
    ("as the record says", [lookup(), final("owners-api")], (Status.COMPLETED, None)),
    (
        "another owner",
        [lookup(), final("owners-api", owner="security-team")],
        (REVIEW, "final_output_invalid"),
    ),
    (
        "another route",
        [lookup(), final("owners-api", route="feature")],
        (REVIEW, "final_output_invalid"),
    ),
    (
        "an owner from evidence that is not cited",
        [lookup(), policy("feature"), final("owners-api", owner="product-team", route="feature")],
        (REVIEW, "final_output_invalid"),
    ),
    (
        "a path that the issue does not name",
        [
            lookup("docs/getting-started.md"),
            final("owners-docs", route="documentation", owner="docs-team"),
        ],
        (REVIEW, "final_output_invalid"),
    ),
    (
        "a policy that wants a person to decide",
        [
            policy("security"),
            final("policy-security", route="security_review", owner="security-team"),
        ],
        (REVIEW, "final_output_invalid"),
    ),
    (
        "a policy's own route and owner",
        [policy("feature"), final("policy-feature", route="feature", owner="product-team")],
        (Status.COMPLETED, None),
    ),
]


@pytest.mark.parametrize(("case", "script", "expected"), ENTAILED, ids=[c[0] for c in ENTAILED])
async def test_entailed_grounding_recomputes_owner_and_route(
    world: World, case: str, script: list[JsonValue], expected: tuple[Status, str | None]
) -> None:
    """With `entailed`, an answer that its cited evidence does not yield goes to a person, whole."""
    response = await world.play(*script, grounding="entailed")
    assert expected == outcome(response)
    # The proposal stays in the response.
    assert None not in {response.owner, response.route}


async def test_cited_grounding_takes_any_owner(world: World) -> None:
    """With `cited`, the source document's rule, a returned id is enough."""
    response = await world.play(lookup(), final("owners-api", owner="security-team"))
    assert (Status.COMPLETED, "security-team") == (response.status, response.owner)


async def test_the_rules_model_triages_without_a_script(world: World) -> None:
    """The model that needs no key carries an ordinary bug to a grounded answer."""
    response = await world.play(model="rules")
    assert (Status.COMPLETED, None, "bug", "backend-team") == (
        *outcome(response),
        response.route,
        response.owner,
    )
    assert ("owners-api",) == response.evidence_ids


@pytest.mark.parametrize("model", ["recorded", "recorded:sha256:" + "0" * 64, "nobody", "rules:x"])
async def test_a_model_that_cannot_be_had_is_invalid_input(world: World, model: str) -> None:
    """An unknown model, or a script that is not stored, ends the run before its first step."""
    run = await world.start(model=model)
    response = await run.response()
    assert (FAILED, "invalid_input", 0) == (*outcome(response), response.steps)
    assert 1 == (await run.state()).version


async def test_an_unknown_tracker_is_invalid_input(world: World) -> None:
    """A tracker that no worker has ends the run before its first step."""
    response = await world.play(context={"tracker": "nowhere"})
    assert (FAILED, "invalid_input") == outcome(response)


async def test_two_runs_of_one_request_do_not_share_evidence(world: World) -> None:
    """What one run read cannot be cited by another run of the same request."""
    first = await world.start(lookup(), final("owners-api"))
    assert Status.COMPLETED is (await first.response()).status
    response = await world.play(final("owners-api"), context={"repository": first.id})
    assert (FAILED, "final_output_invalid") == outcome(response)


async def test_a_request_may_hold_any_text(world: World) -> None:
    """NUL, lone surrogates, bidi marks and a body of a mebibyte are text like any other."""
    odd = a_request(title="nul \x00 bidi \u202e", body="é\u2028😀" + "x" * 1_048_500)
    response = await world.play(lookup(), final("owners-api"), request=odd)
    assert (Status.COMPLETED, None) == outcome(response)
