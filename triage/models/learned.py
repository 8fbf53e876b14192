"""The model that was taught by labelled issues: a classifier chooses the class, evidence the rest.

It reads the same as the rules model and answers under the same conditions; only the class comes
from weights. What looks like a matter of security goes to a person by the same words as there, and
so does whatever the classifier is not sure of. Nothing of an issue, and nothing that was learned
from others, stands in a reason.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from triage.contracts.payloads import DecideOutcome, DecideResult
from triage.models.base import ModelRequest
from triage.models.classifier import Classifier, Guess
from triage.models.learned_routes import is_security, route_of
from triage.models.rules import answer
from triage.models.rules_score import Assessment, assess_as

UNSURE: Final = "what was learned from labelled issues does not tell clearly what this is"
NO_ROUTE: Final = "what was learned from labelled issues names a class that the rules do not have"
TAUGHT_SECURITY: Final = "labelled issues like it"


class LearnedModel:
    """Triages an issue by weights that were learned; equal requests get equal answers.

    Args:
        classifier: what was learned.
        group: whose own weights are added; without one, those of the group that is called as the
            issue's repository, and where there is none, what all groups share decides.
    """

    def __init__(self, classifier: Classifier, group: str = "") -> None:
        self._classifier = classifier
        self._group = group
        self.name = "learned"
        self.revision = f"{classifier.digest}:{group}" if group else classifier.digest

    async def decide(self, request: ModelRequest) -> DecideResult:
        """Return a read, a review or a grounded final; without routes there is no legal answer."""
        if not request.routes:
            return DecideResult(outcome=DecideOutcome.INVALID, detail="the rules name no routes")
        guess = self._guess(request)
        found = self._assessed(request, guess)
        grounds = f"what labelled issues taught ({guess.sure:.2f})"
        decision = answer(request, found, grounds)
        return DecideResult(outcome=DecideOutcome.DECISION, decision=decision)

    def _guess(self, request: ModelRequest) -> Guess:
        issue, group = request.request, self._group or request.repository
        return self._classifier.guess(issue.title, issue.body, group)

    def _assessed(self, request: ModelRequest, guess: Guess) -> Assessment:
        issue = request.request
        route = route_of(guess.label, request.routes)
        sure = self._classifier.is_sure(guess)
        doubt = UNSURE if not sure else NO_ROUTE if route is None else None
        found = assess_as(route, doubt, issue.title, issue.body, issue.changed_paths)
        if route is None or not is_security(route):
            return found
        return replace(found, security=found.security or (TAUGHT_SECURITY,))
