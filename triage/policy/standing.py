"""Which rules are in force: those that are written, or those that a person accepted.

Why it exists: a worker and every command must come to the same answer from the same two sets of
rules, whatever was in force before. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

from triage.policy.rules import Rules
from triage.policy.widening import Widening, widenings


@dataclass(frozen=True, slots=True)
class Standing:
    """What comes of rules that are written.

    Attributes:
        rules: those in force.
        waiting: what the written rules would allow beyond the accepted ones; empty if the written
            rules are in force.
    """

    rules: Rules
    waiting: tuple[Widening, ...]


def judge(written: Rules, accepted: Rules) -> Standing:
    """Say which rules are in force.

    The written ones are, unless they allow anything that the accepted ones do not; then the
    accepted ones are, as a whole.

    Args:
        written: what the rules file says.
        accepted: what a person accepted last; nothing widens itself.
    """
    found = widenings(accepted, written)
    return Standing(accepted, found) if found else Standing(written, ())
