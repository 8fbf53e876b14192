"""Promises of the fixtures: each file is what the README says, and people can start it."""

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from tests.unit.models.driver import issue, play
from triage.contracts.approval import Verdict, parse_review
from triage.contracts.base import ContractError
from triage.contracts.canonical import parse_json
from triage.contracts.decision import parse_decision
from triage.contracts.incident import Incident, LoopStatus, parse_incident, parse_loop_decision
from triage.contracts.options import Mode, parse_options
from triage.contracts.request import TriageRequest, parse_request
from triage.models.rules import RulesModel
from triage.policy.rules import BUILTIN_RULES
from triage.resources import fixtures_path

REQUEST_FIELDS = {"request_id", "title", "body", "changed_paths", "source"}
ENDS = {
    "api-bug": ("ISSUE-201", "final", "bug"),
    "docs-gap": ("ISSUE-202", "final", "documentation"),
    "feature": ("ISSUE-203", "final", "feature"),
    "vulnerability": ("ISSUE-204", "request_review", "security_review"),
    "vague": ("ISSUE-205", "request_review", None),
    "injection": ("ISSUE-206", "request_review", None),
    "ui-bug": ("ISSUE-207", "final", "bug"),
}
LOOKUP, SEARCH = "lookup_component_owner", "search_triage_policy"
EXPECTED = {
    "case-01-api-bug": ("completed", "bug", None, [LOOKUP], 0),
    "case-02-docs-gap": ("completed", "documentation", None, [LOOKUP], 0),
    "case-03-feature-policy": ("completed", "feature", None, [SEARCH], 0),
    "case-04-security-review": ("review_required", "security_review", None, [SEARCH], 0),
    "case-05-injection-side-effect": (
        "review_required",
        None,
        "approval_required",
        ["apply_labels"],
        0,
    ),
    "case-06-model-timeout-retry": ("completed", "bug", None, [LOOKUP], 1),
    "case-07-unknown-tool": ("failed", None, "unknown_tool", ["delete_repository"], 0),
    "case-08-invalid-arguments": ("failed", None, "invalid_tool_arguments", [LOOKUP], 0),
    "case-09-max-steps": ("failed", None, "max_steps_exceeded", [SEARCH] * 3, 0),
}


def _load(*parts: str) -> Any:  # noqa: ANN401 - whatever the file holds
    return parse_json(fixtures_path(*parts).read_bytes(), "fixture")


def _stems(folder: str) -> list[str]:
    return sorted(path.stem for path in fixtures_path(folder).glob("*.json"))


def _files() -> list[Path]:
    root = fixtures_path()
    return sorted(
        path for path in root.rglob("*") if path.is_file() and "histories" not in path.parts
    )


@pytest.mark.parametrize("path", _files(), ids=lambda path: path.name)
def test_each_file_reads_strictly(path: Path) -> None:
    """Every JSON file and line is UTF-8 without duplicate keys, and the README names the file."""
    data = path.read_bytes()
    if path.suffix == ".json":
        parse_json(data, path.name)
    if path.suffix == ".jsonl":
        for line in data.splitlines():
            parse_json(line, path.name)
    readme = fixtures_path("README.md").read_text(encoding="utf-8")
    named = {path.name, f"{path.parent.name}/", f"{path.parent.name}/*.json"}
    assert any(name in readme for name in named)


def test_the_cases_carry_the_label_and_the_source_documents_outcomes() -> None:
    """The nine cases keep ids, order and expected outcomes, under the label word for word."""
    fixture = _load("issue_triage_cases.json")
    assert "SYNTHETIC EDUCATIONAL EXAMPLE — orchestration fixture only" == fixture["fixture"]
    fields = ("status", "route", "failure", "tool_sequence", "retries")
    found = {
        case["id"]: tuple(case["expected"][field] for field in fields) for case in fixture["cases"]
    }
    assert list(EXPECTED.items()) == list(found.items())
    assert [f"ISSUE-{n}" for n in range(101, 110)] == [
        case["request"]["request_id"] for case in fixture["cases"]
    ]


def test_every_decision_of_the_cases_is_one() -> None:
    """Recorded decisions parse; the faults that cases provoke lie in what the decisions ask for."""
    for case in _load("issue_triage_cases.json")["cases"]:
        parse_request(case["request"])
        for decision in case["decisions"]:
            if decision != {"error": "model_timeout"}:
                parse_decision(
                    decision,
                    routes=frozenset(BUILTIN_RULES.routes),
                    labels=frozenset(BUILTIN_RULES.proposable_labels()),
                )


@pytest.mark.parametrize("stem", ENDS)
def test_a_sample_request_ends_as_the_readme_says(stem: str) -> None:
    """Each request has exactly its five fields and the outcome that is promised for it."""
    value = _load("requests", f"{stem}.json")
    assert set(value) == REQUEST_FIELDS
    request = parse_request(value)
    request_id, kind, route = ENDS[stem]
    decision = play(RulesModel(), request).decision
    assert (request_id, kind) == (request.request_id, decision.kind)
    assert route in {None, getattr(decision, "route", None)}


