"""What a story says of calls without a decision: the fault by its meaning, and what the run did."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from pydantic import JsonValue

from triage.contracts.model_faults import MODEL_FAULTS, ModelFault
from triage.story.activities import _shown
from triage.story.memory import Memory
from triage.story.payloads import Fields
from triage.story.silences import after_no_decision, after_silence, corrects, meaning_of

POLICY: dict[str, JsonValue] = {
    "max_model_retries": 1,
    "max_corrections": 1,
    "fallback_models": ["openai:gpt-5-mini"],
}


BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
LIMITED = ModelFault.RATE_LIMITED


def _memory(**policy: JsonValue) -> Memory:
    memory = Memory(workflow_id="w", workflow_type="t", began=BEGAN)
    memory.context = Fields({"policy": {**POLICY, **policy}})
    return memory


def _result(fault: ModelFault, **more: JsonValue) -> Fields:
    return Fields({"fault": fault.value, **more})


@pytest.mark.parametrize("fault", ModelFault)
def test_each_fault_is_told_by_its_meaning(fault: ModelFault) -> None:
    """A person reads what happened, and the name that other tools know it by."""
    assert f"{MODEL_FAULTS[fault].meaning} ({fault})" == meaning_of(_result(fault))


def test_a_fault_that_nobody_knows_is_not_told() -> None:
    """A history from elsewhere cannot put words into a story."""
    assert "" == meaning_of(Fields({"fault": "rm -rf"}))


def test_a_rate_limit_is_told_from_the_pause_to_the_end() -> None:
    """The retry with its pause, then the next model, then the end."""
    memory = _memory()
    limited = _result(ModelFault.RATE_LIMITED, retry_after_seconds=7)
    assert [
        "refused: asked again after 7 seconds, retry 1 of 1",
        "refused: the next model is asked: openai:gpt-5-mini",
        "refused: all of 1 retry used (model_timeout)",
    ] == [str(after_silence(memory, limited, BEGAN)) for _ in range(3)]


@pytest.mark.parametrize(
    ("rules", "option", "passed", "pause", "told"),
    [
        (10, None, 0, 9, "refused: asked again after 9 seconds, retry 1 of 1"),
        (10, None, 0, 10, "the run's time ends before a pause of 10 seconds is over"),
        (10, None, 4.9, 5, "refused: asked again after 5 seconds, retry 1 of 1"),
        (10, None, 5, 5, "the run's time ends before a pause of 5 seconds is over"),
        (10, 3, 0, 5, "the run's time ends before a pause of 5 seconds is over"),
        (None, 3, 0, 5, "the run's time ends before a pause of 5 seconds is over"),
        (None, None, 999, None, "refused: asked again after 5 seconds, retry 1 of 1"),
        (5, None, 0, None, "the run's time ends before a pause of 5 seconds is over"),
    ],
)
def test_a_pause_that_the_run_has_no_time_for_is_told(
    rules: int | None, option: int | None, passed: float, pause: int | None, told: str
) -> None:
    """It is not asked again where a budget's seconds end before; the smaller of the two counts."""
    memory = _memory(fallback_models=[], budget={"seconds": rules})
    memory.options = Fields({"budget": {"seconds": option}})
    limited = _result(LIMITED, retry_after_seconds=pause)
    verdict = after_silence(memory, limited, BEGAN + timedelta(seconds=passed))
    assert told in str(verdict)
    assert ("asked again" in told) is (memory.retries == 1)


def test_the_run_s_own_time_is_counted() -> None:
    """Neither what passed before its first task counts, nor what people took."""
    memory = _memory(budget={"seconds": 60})
    at = BEGAN + timedelta(seconds=100)
    assert 0 == memory.seconds_left(at)
    memory.looped_since = BEGAN + timedelta(seconds=50)
    assert 10 == memory.seconds_left(at)
    memory.waited = timedelta(seconds=20)
    assert 30 == memory.seconds_left(at)


def test_a_fault_that_does_not_pass_is_not_asked_again() -> None:
    """A key that is not accepted takes the next model at once, or ends the run."""
    refused = _result(ModelFault.AUTH)
    assert "the next model is asked" in str(after_silence(_memory(), refused, BEGAN))
    alone = after_silence(_memory(fallback_models=[]), refused, BEGAN)
    assert "refused: the same call would end alike (model_timeout)" == str(alone)


def test_an_answer_is_corrected_once() -> None:
    """An answer that is no JSON is corrected where the rules permit it, then the next is asked."""
    memory, prose = _memory(), _result(ModelFault.NOT_JSON)
    assert [
        "refused: the model is asked to correct it",
        "refused: the next model is asked: openai:gpt-5-mini",
        "refused: the same call is not repeated (model_invalid_output)",
    ] == [str(after_no_decision(memory, prose)) for _ in range(3)]
    assert not corrects(_memory(max_corrections=0))


def test_a_refusal_is_not_corrected() -> None:
    """What no correction helps takes the next model."""
    assert "the next model" in str(after_no_decision(_memory(), _result(ModelFault.REFUSAL)))


def test_what_cannot_be_asked_about_has_its_reason() -> None:
    """A label that a person took off, or one too many, is why nobody was asked."""
    memory = Memory(workflow_id="w", workflow_type="t", began=datetime.now(UTC))
    assert 'a person took "bug" off the issue' == _shown(memory, Fields({"removed": ["bug"]}))
    told = _shown(memory, Fields({"too_many": True}))
    assert "the issue would have more labels than it may" == told
