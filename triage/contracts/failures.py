"""The failure classes: stable names, each in a group and with the owner who fixes it.

Source: the production agent's twelve classes; `budget_exceeded` is the one addition.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class FailureClass(StrEnum):
    """Why a run did not complete; the values are part of the public response."""

    INVALID_INPUT = "invalid_input"
    MODEL_TIMEOUT = "model_timeout"
    MODEL_INVALID_OUTPUT = "model_invalid_output"
    UNKNOWN_TOOL = "unknown_tool"
    INVALID_TOOL_ARGUMENTS = "invalid_tool_arguments"
    TOOL_TIMEOUT = "tool_timeout"
    TOOL_ERROR = "tool_error"
    POLICY_BLOCK = "policy_block"
    APPROVAL_REQUIRED = "approval_required"
    STATE_CONFLICT = "state_conflict"
    MAX_STEPS_EXCEEDED = "max_steps_exceeded"
    FINAL_OUTPUT_INVALID = "final_output_invalid"
    BUDGET_EXCEEDED = "budget_exceeded"


class FailureGroup(StrEnum):
    """The control that a failure points to."""

    INPUT_AND_CONTRACT = "input and contract"
    TOOL_AND_POLICY = "tool and policy"
    ORCHESTRATION_AND_STATE = "orchestration and state"


LABEL_REMOVED: Final = (
    "a label of this write was removed from the issue, by a person or by 'triage undo'"
)
"""Why a write is not made again: nothing that a run does puts such a label back."""


@dataclass(frozen=True, slots=True)
class FailureInfo:
    """What a reader of a failed run needs: its group, who fixes it and the first thing to do."""

    group: FailureGroup
    owner: str
    next_step: str


_INPUT = FailureGroup.INPUT_AND_CONTRACT
_TOOL = FailureGroup.TOOL_AND_POLICY
_STATE = FailureGroup.ORCHESTRATION_AND_STATE

FAILURES: Final[dict[FailureClass, FailureInfo]] = {
    FailureClass.INVALID_INPUT: FailureInfo(
        _INPUT,
        "caller",
        "correct the request as the reason says and start it again under another id",
    ),
    FailureClass.MODEL_INVALID_OUTPUT: FailureInfo(
        _INPUT, "model adapter", "look at the adapter and its prompt; the same call is not retried"
    ),
    FailureClass.FINAL_OUTPUT_INVALID: FailureInfo(
        _INPUT, "model adapter", "the answer cited evidence that no tool returned in this run"
    ),
    FailureClass.UNKNOWN_TOOL: FailureInfo(
        _TOOL, "tool registry", "register the tool, or correct the prompt that names it"
    ),
    FailureClass.INVALID_TOOL_ARGUMENTS: FailureInfo(
        _TOOL, "tool registry", "compare the call with the tool's argument schema"
    ),
    FailureClass.TOOL_TIMEOUT: FailureInfo(
        _TOOL, "tool owner", "check the source that the tool reads, and the tool's timeout"
    ),
    FailureClass.TOOL_ERROR: FailureInfo(
        _TOOL, "tool owner", "check the source that the tool reads and the worker's log"
    ),
    FailureClass.POLICY_BLOCK: FailureInfo(
        _TOOL,
        "policy owner",
        "read the reason: after 'writes are stopped' allow them with 'triage writes allow'; else "
        "see whether the rules, the tracker's labels and the approval should permit this effect",
    ),
    FailureClass.APPROVAL_REQUIRED: FailureInfo(
        _TOOL,
        "maintainer",
        "read the reason; if the write is right all the same, 'triage resume ID' asks for it again",
    ),
    FailureClass.MODEL_TIMEOUT: FailureInfo(
        _STATE, "operations", "check the model provider's health and the deadline"
    ),
    FailureClass.STATE_CONFLICT: FailureInfo(
        _STATE, "operations", "reload the issue and reassess; nothing was overwritten"
    ),
    FailureClass.MAX_STEPS_EXCEEDED: FailureInfo(
        _STATE, "operations", "inspect the decision loop: the model never ended it"
    ),
    FailureClass.BUDGET_EXCEEDED: FailureInfo(
        _STATE, "operations", "see what was spent, then raise the budget or triage by hand"
    ),
}