def test_every_sample_request_is_described() -> None:
    """A request that is added needs an expectation here and a line in the README."""
    assert sorted(ENDS) == _stems("requests")
    readme = fixtures_path("README.md").read_text(encoding="utf-8")
    for stem, (request_id, _, _) in ENDS.items():
        assert f"| `{stem}.json` | {request_id} |" in readme


@pytest.mark.parametrize("mode", list(Mode))
def test_options_exist_for_each_mode(mode: Mode) -> None:
    """A person can start a run in any mode with a file."""
    assert parse_options({"mode": mode.value}) == parse_options(_load("options", f"{mode}.json"))


@pytest.mark.parametrize("verdict", list(Verdict))
def test_an_envelope_exists_for_each_signal(verdict: Verdict) -> None:
    """The envelopes fit the first proposal of a run: after one read and a final, version 6."""
    review = parse_review(_load("approvals", f"{verdict}.json"), verdict)
    assert ("op-6", 6) == (review.operation_id, review.version)


def test_the_update_has_an_envelope_with_a_verdict() -> None:
    """The `review` update's argument says itself what is decided."""
    assert Verdict.APPROVE is parse_review(_load("approvals", "review.json"), None).verdict


def _played(incident: Incident) -> LoopStatus:
    """Play recorded decisions by the rules of Pattern 01, written down once more."""
    seen: list[str] = []
    decisions: Sequence[JsonValue] = incident.decisions or ()
    for item in decisions[: incident.limit]:
        if isinstance(item, dict) and "error" in item:
            return LoopStatus.ADAPTER_ERROR
        decision = parse_loop_decision(item)
        if decision is None:
            return LoopStatus.INVALID
        if decision.action == "finish":
            return LoopStatus.COMPLETE if seen else LoopStatus.UNSUPPORTED
        if decision.action != "read" or decision.argument not in incident.evidence:
            return LoopStatus.DENIED
        if decision.argument in seen:
            return LoopStatus.REPEATED
        seen.append(decision.argument)
    return LoopStatus.EXHAUSTED


@pytest.mark.parametrize("status", list(LoopStatus))
def test_each_loop_status_has_an_incident(status: LoopStatus) -> None:
    """An incident file ends with the status that it is named after."""
    assert status is _played(parse_incident(_load("incidents", f"{status}.json")))


def test_the_demo_incident_leaves_the_decisions_to_the_adapter() -> None:
    """The demo adapter finds the latency reference that it reads first."""
    incident = parse_incident(_load("incidents", "checkout-latency.json"))
    assert incident.decisions is None
    assert "latency" in incident.evidence
    assert {*LoopStatus, "checkout-latency"} == set(_stems("incidents"))


def _attacks() -> list[Any]:
    lines = fixtures_path("security", "issue_attacks.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in lines.splitlines()]


def _request_of(attack: dict[str, Any]) -> TriageRequest:
    payload = attack["payload"]
    if isinstance(payload, dict):
        payload = payload.get("v1") or payload["repeat"] * payload["times"]
    text = "\n".join(payload) if isinstance(payload, list) else payload
    if attack["surface"] == "title":
        return issue(text, "It crashes with an exception.", ("backend/api.py",))
    return issue("Crash on save", text, ("backend/api.py",))


@pytest.mark.parametrize("attack", _attacks(), ids=lambda attack: attack["id"])
def test_an_attack_gets_reads_and_an_ordinary_end(attack: dict[str, Any]) -> None:
    """No attack text makes the rules model ask for a write, an odd label or an unread source."""
    played = play(RulesModel(), _request_of(attack))
    assert {LOOKUP, SEARCH}.issuperset(call.tool.name for call in played.calls)
    labels = set(getattr(played.decision, "labels", ()))
    assert labels <= {"bug", "feature", "component:api"}


def test_webhook_vectors_are_signed_as_they_say() -> None:
    """A vector that deserves acceptance has a valid signature, one that does not has none."""
    for vector in _load("security", "webhook_hmac_vectors.json"):
        body = base64.b64decode(vector["body_b64"])
        mac = hmac.new(vector["secret"].encode(), body, hashlib.sha256).hexdigest()
        valid = vector["header"] == f"sha256={mac}"
        assert valid is (vector["expect"] != 401), vector["name"]


def test_third_party_files_keep_their_licence() -> None:
    """What others wrote carries its licence beside it."""
    for folder in ("security/bastioncorpus", "codeowners"):
        text = fixtures_path(folder, "LICENSE").read_text(encoding="utf-8")
        assert text.startswith("MIT License\n\nCopyright (c) ")


@pytest.mark.parametrize("path", _files(), ids=lambda path: path.name)
def test_no_fixture_names_a_machine(path: Path) -> None:
    """A path of somebody's machine has no place in a fixture."""
    text = path.read_text(encoding="utf-8")
    assert None is re.search(r"(?<![\w/.:])/(?:home|root|work|Users|var/folders)/\w", text)


def test_a_malformed_request_is_told_apart() -> None:
    """The samples pass because they are right, not because the reader takes anything."""
    value = _load("requests", "api-bug.json")
    with pytest.raises(ContractError):
        parse_request({**value, "labels": ["bug"]})
