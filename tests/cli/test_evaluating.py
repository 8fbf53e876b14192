"""Checks the commands around the evaluation; what it finds is checked in tests/evaluation."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import FIXTURES, MOST_SECONDS, Stack, Triage

CASES = FIXTURES / "issue_triage_cases.json"


def test_text_is_the_summary_alone(stack: Stack) -> None:
    """Standard output holds the eleven lines as UTF-8 and nothing else; progress is elsewhere."""
    answer = stack.triage("evaluate", CASES, timeout=2 * MOST_SECONDS)
    assert 0 == answer.status, answer.err
    assert 11 == len(answer.out.split("\n"))
    assert answer.out.startswith(
        "SYNTHETIC EDUCATIONAL EXAMPLE — orchestration fixture only\ncases=9"
    )
    assert answer.out.endswith("unauthorized_side_effects=0")
    assert "evaluated 9 of 9 cases" in answer.err


def test_a_failing_case_fails_the_command(stack: Stack, tmp_path: Path) -> None:
    """A case that ends otherwise than expected is a FAIL line, and status 1."""
    document = json.loads(CASES.read_text(encoding="utf-8"))
    document["cases"] = document["cases"][:1]
    document["cases"][0]["expected"]["route"] = "elsewhere"
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps(document), encoding="utf-8")
    answer = stack.triage("evaluate", wrong, "--format", "json", timeout=2 * MOST_SECONDS)
    assert 1 == answer.status
    [record] = answer.json()["records"]
    assert ["route: expected 'elsewhere', got 'bug'"] == record["failures"]


def test_an_incident_is_investigated(stack: Stack) -> None:
    """The demo incident is complete after one read."""
    incident = FIXTURES / "incidents" / "checkout-latency.json"
    answer = stack.triage("investigate", incident, timeout=2 * MOST_SECONDS)
    assert (0, "status=complete reads=1\n") == (answer.status, answer.out)


@pytest.mark.parametrize("command", ["evaluate", "investigate"])
@pytest.mark.parametrize("content", [None, b"", b"[]", b'{"cases": 1}'], ids=range(4))
def test_what_is_no_fixture(
    triage: Triage, tmp_path: Path, command: str, content: bytes | None
) -> None:
    """A file that is missing or no fixture is bad input: status 2 and one line."""
    file = tmp_path / "fixture.json"
    if content is not None:
        file.write_bytes(content)
    answer = triage(command, file)
    assert (2, "") == (answer.status, answer.out)
    assert "Traceback" not in answer.err
