"""Checks that a failed run's next step is one that helps, whatever its class has in common."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from pydantic import JsonValue

from triage.contracts.failures import FAILURES, FailureClass
from triage.contracts.model_faults import MODEL_FAULTS, ModelFault
from triage.models.factory import UnknownModel, build_model
from triage.story.remedies import ANEW, MISNAMED, MISSING, OPERATIONS, TRACKER, remedy

DIGEST = f"sha256:{'0' * 64}"


async def _nothing(_digest: str) -> Sequence[JsonValue] | None:
    return None


def _refusal(model: str) -> str:
    """Return the reason of a run that names this model, as its worker words it."""
    with pytest.raises(UnknownModel) as told:
        asyncio.run(build_model(model, load_script=_nothing))
    return str(told.value)


@pytest.mark.parametrize(
    ("model", "step"),
    [
        ("openai:gpt-5-mini", MISSING),
        ("anthropic:claude-sonnet-5", MISSING),
        (f"learned:{DIGEST}", MISSING),
        (f"recorded:{DIGEST}", MISSING),
        ("ours", MISNAMED),
        ("rules:x", MISNAMED),
        ("learned", MISNAMED),
    ],
)
def test_a_run_refused_for_its_worker_s_settings_is_not_told_to_correct_its_request(
    model: str, step: str
) -> None:
    """Whoever runs the worker sets what is missing, and the run is started under another id."""
    info = remedy(FailureClass.INVALID_INPUT, _refusal(model))
    assert (OPERATIONS, step) == (info.owner, info.next_step)
    assert info.next_step.endswith(ANEW)


def test_a_tracker_that_the_worker_lacks_is_no_fault_of_the_request() -> None:
    """The step names the worker, as for a model."""
    info = remedy(FailureClass.INVALID_INPUT, "the tracker is not configured on this worker")
    assert TRACKER == info.next_step


@pytest.mark.parametrize("reason", ["request.title: must not be blank", "options.model: x", ""])
def test_a_request_that_is_wrong_is_the_caller_s(reason: str) -> None:
    """The class's own words hold where the reason is about the request, or not readable."""
    assert FAILURES[FailureClass.INVALID_INPUT] == remedy(FailureClass.INVALID_INPUT, reason)


@pytest.mark.parametrize("fault", ModelFault)
def test_each_fault_of_a_model_has_its_own_step(fault: ModelFault) -> None:
    """The reason names the fault, so the step is the fault's; without a name it is the class's."""
    known = MODEL_FAULTS[fault]
    told = remedy(known.failure, f"{known.meaning} ({fault.value})")
    assert (known.next_step, FAILURES[known.failure].owner) == (told.next_step, told.owner)
    assert FAILURES[known.failure] == remedy(known.failure, known.meaning)


def test_a_key_that_is_not_accepted_is_corrected() -> None:
    """It is no matter of the provider's health."""
    reason = "the provider does not accept the key (auth)"
    assert remedy(FailureClass.MODEL_TIMEOUT, reason).next_step.startswith("correct the key")
