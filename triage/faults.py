"""Fault points: the places between any two steps where a test may end or stop its own process.

Why it exists: "killed between any two steps" is only a promise if a kill can fall exactly there, in
the code that production runs. So the places are compiled in, and a place that nobody armed costs
one look at an empty list. Only a call of `arm` in this very process arms them: no variable, setting
or option leads here, and no module of the product calls it.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Final


class Point(StrEnum):
    """Every fault point; a name is the part of the system, then the place in it."""

    ACTIVITY_BEGIN = "activity.begin"
    """Before an activity's body; the subject is its type."""
    ACTIVITY_END = "activity.end"
    """After it, with its result or error not reported yet."""
    PIN_AFTER_ADMIT = "pin.after_admit"
    PIN_AFTER_STORE = "pin.after_store"
    DECIDE_BEFORE_MODEL = "decide.before_model"
    DECIDE_AFTER_MODEL = "decide.after_model"
    READ_BEFORE_TOOL = "read.before_tool"
    READ_BEFORE_KEEP = "read.before_keep"
    READ_AFTER_KEEP = "read.after_keep"
    PREVIEW_BEFORE_LOOK = "preview.before_look"
    PREVIEW_AFTER_LOOK = "preview.after_look"
    VERIFY_BEFORE_RECORD = "verify.before_record"
    VERIFY_AFTER_RECORD = "verify.after_record"
    WRITE_BEFORE_SEND = "write.before_send"
    """After the last look: the tracker is called next."""
    WRITE_AFTER_SEND = "write.after_send"
    """The tracker has answered that it was done, and nobody has seen it yet."""
    LEDGER_BEFORE = "ledger.before"
    """Before a move of the ledger; the subject is the move, such as ``dispatch``."""
    LEDGER_AFTER = "ledger.after"
    """After it, and after its commit; likewise."""
    AUDIT_BEFORE_COMMIT = "audit.before_commit"
    """Inside a transaction that is complete; the subject is the kind of its last audit entry."""
    READ_BACK_BEFORE_RECORD = "read_back.before_record"
    """The issue of a write that its run left was read, and what shows is not recorded yet."""
    SWEEP_BEGIN = "sweep.begin"
    """A pass has found a write that may be left behind."""
    SWEEP_BEFORE_MOVE = "sweep.before_move"
    """Its run is over, and nothing was changed yet."""
    SWEEP_BEFORE_READ = "sweep.before_read"
    SWEEP_END = "sweep.end"
    """The pass is done with that write."""
    START_BEFORE_RUN = "start.before_run"
    START_AFTER_RUN = "start.after_run"
    """The run is started, and whoever asked for it has not been told."""
    ADMIT_AFTER_COMMIT = "admit.after_commit"
    """A delivery and its request are recorded, and the sender has not been told."""
    OUTBOX_BEFORE_SEND = "outbox.before_send"
    """A request is held, and the server has not heard of it."""
    OUTBOX_AFTER_SEND = "outbox.after_send"
    """The server has it, and that is not recorded yet; the subject is ``start`` or ``edit``."""


Hook = Callable[[Point, str], None]
_hooks: Final[list[Hook]] = []


def reach(point: Point, subject: str = "") -> None:
    """Say that this process is at `point`; nothing happens unless the process armed itself.

    Args:
        point: where.
        subject: what it is about, where one point serves several things; never any content.
    """
    for hook in _hooks:
        hook(point, subject)


def arm(hook: Hook) -> Callable[[], None]:
    """Call `hook` at every point that this process reaches from now on; for tests alone.

    Returns:
        What ends that.
    """
    _hooks.append(hook)
    return lambda: _hooks.remove(hook)
