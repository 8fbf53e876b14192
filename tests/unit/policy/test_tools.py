"""The allowlisted tool registry: what registers, what it says, and which arguments it accepts."""

from __future__ import annotations

from collections import Counter
from dataclasses import MISSING, fields, replace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from jsonschema import Draft202012Validator
from pydantic import JsonValue

from tests.unit.contracts.source_model import accepts_arguments
from tests.unit.contracts.strategies import (
    JSON_VALUES,
    PROPERTY,
    TEXTS,
    near_objects,
    short,
    text_lists,
)
from triage.contracts.base import MAX_PATH_CHARS, ContractError
from triage.contracts.payloads import ToolSnapshot
from triage.policy.tools import (
    BUILTIN_TOOLS,
    LOCAL_READ,
    MAX_LIST_ITEMS,
    NO_RETRY,
    Bounds,
    Effect,
    Kind,
    RetryRule,
    ToolRegistry,
    ToolSpec,
    check_arguments,
    normalise_by_digest,
)

READ = ToolSpec(
    name="read_note",
    purpose="Read a note",
    arguments={"note": Kind.TEXT},
    timeout_ms=100,
    retry=LOCAL_READ,
    effect=Effect.READ,
    idempotency=False,
    normalise=normalise_by_digest,
)
WRITE = replace(READ, name="write_note", retry=NO_RETRY, effect=Effect.WRITE, idempotency=True)
# The source's registry: name, argument kinds, timeout, whether it is safe to retry, side effect,
# whether it needs an operation id.
SOURCE_TOOLS: list[tuple[str, dict[str, str], int, bool, bool, bool]] = [
    ("lookup_component_owner", {"path": "str"}, 200, True, False, False),
    ("search_triage_policy", {"topic": "str"}, 200, True, False, False),
    ("apply_labels", {"issue_id": "str", "labels": "str_list"}, 500, False, True, True),
]
BAD_SPECS = {
    "no name": replace(READ, name=""),
    "a name that is no identifier": replace(READ, name="read note"),
    "a dotted name": replace(READ, name="os.system"),
    "no purpose": replace(READ, purpose=""),
    "a blank purpose": replace(READ, purpose=" \t"),
    "no arguments": replace(READ, arguments={}),
    "no timeout": replace(READ, timeout_ms=0),
    "a negative timeout": replace(READ, timeout_ms=-1),
    "no attempt": replace(READ, retry=RetryRule(0, 0.1, 5)),
    "no timeout from afar": replace(READ, remote=Bounds(0, LOCAL_READ)),
    "no attempt from afar": replace(READ, remote=Bounds(100, RetryRule(0, 0.1, 5))),
    "a write without idempotency": replace(WRITE, idempotency=False),
    "a write that is retried": replace(WRITE, retry=LOCAL_READ),
    "a local write": replace(WRITE, local=True),
    "a local read that may take long": replace(READ, local=True, timeout_ms=2_001),
}
TOOLS = {spec.name: spec.snapshot() for spec in BUILTIN_TOOLS}


def _accepts(tool: ToolSnapshot, arguments: dict[str, JsonValue]) -> bool:
    try:
        check_arguments(tool, arguments)
    except ContractError:
        return False
    return True


def test_builtin_tools_are_the_sources() -> None:
    """Names, arguments, timeouts, retry safety and effects are the source document's, in order."""
    actual = [
        (
            spec.name,
            dict(spec.arguments),
            spec.timeout_ms,
            spec.retry.max_attempts > 1,
            spec.side_effect,
            spec.idempotency,
        )
        for spec in BUILTIN_TOOLS
    ]
    assert SOURCE_TOOLS == actual[: len(SOURCE_TOOLS)]
    assert ["read_issue"] == [name for name, *_ in actual[len(SOURCE_TOOLS) :]]


@pytest.mark.parametrize("spec", [READ, WRITE])
def test_a_complete_tool_registers(spec: ToolSpec) -> None:
    """A tool with every part is found by its name, and only by that."""
    registry = ToolRegistry(spec)
    assert spec is registry.get(spec.name)
    for name in ("", "READ_NOTE", "read_note ", "os.system", "__class__"):
        assert registry.get(name) is None


@pytest.mark.parametrize("spec", BAD_SPECS.values(), ids=BAD_SPECS)
def test_an_incomplete_or_unsafe_tool_does_not_register(spec: ToolSpec) -> None:
    """A tool without every part, or a write that could run twice, never gets into the registry."""
    registry = ToolRegistry()
    with pytest.raises(ValueError, match="cannot be registered"):
        registry.register(spec)
    assert [] == list(registry)
    assert registry.get(spec.name) is None


