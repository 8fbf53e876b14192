"""What a contract error says is ours: no part of the input ever reaches a message."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from pydantic import JsonValue

from tests.unit.contracts.source_model import LABELS, ROUTES
from tests.unit.contracts.strategies import PROPERTY, json_values, near_objects, text_lists
from triage.contracts.approval import Verdict, parse_review
from triage.contracts.base import ContractError
from triage.contracts.canonical import canonical_json, parse_json
from triage.contracts.decision import parse_decision
from triage.contracts.incident import parse_incident
from triage.contracts.options import parse_options
from triage.contracts.request import parse_request
from triage.policy.tools import BUILTIN_TOOLS, check_arguments

CANARY = "c4n4ry"

_affixes = st.text(max_size=2)
_planted: SearchStrategy[str] = st.one_of(
    st.just(CANARY),
    st.builds("".join, st.tuples(_affixes, st.just(CANARY), _affixes)),
    st.builds(lambda size: CANARY + "x" * size, st.sampled_from((250, 5_000))),
)
_junk = json_values(_planted, _planted)
_texts = text_lists(_planted)


def _near(*names: str, **fields: SearchStrategy[JsonValue]) -> SearchStrategy[JsonValue]:
    return near_objects({**dict.fromkeys(names, _planted), **fields}, _junk, _planted)


_decisions = st.one_of(
    _near("kind"),
    _near(
        kind=st.just("call_tool"), tool=_near("call_id", "name", "operation_id", arguments=_junk)
    ),
    _near("route", "reason", kind=st.just("request_review"), evidence_ids=_texts),
    _near(
        "owner",
        "reason",
        kind=st.just("final"),
        route=st.sampled_from((*sorted(ROUTES), CANARY)),
        labels=st.one_of(_texts, st.just(["bug"])),
        evidence_ids=_texts,
    ),
)
_maps = st.dictionaries(_planted, _junk, max_size=3)
_options = _near(
    "model",
    "mode",
    "grounding",
    "continued_from",
    approvals=_maps,
    budget=_maps,
    context=_near("tenant", "tracker", "issue"),
    permitted_effects=_texts,
)
PARSERS: dict[str, tuple[Callable[[JsonValue], object], SearchStrategy[JsonValue]]] = {
    "request": (
        parse_request,
        _near("request_id", "title", "body", "source", changed_paths=_texts),
    ),
    "options": (parse_options, _options),
    "decision": (lambda value: parse_decision(value, routes=ROUTES, labels=LABELS), _decisions),
    "signal": (
        lambda value: parse_review(value, Verdict.APPROVE),
        _near("operation_id", "approver", "digest", "token", "note", version=_junk),
    ),
    "update": (
        lambda value: parse_review(value, None),
        _near("operation_id", "approver", "digest", "verdict", version=st.integers()),
    ),
    "incident": (
        parse_incident,
        _near("incident_id", limit=st.integers(0, 3), evidence=_maps, decisions=_junk),
    ),
}


def _message(call: Callable[[], object]) -> str:
    try:
        call()
    except ContractError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", PARSERS)
def test_no_parser_echoes_its_input(name: str) -> None:
    """Wherever a marked text is planted, as value or as key, no message holds it."""
    parser, values = PARSERS[name]
    messages: set[str] = set()

    @PROPERTY
    @given(st.one_of(values, _junk))
    def stays_silent(value: JsonValue) -> None:
        message = _message(lambda: parser(value))
        messages.add(message)
        assert CANARY not in message

    stays_silent()
    assert len(messages) > 2


@PROPERTY
@given(_junk, st.binary(min_size=1, max_size=3), st.integers(0, 80))
def test_the_reader_does_not_echo_its_input(value: JsonValue, junk: bytes, at: int) -> None:
    """A broken document is refused without a word of it."""
    data = canonical_json(value)
    broken = data[:at] + junk + data[at:]
    assert CANARY not in _message(lambda: parse_json(broken, "it"))
    assert CANARY not in _message(lambda: parse_json(b"[%s,%s" % (data, data), "it"))


def test_the_reader_does_not_echo_a_repeated_key() -> None:
    """Even the key that stands twice stays out of the message."""
    message = _message(lambda: parse_json(b'{"c4n4ry": 1, "c4n4ry": 2}', "it"))
    assert message == "it: an object has the same key twice"


@PROPERTY
@given(st.dictionaries(st.one_of(_planted, st.sampled_from(("path", "labels"))), _junk, max_size=3))
def test_argument_checks_do_not_echo_arguments(arguments: dict[str, JsonValue]) -> None:
    """A refused tool call names the tool and its own arguments only."""
    for tool in [spec.snapshot() for spec in BUILTIN_TOOLS]:
        message = _message(partial(check_arguments, tool, arguments))
        assert CANARY not in message
