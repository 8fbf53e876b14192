"""What an evaluation found, for people and for programs. Pure.

The text form is the production agent's summary, byte for byte, without a final newline.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from triage.contracts.failures import FailureClass
from triage.contracts.response import Status
from triage.contracts.state import MutationRecord
from triage.evaluation.fixture import LABEL, printable

PASSED: Final = 0
FAILED: Final = 1

_INVALID_TOOL_CALLS: Final = (FailureClass.UNKNOWN_TOOL, FailureClass.INVALID_TOOL_ARGUMENTS)
_UNAPPROVED: Final = "approval_required"


@dataclass(frozen=True, slots=True)
class CaseRecord:
    """One evaluated case.

    Attributes:
        id: the case's id.
        actual: the twelve fields of the response. If the run gave none, because the platform
            failed or time ran out, `status` is null and `reason` says why.
        failures: what is wrong, in sentences; empty for a case that passed.
        mutations: the writes that the run proposed and policy permitted, in order.
    """

    id: str
    actual: dict[str, JsonValue]
    failures: tuple[str, ...]
    mutations: tuple[MutationRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class Evaluation:
    """All records, in the order of the fixture."""

    records: tuple[CaseRecord, ...]

    @property
    def mutations(self) -> tuple[MutationRecord, ...]:
        """Every mutation record, in the order of the cases."""
        return tuple(mutation for record in self.records for mutation in record.mutations)

    @property
    def unauthorised(self) -> int:
        """How many side effects ran without authority; anything but 0 is an incident."""
        return sum(item.executed and not item.authorized for item in self.mutations)

    @property
    def exit_status(self) -> int:
        """0 if every case passed and no unauthorised effect ran, else 1."""
        failed = any(record.failures for record in self.records)
        return FAILED if failed or self.unauthorised else PASSED

    def text(self) -> str:
        """Return eleven summary lines, then one FAIL line for each case that failed.

        There is no newline at the end: write it as UTF-8 and nothing else, and the summary is the
        source document's byte for byte.
        """
        return "\n".join([*self._summary(), *self._failed()])

    def to_json(self) -> dict[str, JsonValue]:
        """Return the records and the mutations as a JSON document."""
        return {
            "records": [
                {"id": record.id, "actual": record.actual, "failures": list(record.failures)}
                for record in self.records
            ],
            "mutations": [_mutation(item) for item in self.mutations],
        }

    def _summary(self) -> list[str]:
        return [
            LABEL,
            f"cases={len(self.records)}",
            f"passed={sum(not record.failures for record in self.records)}",
            f"completed={self._count('status', [Status.COMPLETED])}",
            f"review_required={self._count('status', [Status.REVIEW_REQUIRED])}",
            f"controlled_failures={self._count('status', [Status.FAILED])}",
            f"policy_blocks={sum(_is_blocked(item) for item in self.mutations)}",
            f"invalid_tool_calls={self._count('failure', _INVALID_TOOL_CALLS)}",
            f"bounded_retries={sum(_retries(record) for record in self.records)}",
            f"max_step_failures={self._count('failure', [FailureClass.MAX_STEPS_EXCEEDED])}",
            f"unauthorized_side_effects={self.unauthorised}",
        ]

    def _failed(self) -> Iterable[str]:
        return (
            f"FAIL {printable(record.id)}: {printable('; '.join(record.failures))}"
            for record in self.records
            if record.failures
        )

    def _count(self, name: str, values: Iterable[str]) -> int:
        wanted = frozenset(values)
        return sum(record.actual[name] in wanted for record in self.records)


def _is_blocked(item: MutationRecord) -> bool:
    return not item.executed and item.reason == _UNAPPROVED


def _retries(record: CaseRecord) -> int:
    retries = record.actual["retries"]
    return retries if isinstance(retries, int) else 0


def _mutation(item: MutationRecord) -> dict[str, JsonValue]:
    return {
        "operation_id": item.operation_id,
        "tool": item.tool,
        "executed": item.executed,
        "authorized": item.authorized,
        "reason": item.reason,
    }
