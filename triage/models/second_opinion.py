"""A model beside a classifier: where the two disagree, a person decides.

Why it exists: two readers that err in different ways err together less often than each alone. The
classifier only ever takes away: it turns an answer into a review, or raises one to security, and
never gives a route, a label or an owner to an answer that stands.
"""

from __future__ import annotations

from typing import Final

from pydantic import JsonValue

from triage.contracts.payloads import DecideOutcome, DecideResult
from triage.models.base import ModelRequest
from triage.models.classifier import Classifier
from triage.models.learned_routes import is_security, route_of

DISAGREES: Final = "a second opinion disagrees with the model, so a person decides"
RAISES: Final = "a second opinion sees a matter of security, so a person decides"


class SecondOpinion:
    """Reads beside a model, and hands what it disagrees with to a person.

    It disagrees when its likeliest route is another than the answer's, and it either
    is sure or was taught the answer's route. It raises to security only when it is sure, and never
    lowers an answer from there. A read is not an answer; a write is one by the labels it names.
    """

    def __init__(self, classifier: Classifier) -> None:
        self._classifier = classifier
        self.name = f"learned@{classifier.digest}"

    def on(self, request: ModelRequest, result: DecideResult) -> DecideResult:
        """Return a model's answer, or the review that it becomes; what was used stays charged."""
        if result.outcome is not DecideOutcome.DECISION or not isinstance(result.decision, dict):
            return result
        review = self._review(request, result.decision)
        return result if review is None else result.model_copy(update={"decision": review})

    def _review(self, request: ModelRequest, decision: dict[str, JsonValue]) -> JsonValue:
        """Return the review that an answer becomes; None where it stays as it is."""
        answered = _routes(request, decision)
        if not answered or any(map(is_security, answered)):
            return None
        issue = request.request
        guess = self._classifier.guess(issue.title, issue.body, request.repository)
        sure = self._classifier.is_sure(guess)
        route = route_of(guess.label, request.routes)
        if sure and route is not None and is_security(route):
            return _handed_over(decision, route, RAISES)
        if route in answered or decision["kind"] == "request_review":
            return None
        if sure or self._was_taught(answered, request):
            return _handed_over(decision, answered[0], DISAGREES)
        return None

    def _was_taught(self, answered: list[str], request: ModelRequest) -> bool:
        taught = {route_of(label, request.routes) for label in self._classifier.labels}
        return not taught.isdisjoint(answered)


def _routes(request: ModelRequest, decision: dict[str, JsonValue]) -> list[str]:
    """Return the routes that an answer names; what is no answer names none.

    Nothing here is checked yet: a decision of a wrong shape is for the loop to refuse.
    """
    kind = decision.get("kind")
    if kind == "final" or kind == "request_review":  # noqa: PLR1714 - a kind may be unhashable
        route = decision.get("route")
        return [route] if isinstance(route, str) and route in request.routes else []
    tool = decision.get("tool") if kind == "call_tool" else None
    if not isinstance(tool, dict) or not _writes(request, tool.get("name")):
        return []
    arguments = tool.get("arguments")
    labels = arguments.get("labels") if isinstance(arguments, dict) else None
    named = (
        [label for label in labels if isinstance(label, str)] if isinstance(labels, list) else []
    )
    found = (route_of(label, request.routes) for label in named)
    return list(dict.fromkeys(route for route in found if route is not None))


def _writes(request: ModelRequest, name: JsonValue) -> bool:
    return any(tool.side_effect and tool.name == name for tool in request.tools)


def _handed_over(decision: dict[str, JsonValue], route: str, reason: str) -> JsonValue:
    """Return a review that cites what the answer cited."""
    return {
        "kind": "request_review",
        "route": route,
        "reason": reason,
        "evidence_ids": decision.get("evidence_ids", []),
    }
