"""Says what to do about a failed run: by its class, and nearer where its reason tells more.

Why it exists: a class covers causes with different remedies. The class is part of the response and
stays; what people are told follows from the reason, which is a sentence of ours. Where it is none
of those known here, the class's own words hold.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from triage.contracts.failures import FAILURES, FailureClass, FailureInfo
from triage.contracts.model_faults import MODEL_FAULTS

OPERATIONS: Final = "operations"
ANEW: Final = "start it again under another --id"
MISSING: Final = f"set what is missing on the worker ('triage doctor'), then {ANEW}"
MISNAMED: Final = f"name a model that the worker has, or set it up there, then {ANEW}"
TRACKER: Final = f"check what the worker has for its tracker ('triage doctor'), then {ANEW}"

_REFUSED_STARTS: Final = (
    ("no weights are stored under ", MISSING),
    ("no script is stored under ", MISSING),
    ("the weights of the second opinion are not stored", MISSING),
    ("unknown model '", MISNAMED),
    ("these weights have nothing of this group's own", MISNAMED),
    ("the tracker is not configured on this worker", TRACKER),
    ("GitHub refuses this", TRACKER),
    ("the App", TRACKER),
)
"""How the reasons begin of runs that were refused for what their worker lacks."""
_OF_A_MODEL: Final = "model '"
_NO_KEY: Final = " has no key here: "

_FAULTS: Final = {
    (info.failure, f"{info.meaning} ({fault.value})"): info.next_step
    for fault, info in MODEL_FAULTS.items()
}


def remedy(failure: FailureClass, reason: str) -> FailureInfo:
    """Return the group, the owner and the next step of a run that ended so, for this reason."""
    info = FAILURES[failure]
    if failure is FailureClass.INVALID_INPUT and (step := _refused_start(reason)):
        return replace(info, owner=OPERATIONS, next_step=step)
    return replace(info, next_step=_FAULTS.get((failure, reason), info.next_step))


def _refused_start(reason: str) -> str:
    """Return the step for a run whose request is fine; empty if it is the request."""
    if reason.startswith(_OF_A_MODEL):
        return MISSING if _NO_KEY in reason else MISNAMED
    return next((step for begin, step in _REFUSED_STARTS if reason.startswith(begin)), "")
