"""Investigating incident files as real workflows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from triage.contracts.incident import parse_incident
from triage.evaluation.fixture import FixtureError
from triage.evaluation.investigate import (
    investigate_file,
    investigate_on,
    loop_json,
    loop_text,
    read_incident,
)
from triage.evaluation.stack import Stack
from triage.resources import fixtures_path
from triage.settings import Settings

DEMO = fixtures_path("incidents", "checkout-latency.json")
INCIDENT: dict[str, Any] = {
    "incident_id": "INC-1",
    "limit": 3,
    "evidence": {"latency": {"p99_ms": 900}, "errors": None},
}
READ = {"action": "read", "argument": "errors"}


async def test_the_demo_incident_is_complete_after_one_read(settings: Settings) -> None:
    """The demo prints the line of the source document."""
    result = await investigate_file(DEMO, settings)
    assert "status=complete reads=1" == loop_text(result)
    assert {
        "status": "complete",
        "reads": 1,
        "events": [{"step": 1, "tool": "read", "ref": "latency"}],
    } == loop_json(result)


@pytest.mark.parametrize(
    ("decisions", "limit", "text"),
    [
        ([READ, {"action": "finish", "argument": None}], 3, "status=complete reads=1"),
        ([{"action": "finish", "argument": None}], 3, "status=unsupported reads=0"),
        ([{"action": "write", "argument": "errors"}], 3, "status=denied reads=0"),
        ([READ, READ], 3, "status=repeated reads=1"),
        ([READ], 1, "status=exhausted reads=1"),
        ([READ, "finish"], 3, "status=invalid reads=1"),
        ([READ, {"error": "secret text"}], 3, "status=adapter_error reads=1"),
    ],
)
async def test_every_ending_is_an_answer(
    stack: Stack, decisions: list[Any], limit: int, text: str
) -> None:
    """Each status of the loop is reached by a recorded script."""
    incident = parse_incident({**INCIDENT, "decisions": decisions, "limit": limit})
    assert text == loop_text(await investigate_on(stack.client, incident, stack.settings))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "incident must be a JSON object"),
        ("{}", "incident.incident_id: is missing"),
        (json.dumps({**INCIDENT, "limit": True}), "incident.limit: "),
        (json.dumps({**INCIDENT, "limit": 0}), "incident.limit: "),
        (json.dumps({**INCIDENT, "limit": 101}), "incident.limit: "),
        (json.dumps({**INCIDENT, "evidence": []}), "incident.evidence: "),
        (json.dumps({**INCIDENT, "note": 1}), "unexpected field"),
        ("{", "not valid JSON (line 1"),
    ],
)
def test_a_bad_incident_is_named(tmp_path: Path, content: str, message: str) -> None:
    """A file that is no incident gives one line that names file and field."""
    path = tmp_path / "incident.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(FixtureError) as caught:
        read_incident(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_incident_is_an_error(tmp_path: Path) -> None:
    """A file that is not there is said so."""
    with pytest.raises(FixtureError, match="No such file"):
        read_incident(tmp_path / "none.json")