MISTYPED: dict[str, tuple[str, object]] = {
    "an effect as text": ("effect", "write"),
    "a kind as text": ("arguments", {"n": "str"}),
    "no kind": ("arguments", {"n": "int"}),
    "arguments as a list": ("arguments", ["n"]),
    "an argument that only looks so": ("arguments", {"p\u0430th": Kind.TEXT}),
    "a number for a name": ("name", 7),
    "a list for a name": ("name", ["read"]),
    "a name that only looks so": ("name", "l\u043e\u043ekup_component_owner"),
    "a name without end": ("name", "a" * 100_000),
    "a name of Temporal's": ("name", "__temporal_read"),
    "a number for a purpose": ("purpose", 3),
    "a purpose without end": ("purpose", "a" * 3_000_000),
    "half a character": ("purpose", "Read \ud800"),
    "a timeout as text": ("timeout_ms", "200"),
    "a timeout that is none": ("timeout_ms", float("nan")),
    "half a millisecond": ("timeout_ms", 0.5),
    "an endless timeout": ("timeout_ms", 10**30),
    "true for a timeout": ("timeout_ms", True),
    "no retry rule": ("retry", 3),
    "no attempts": ("retry", RetryRule(cast("Any", None), 0.1, 5)),
    "half an attempt": ("retry", RetryRule(cast("Any", 2.5), 0.1, 5)),
    "endless attempts": ("retry", RetryRule(10**12, 0.1, 5)),
    "an endless pause": ("retry", RetryRule(2, float("inf"), 5)),
    "a pause that is none": ("retry", RetryRule(2, float("nan"), 5)),
    "a word for a truth": ("idempotency", "no"),
    "a normaliser as text": ("normalise", "x"),
    "remote bounds that are none": ("remote", 5),
}


@pytest.mark.parametrize("name", MISTYPED)
def test_a_part_of_another_type_does_not_register(name: str) -> None:
    """What is not of its type, or beyond its bounds, is told; it never stops a run instead."""
    part, value = MISTYPED[name]
    registry = ToolRegistry()
    with pytest.raises(ValueError, match="cannot be registered: ") as told:
        registry.register(replace(READ, **{part: cast("Any", value)}))
    assert [] == list(registry)
    assert len(str(told.value)) < 300


@pytest.mark.parametrize("part", [p.name for p in fields(ToolSpec) if p.default is MISSING])
def test_no_part_may_be_none(part: str) -> None:
    """Each of name, purpose, schema, timeout, retry, effect, idempotency, normaliser is needed."""
    values = {each.name: getattr(READ, each.name) for each in fields(ToolSpec)}
    with pytest.raises(ValueError, match=rf"cannot be registered: it has no {part}$"):
        ToolRegistry(ToolSpec(**{**values, part: None}))
    del values[part]
    with pytest.raises(TypeError):
        ToolSpec(**values)


def test_a_name_registers_once() -> None:
    """A second tool of a name is refused, and the first one stays."""
    registry = ToolRegistry(READ)
    with pytest.raises(ValueError, match="registered twice"):
        registry.register(replace(READ, purpose="Something else"))
    assert READ is registry.get("read_note")


def test_a_registry_keeps_the_order_of_registration() -> None:
    """Snapshots and digests do not depend on anything but what was registered, in its order."""
    registry = ToolRegistry(WRITE, READ)
    assert ["write_note", "read_note"] == [spec.name for spec in registry]
    assert ["write_note", "read_note"] == [spec.name for spec in registry]


def test_a_tool_that_asks_a_remote_tracker_is_bounded_by_that() -> None:
    """Where the tracker is remote, its bounds count and each call is told the issue."""
    tool = replace(READ, remote=Bounds(9_000, RetryRule(4, 1, 60)))
    near, far = tool.snapshot(), tool.snapshot(remote=True)
    assert (100, 3, False) == (near.timeout_ms, near.max_attempts, near.target)
    assert (9_000, 4, True) == (far.timeout_ms, far.max_attempts, far.target)
    assert not READ.snapshot(remote=True).target
    assert replace(READ, about_issue=True).snapshot().target


def test_a_local_read_that_asks_a_remote_tracker_is_local_no_more() -> None:
    """A read runs inside the workflow task only where nobody has to be asked for its answer."""
    tool = replace(READ, local=True, remote=Bounds(9_000, RetryRule(4, 1, 60)))
    assert (True, False) == (tool.snapshot().local, tool.snapshot(remote=True).local)
    assert not replace(READ, local=True, about_issue=True).snapshot().local
    named = {spec.name for spec in BUILTIN_TOOLS if spec.snapshot().local}
    assert {"lookup_component_owner", "search_triage_policy"} == named


def test_a_snapshot_says_what_a_workflow_needs() -> None:
    """Effects and operation ids are written only where they are true, to keep histories small."""
    read, write = READ.snapshot(), WRITE.snapshot()
    assert {"name", "arguments", "timeout_ms", "max_attempts"} == read.model_fields_set
    assert (False, False, 3) == (read.side_effect, read.operation_id, read.max_attempts)
    assert (True, True, 1) == (write.side_effect, write.operation_id, write.max_attempts)
    assert ToolSnapshot.model_validate_json(write.model_dump_json(exclude_unset=True)) == write


