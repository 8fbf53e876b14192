"""Tells what became of a model call that gave no decision: its fault, and what the run did then.

The rules are those of the run: ask again within the retries, have one answer corrected, take the
next model, or end.
"""

from __future__ import annotations

from datetime import datetime

from triage.contracts.failures import FailureClass
from triage.contracts.model_faults import MODEL_FAULTS, ModelFault, pause_before_retry
from triage.story.memory import Memory
from triage.story.payloads import Fields
from triage.story.verdicts import Verdict, refused
from triage.story.words import counted, named


def meaning_of(result: Fields) -> str:
    """Return what a result's fault means, in our words; empty without one."""
    fault = _fault(result)
    return f"{MODEL_FAULTS[fault].meaning} ({fault})" if fault else ""


def after_silence(memory: Memory, result: Fields, at: datetime) -> Verdict:
    """Return what the run made of a model that did not answer.

    Args:
        memory: what is known of the run.
        result: what came.
        at: when the run took the step.
    """
    fault = _fault(result) or ModelFault.TIMEOUT
    allowed = memory.limit("max_model_retries") or 0
    passes = MODEL_FAULTS[fault].passes
    named_pause = result.number("retry_after_seconds")
    pause = pause_before_retry(fault, memory.retries, named_pause)
    left = memory.seconds_left(at)
    has_time = left is None or pause < left
    if passes and memory.retries < allowed and has_time:
        memory.retries += 1
        later = f" after {counted(pause, 'second')}" if pause else ""
        return refused(f"asked again{later}, retry {memory.retries} of {allowed}")
    if (following := _next_model(memory)) is not None:
        return following
    if not passes:
        return refused("the same call would end alike", FailureClass.MODEL_TIMEOUT)
    reason = f"all of {counted(allowed, 'retry')} used"
    if memory.retries < allowed:
        reason = f"the run's time ends before a pause of {counted(pause, 'second')} is over"
    return refused(reason, FailureClass.MODEL_TIMEOUT)


def after_no_decision(memory: Memory, result: Fields) -> Verdict:
    """Return what the run made of an answer that the adapter could not use."""
    fault = _fault(result)
    if MODEL_FAULTS[fault or ModelFault.SCHEMA_VIOLATED].is_answer and corrects(memory):
        return refused("the model is asked to correct it")
    if fault is not None and (following := _next_model(memory)) is not None:
        return following
    return refused("the same call is not repeated", FailureClass.MODEL_INVALID_OUTPUT)


def corrects(memory: Memory) -> bool:
    """Count a corrective turn, if the run has one left."""
    if memory.corrections >= (memory.policy.number("max_corrections") or 0):
        return False
    memory.corrections += 1
    return True


def _next_model(memory: Memory) -> Verdict | None:
    models = memory.policy.texts("fallback_models")
    if memory.fallbacks >= len(models):
        return None
    memory.fallbacks += 1
    return refused(f"the next model is asked: {named(models[memory.fallbacks - 1])}")


def _fault(result: Fields) -> ModelFault | None:
    text = result.text("fault")
    return ModelFault(text) if text in set(ModelFault) else None
