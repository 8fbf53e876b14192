"""Holding a final answer to what its evidence entails, where a run's grounding wants that. Pure.

What is added to evidence for it stays in this run: a history says already which path a tool was
asked about.
"""

from __future__ import annotations

from triage.contracts.decision import FinalAnswer, ToolCall
from triage.contracts.options import Grounding
from triage.contracts.payloads import EvidenceRef
from triage.contracts.request import TriageRequest
from triage.policy.grounding import about_path, entailment_problem
from triage.policy.named_paths import NamedPaths
from workflows.start import Limits
from workflows.state import RunState


def keep(state: RunState, limits: Limits, evidence: EvidenceRef, call: ToolCall) -> None:
    """Keep what a tool returned, so that it may be cited."""
    if limits.grounding is Grounding.ENTAILED:
        evidence = about_path(evidence, call.arguments)
    state.keep(evidence)


def problem_with(
    answer: FinalAnswer, state: RunState, limits: Limits, request: TriageRequest
) -> str | None:
    """Say how an answer does not follow from what it cites; None if it does, or need not."""
    if limits.grounding is not Grounding.ENTAILED:
        return None
    named = NamedPaths.of_request(request)
    return entailment_problem(answer, state.evidence, limits.routes, named)