@pytest.mark.parametrize(
    "changed",
    [
        replace(READ, name="read_notes"),
        replace(READ, purpose="Read another note"),
        replace(READ, arguments={"note": Kind.TEXT_LIST}),
        replace(READ, arguments={"path": Kind.TEXT}),
        replace(READ, timeout_ms=101),
        replace(READ, effect=Effect.WRITE, retry=NO_RETRY, idempotency=True),
    ],
)
def test_the_digest_is_the_version_of_the_tool_contracts(changed: ToolSpec) -> None:
    """The digest is the same for the same tools, and changes with any part of a contract."""
    digest = ToolRegistry(READ).digest()
    assert digest == ToolRegistry(replace(READ)).digest()
    assert digest != ToolRegistry(changed).digest()


@pytest.mark.parametrize(
    ("name", "arguments", "accepted"),
    [
        ("lookup_component_owner", {"path": "a"}, True),
        ("lookup_component_owner", {"path": " "}, True),
        ("lookup_component_owner", {"path": "x" * MAX_PATH_CHARS}, True),
        ("lookup_component_owner", {"path": "x" * (MAX_PATH_CHARS + 1)}, False),
        ("lookup_component_owner", {"path": ""}, False),
        ("lookup_component_owner", {"path": None}, False),
        ("lookup_component_owner", {"path": True}, False),
        ("lookup_component_owner", {"path": ["a"]}, False),
        ("lookup_component_owner", {}, False),
        ("lookup_component_owner", {"path": "a", "ref": "main"}, False),
        ("lookup_component_owner", {"topic": "a"}, False),
        ("apply_labels", {"issue_id": "1", "labels": ["bug"]}, True),
        ("apply_labels", {"issue_id": "1", "labels": ["b"] * MAX_LIST_ITEMS}, True),
        ("apply_labels", {"issue_id": "1", "labels": ["b"] * (MAX_LIST_ITEMS + 1)}, False),
        ("apply_labels", {"issue_id": "1", "labels": []}, False),
        ("apply_labels", {"issue_id": "1", "labels": ["bug", ""]}, False),
        ("apply_labels", {"issue_id": "1", "labels": "bug"}, False),
        ("apply_labels", {"issue_id": "1", "labels": {"bug": True}}, False),
        ("apply_labels", {"issue_id": 1, "labels": ["bug"]}, False),
        ("apply_labels", {"labels": ["bug"]}, False),
    ],
    ids=short,
)
def test_arguments_are_exactly_the_specs(
    name: str, arguments: dict[str, JsonValue], accepted: bool
) -> None:
    """Missing, extra, empty, wrong and oversized arguments are refused before anything runs."""
    assert accepted is _accepts(TOOLS[name], arguments)


def test_a_refusal_names_the_tool_and_the_argument() -> None:
    """What is wrong with a call can be found from the message alone."""
    tool = TOOLS["apply_labels"]
    expected = r"^apply_labels arguments must be exactly \['issue_id', 'labels'\]$"
    with pytest.raises(ContractError, match=expected):
        check_arguments(tool, {})
    with pytest.raises(ContractError, match=r"^apply_labels\.labels has the wrong type$"):
        check_arguments(tool, {"issue_id": "1", "labels": "bug"})


@pytest.mark.parametrize("name", TOOLS)
def test_arguments_accepted_are_the_sources(name: str) -> None:
    """On random values within our limits, check, JSON Schema and source accept the same."""
    tool, spec = TOOLS[name], BUILTIN_TOOLS.get(name)
    assert spec is not None
    schema = Draft202012Validator(spec.argument_schema())
    kinds: dict[str, SearchStrategy[JsonValue]] = {"str": TEXTS, "str_list": text_lists(TEXTS)}
    likely = near_objects({part: kinds[kind] for part, kind in tool.arguments.items()})
    seen: Counter[bool] = Counter()

    @PROPERTY
    @given(st.one_of(likely, st.dictionaries(TEXTS, JSON_VALUES, max_size=3)))
    def agrees(arguments: dict[str, JsonValue]) -> None:
        expected = accepts_arguments(tool.arguments, arguments)
        seen[expected] += 1
        assert expected is _accepts(tool, arguments)
        assert expected is schema.is_valid(arguments)

    agrees()
    assert {True, False} == set(seen)


@pytest.mark.parametrize("spec", [*BUILTIN_TOOLS, READ, WRITE], ids=lambda spec: spec.name)
def test_argument_schemas_are_exact(spec: ToolSpec) -> None:
    """A schema is valid JSON Schema that requires every argument and permits no other."""
    schema = spec.argument_schema()
    Draft202012Validator.check_schema(schema)
    assert ("object", list(spec.arguments), False) == (
        schema["type"],
        schema["required"],
        schema["additionalProperties"],
    )
