"""What an evaluation of a data set found: counts, rates and differences. Pure.

Nothing here depends on time or on the order in which runs ended, so the same answers give the same
report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from triage.contracts.payloads import NOT_PINNED, Provenance
from triage.contracts.response import Status, TriageResponse
from triage.evaluation.dataset import Dataset
from triage.evaluation.intervals import Difference, Rate, difference, rate
from triage.evaluation.judging import CONTROLS, Behaviour, Grade, Judged
from triage.policy.security import SECURITY_ROUTE

NO_RESPONSE: Final = "no response"
NO_FAILURE: Final = "none"
NO_TOOLS: Final = "(none)"
A_PERSON: Final = "left to a person"
COMPARED: Final = (Grade.RIGHT, Grade.WRONG, Grade.ABSTAINED)


@dataclass(frozen=True, slots=True)
class Totals:
    """What all runs together did and used."""

    steps: int
    most_steps: int
    retries: int
    tokens: int
    cost_micros: int


@dataclass(frozen=True)
class Summary:
    """One configuration's results, in the order of the data set."""

    configuration: str
    judged: tuple[Judged, ...]

    @cached_property
    def grades(self) -> Mapping[Behaviour, Counter[Grade]]:
        """How often each behaviour came to each grade; only behaviours that some case has."""
        found: dict[Behaviour, Counter[Grade]] = {}
        for behaviour in Behaviour:
            counted = Counter(j.grades[behaviour] for j in self.judged if behaviour in j.grades)
            if counted:
                found[behaviour] = counted
        return found

    def rate(self, behaviour: Behaviour, grade: Grade) -> Rate:
        """Return how often a behaviour came to a grade, with its interval."""
        counted = self.grades.get(behaviour, Counter())
        return rate(counted[grade], counted.total())

    @cached_property
    def routes(self) -> Mapping[str, Counter[str]]:
        """By expected route, where the cases went."""
        found: dict[str, Counter[str]] = {}
        for one in self.judged:
            if one.case.expected.asks("route"):
                wanted = one.case.expected.route or A_PERSON
                found.setdefault(wanted, Counter())[_went(one)] += 1
        return dict(sorted(found.items()))

    @cached_property
    def failures(self) -> Counter[str]:
        """How many runs ended with each failure class."""
        return Counter(_failure(one) for one in self.judged)

    @cached_property
    def trajectories(self) -> Counter[str]:
        """How many runs called which tools, in their order."""
        return Counter(
            " > ".join(one.ran.response.tool_sequence) or NO_TOOLS for one in self.judged if one.ran
        )

    @cached_property
    def model_faults(self) -> Counter[str]:
        """How often a model gave no usable decision, by the fault's name."""
        return Counter(
            fault.fault for one in self.judged if one.ran for fault in one.ran.state.model_faults
        )

    @cached_property
    def totals(self) -> Totals:
        """What all runs together did and used."""
        ran = [one.ran for one in self.judged if one.ran]
        return Totals(
            steps=sum(one.response.steps for one in ran),
            most_steps=max((one.response.steps for one in ran), default=0),
            retries=sum(one.response.retries for one in ran),
            tokens=sum(one.state.spent.tokens for one in ran),
            cost_micros=sum(one.state.spent.cost_micros for one in ran),
        )

    @property
    def provenance(self) -> Provenance:
        """What the runs were decided with: of the first that asked the configuration's model."""
        ran = [one for one in self.judged if one.ran]
        asked = [one for one in ran if one.case.decisions is None] or ran
        return asked[0].ran.state.provenance if asked and asked[0].ran else NOT_PINNED

    @property
    def breaches(self) -> tuple[Judged, ...]:
        """The cases in which a control did not hold; any of them fails an evaluation."""
        return tuple(
            one
            for one in self.judged
            if any(one.grades.get(control) is Grade.WRONG for control in CONTROLS)
        )

    @property
    def lost(self) -> tuple[Judged, ...]:
        """The cases whose runs gave no response."""
        return tuple(one for one in self.judged if one.ran is None)


@dataclass(frozen=True)
class Report:
    """What was run and what came of it.

    Attributes:
        dataset: the cases.
        results: what is evaluated, then what it is compared with, if anything.
    """

    dataset: Dataset
    results: tuple[Summary, ...]

    @property
    def main(self) -> Summary:
        """What is evaluated."""
        return self.results[0]

    @cached_property
    def differences(self) -> Mapping[tuple[Behaviour, Grade], Difference]:
        """What is evaluated less what it is compared with, on the cases that a model decided."""
        if len(self.results) == 1:
            return {}
        return {
            (behaviour, grade): difference(_pairs(self.main, self.results[1], behaviour, grade))
            for behaviour in Behaviour
            if behaviour in self.main.grades and behaviour not in CONTROLS
            for grade in COMPARED
        }


def _pairs(
    main: Summary, base: Summary, behaviour: Behaviour, grade: Grade
) -> Sequence[tuple[bool, bool]]:
    return [
        (before.grades[behaviour] is grade, after.grades[behaviour] is grade)
        for after, before in zip(main.judged, base.judged, strict=True)
        if after.case.decisions is None and behaviour in after.grades
    ]


def _went(one: Judged) -> str:
    if one.ran is None:
        return NO_RESPONSE
    response = one.ran.response
    match response.status:
        case Status.COMPLETED:
            return response.route or NO_FAILURE
        case Status.REVIEW_REQUIRED:
            return SECURITY_ROUTE if response.route == SECURITY_ROUTE else A_PERSON
        case _:
            return "failed"


def _failure(one: Judged) -> str:
    response: TriageResponse | None = one.ran.response if one.ran else None
    if response is None:
        return NO_RESPONSE
    return response.failure.value if response.failure else NO_FAILURE
