"""Checks the published JSON Schemas against the contracts that the program keeps."""

import json

import jsonschema
import pytest

from tests.cli.conftest import Triage
from triage.cli.schemas import PUBLISHED, schema_of

NAMES = [
    "request",
    "options",
    "decision",
    "response",
    "state",
    "approval",
    "review",
    "review-answer",
    "incident",
    "tools",
]
REQUEST = {
    "request_id": "R-1",
    "title": "Broken",
    "body": "It breaks",
    "changed_paths": ["backend/api.py"],
    "source": "github",
}


def test_all_contracts_are_published(triage: Triage) -> None:
    """One document holds the schema of each contract, with an id that names its version."""
    document = triage("schema").json()
    assert NAMES == list(document)
    for name, schema in document.items():
        assert f"urn:bounded-triage:{name}:{schema['version']}" == schema["$id"]


def test_one_contract_can_be_printed(triage: Triage) -> None:
    """A name picks one schema, the same as in the whole document."""
    assert schema_of("request") == triage("schema", "request", "--format", "json").json()


def test_text_lists_what_there_is(triage: Triage) -> None:
    """For people the names, versions and purposes are listed."""
    answer = triage("schema", "--format", "text")
    assert NAMES == [line.split()[0] for line in answer.out.splitlines()[1:]]


@pytest.mark.parametrize("name", PUBLISHED)
def test_each_schema_is_valid(name: str) -> None:
    """Any validator of the named dialect takes the schemas."""
    jsonschema.Draft202012Validator.check_schema(schema_of(name))


@pytest.mark.parametrize(
    ("name", "document", "valid"),
    [
        ("request", REQUEST, True),
        ("request", REQUEST | {"extra": 1}, False),
        ("request", {k: v for k, v in REQUEST.items() if k != "body"}, False),
        ("options", {"mode": "approve", "max_steps": 3}, True),
        ("options", {"mode": "reckless"}, False),
        ("approval", {"operation_id": "op-6", "version": 6, "approver": "ann"}, True),
        ("approval", {"operation_id": "op-6", "version": 6}, False),
        ("tools", {"name": "lookup_component_owner", "arguments": {"path": "a"}}, True),
        ("tools", {"name": "lookup_component_owner", "arguments": {}}, False),
        ("tools", {"name": "rm", "arguments": {}}, False),
    ],
)
def test_schemas_tell_good_from_bad(name: str, document: object, valid: bool) -> None:
    """A document passes a schema exactly if it has the contract's shape."""
    validator = jsonschema.Draft202012Validator(schema_of(name))
    assert valid == validator.is_valid(json.loads(json.dumps(document)))
