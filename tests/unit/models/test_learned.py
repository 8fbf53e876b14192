"""Promises of the learned model: weights choose the class, evidence the rest, people the doubt."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.models.driver import ask, issue, model_request, play
from tests.unit.models.learned_samples import classifier
from triage.contracts.decision import FinalAnswer, RequestReview
from triage.contracts.payloads import DecideOutcome
from triage.models.factory import MissingScript, UnknownModel, build_model
from triage.models.learned import NO_ROUTE, UNSURE, LearnedModel
from triage.models.learned_routes import route_of

MODEL = LearnedModel(classifier())
API = ("backend/api.py",)


def test_a_sure_class_is_answered_from_the_evidence() -> None:
    """The route is the learned one; owner, labels and citations come from what was read."""
    decision = play(MODEL, issue("crash", "text", API)).decision
    assert isinstance(decision, FinalAnswer)
    assert ("bug", "backend-team", ("owners-api",)) == (
        decision.route,
        decision.owner,
        decision.evidence_ids,
    )
    assert ("bug", "component:api") == decision.labels
    assert decision.reason.startswith("bug by what labelled issues taught (1.00)")


def test_the_repository_is_the_group() -> None:
    """Weights of the issue's own repository count by themselves, and another one's do not."""
    for where, route in (("acme/api", "feature"), ("acme/web", "bug"), ("", "bug")):
        asked = model_request(issue("crash", "text", API)).model_copy(update={"repository": where})
        guess = MODEL._assessed(asked, MODEL._guess(asked))
        assert route == guess.leading
    named = LearnedModel(classifier(), "acme/api")
    asked = model_request(issue("crash", "text", API))
    assert "feature" == named._assessed(asked, named._guess(asked)).leading


def test_a_label_is_known_by_its_other_names() -> None:
    """Enhancement is what the rules call feature, and the feature policy is read for it."""
    decision = play(MODEL, issue("add", "text")).decision
    assert isinstance(decision, FinalAnswer)
    assert ("feature", "product-team") == (decision.route, decision.owner)


@pytest.mark.parametrize(
    ("title", "reason"),
    [("odd", UNSURE), ("nothing of it is known", UNSURE), ("how", NO_ROUTE), ("why", UNSURE)],
)
def test_what_it_is_unsure_of_or_has_no_route_for_goes_to_a_person(title: str, reason: str) -> None:
    """A class that the rules do not have is never proposed, however sure it is."""
    decision = play(MODEL, issue(title, "text", API)).decision
    assert isinstance(decision, RequestReview)
    assert reason == decision.reason
    assert decision.route in {"bug", "documentation", "feature", "security_review"}


@pytest.mark.parametrize("title", ["hole", "leak", "crash by sql injection", "add exploit"])
def test_security_is_raised_by_what_was_taught_and_by_words(title: str) -> None:
    """Also when it is not sure, and also when the weights see something else."""
    decision = play(MODEL, issue(title, "text", API)).decision
    assert isinstance(decision, RequestReview)
    assert "security_review" == decision.route


def test_without_a_threshold_it_answers_nothing() -> None:
    """Weights that are not good enough at any threshold send everything to people."""
    model = LearnedModel(classifier(threshold=None))
    assert isinstance(play(model, issue("crash", "text", API)).decision, RequestReview)


def test_without_routes_there_is_no_legal_answer() -> None:
    """It says so instead of inventing one."""
    request = model_request(issue("crash", "text")).model_copy(update={"routes": ()})
    assert DecideOutcome.INVALID is asyncio.run(MODEL.decide(request)).outcome


def test_a_route_of_its_own_name_is_answered_with_that_label() -> None:
    """Rules with a route for questions get questions, where the owner's labels have one."""
    request = model_request(issue("how", "text", API))
    routes = (*request.routes, "question")
    decision = ask(MODEL, request.model_copy(update={"routes": routes, "step": 3}))
    assert isinstance(decision, RequestReview)
    assert "question" == decision.route


@given(st.text(max_size=40), st.text(max_size=200))
def test_any_issue_ends_within_three_steps(title: str, body: str) -> None:
    """Whatever is written, the model reads a little and ends with a legal decision."""
    found = issue(f"x{title}", f"x{body}", API)
    assert isinstance(play(MODEL, found).decision, FinalAnswer | RequestReview)


@pytest.mark.parametrize(
    ("label", "routes", "route"),
    [
        ("bug", ("bug",), "bug"),
        ("Bug", ("bug",), "bug"),
        ("kind/bug", ("bug",), "bug"),
        ("enhancement", ("bug", "feature"), "feature"),
        ("enhancement", ("bug", "enhancement", "feature"), "enhancement"),
        ("docs", ("documentation",), "documentation"),
        ("question", ("bug", "feature"), None),
        ("area: Security", ("bug", "security_review"), "security_review"),
        ("security", ("bug",), None),
    ],
)
def test_a_label_stands_for_a_route(label: str, routes: tuple[str, ...], route: str | None) -> None:
    """By its own name, by a common other name, or not at all."""
    assert route == route_of(label, routes)


def test_it_is_named_by_the_digest_of_its_weights() -> None:
    """So a run says which weights it was decided by; what is not stored is no model."""
    known = classifier()

    async def load(digest: str) -> object:
        return known if digest == known.digest else None

    async def no_script(_digest: str) -> None:
        return None

    def build(name: str) -> object:
        return asyncio.run(build_model(name, load_script=no_script, load_classifier=load))  # type: ignore[arg-type]  # a plain object will do

    model = build(f"learned:{known.digest}")
    assert isinstance(model, LearnedModel)
    assert ("learned", known.digest) == (model.name, model.revision)
    with pytest.raises(MissingScript):
        build(f"learned:sha256:{'0' * 64}")
    grouped = build(f"learned:{known.digest}:acme/api")
    assert isinstance(grouped, LearnedModel)
    assert f"{known.digest}:acme/api" == grouped.revision
    found = play(grouped, issue("crash", "text", API)).decision
    assert isinstance(found, FinalAnswer)
    assert "feature" == found.route
    other = f"learned:{known.digest}:acme/web"
    for name in ("learned", "learned:", "learned:weights.json", other):
        with pytest.raises(UnknownModel):
            build(name)
