"""What came of a decision, in the words of a story."""

from __future__ import annotations

from dataclasses import dataclass

from triage.contracts.failures import FailureClass


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a decision.

    Attributes:
        accepted: whether the run followed it; None if that cannot be said.
        because: why.
        failure: what the run ends with on it, if it ends.
    """

    accepted: bool | None
    because: str
    failure: FailureClass | None = None

    def __str__(self) -> str:
        words = {True: "accepted", False: "refused", None: "not judged"}[self.accepted]
        return f"{words}: {self.because}" + (f" ({self.failure})" if self.failure else "")


def accepted(because: str) -> Verdict:
    """Return that the run followed it."""
    return Verdict(accepted=True, because=because)


def refused(because: str, failure: FailureClass | None = None) -> Verdict:
    """Return that it did not."""
    return Verdict(accepted=False, because=because, failure=failure)
