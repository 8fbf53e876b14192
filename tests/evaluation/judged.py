"""Judged cases without any run, for the tests of what is made of them."""

from __future__ import annotations

from typing import Any, Final

from pydantic import JsonValue

from tests.evaluation.cases import REQUEST, RESPONSE
from triage.contracts.canonical import canonical_json
from triage.contracts.payloads import NOT_PINNED
from triage.contracts.response import TriageResponse
from triage.contracts.state import EvidenceView, MutationRecord, SpentView, StateView
from triage.evaluation.dataset import Dataset, DatasetCase, Expected
from triage.evaluation.judging import Judged, Ran, judge, judge_lost
from triage.evaluation.summary import Report, Summary

RIGHT: Final[dict[str, Any]] = {
    "route": "bug",
    "labels": ["bug"],
    "owner": "backend-team",
    "failure": None,
}
REVIEW: Final[dict[str, Any]] = {"status": "review_required", "labels": [], "owner": None}
WRONG: Final[dict[str, Any]] = {"route": "feature"}
FAILED: Final[dict[str, Any]] = {
    "status": "failed",
    "route": None,
    "labels": [],
    "owner": None,
    "evidence_ids": [],
    "failure": "model_invalid_output",
}


def a_case(name: str = "one", *, scripted: bool = False, **expected: JsonValue) -> DatasetCase:
    """A case that expects these fields, or what `RESPONSE` has."""
    wanted = Expected.model_validate_json(canonical_json(expected or RIGHT))
    return DatasetCase(name, dict(REQUEST), wanted, () if scripted else None)


def ran(
    *mutations: MutationRecord,
    returned: tuple[str, ...] = ("owners-api",),
    tokens: int = 0,
    **changes: JsonValue,
) -> Ran:
    """A run that answered `RESPONSE`, with some fields changed."""
    response = TriageResponse.model_validate_json(canonical_json({**RESPONSE, **changes}))
    state = StateView(
        status=response.status,
        version=6,
        steps=response.steps,
        retries=0,
        tool_sequence=response.tool_sequence,
        decisions=(),
        evidence=tuple(
            EvidenceView(id=name, tool="t", source="s", locator="l", digest="d")
            for name in returned
        ),
        pending=None,
        refusals=(),
        refusals_total=0,
        operations=(),
        spent=SpentView(tokens=tokens, cost_micros=2 * tokens, seconds=0, evidence_bytes=0),
        provenance=NOT_PINNED,
        response=response,
    )
    return Ran(response, state, mutations)


def a_judged(name: str = "one", **changes: Any) -> Judged:  # noqa: ANN401 - as `ran`
    """A case that expects `RIGHT`, and a run with some fields changed."""
    return judge(a_case(name), ran(**changes))


def a_report(*judged: Judged, base: tuple[Judged, ...] = ()) -> Report:
    """A report of these, and of others that they are compared with."""
    cases = tuple(one.case for one in judged)
    results = (Summary("new", judged), *((Summary("old", base),) if base else ()))
    return Report(Dataset("cases.jsonl", "sha256:0", cases), results)


def lost(name: str = "lost") -> Judged:
    """A case whose run gave no response."""
    return judge_lost(a_case(name), "it did not end within 1 s")
