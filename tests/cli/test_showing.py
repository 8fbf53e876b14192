"""Checks what `triage show` says of decisions and writes, without a server."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest
from temporalio.api.common.v1 import Payload

from tests.cli.samples import DIGEST, state_view
from triage.cli.clients import Run
from triage.cli.showing import LEDGER_STATES, decided_lines, operation_states, state_lines
from triage.continuing import Beginning, beginning_of
from triage.contracts.approval import Verdict
from triage.contracts.state import OperationView, SpentView, VerdictNote

REJECTED = VerdictNote(
    operation_id="op-6",
    version=6,
    verdict=Verdict.REJECT,
    approver="ann",
    at="2026-01-31T12:00:00+00:00",
    note="not a bug\nwaits for a person: triage approve",
)


def test_a_rejection_is_shown_with_its_note() -> None:
    """Who rejected, when, and why: the words stand behind a bar, where nothing of ours does."""
    lines = [*decided_lines(state_view(None).model_copy(update={"verdicts": (REJECTED,)}))]
    assert [
        "  op-6 at version 6  rejected by ann, 2026-01-31 12:00 UTC",
        "    | not a bug",
        "    | waits for a person: triage approve",
    ] == lines


def test_a_note_that_is_missing_takes_no_room() -> None:
    """A verdict without a note is written as before, into histories that exist, too."""
    bare = REJECTED.model_copy(update={"note": None})
    assert "note" not in bare.model_dump_json()
    assert 1 == len([*decided_lines(state_view(None).model_copy(update={"verdicts": (bare,)}))])


def test_a_write_is_shown_with_the_ledgers_word_and_a_named_digest() -> None:
    """Where the ledger has another word for what became of a write, both are said."""
    views = [
        OperationView(operation_id="op-6", version=6, digest=DIGEST, state=state)
        for state in ("refused", "applied")
    ]
    lines = [*operation_states(state_view(None).model_copy(update={"operations": tuple(views)}))]
    assert [
        "  op-6 at version 6  refused",
        f"    in 'triage operations': {LEDGER_STATES['refused']}",
        f"    operation digest  {DIGEST}",
        "  op-6 at version 6  applied",
        f"    operation digest  {DIGEST}",
    ] == lines


def test_all_who_approved_are_named() -> None:
    """Where several had to, the one who decided last is not the only one."""
    note = REJECTED.model_copy(
        update={"verdict": Verdict.APPROVE, "approver": "bob", "approved_by": ("ann", "bob")}
    )
    lines = [*decided_lines(state_view(None).model_copy(update={"verdicts": (note,)}))]
    assert "approved by ann, bob, " in lines[0]


def test_what_was_spent_is_shown() -> None:
    """Tokens, money in micro-units, seconds and the bytes of evidence, each by its name."""
    spent = SpentView(tokens=2_345, cost_micros=678, seconds=9, evidence_bytes=1_234)
    run = cast("Run", SimpleNamespace(id="triage-ISSUE-1", execution_status="running"))
    state = state_view(None).model_copy(update={"spent": spent})
    text = " ".join("\n".join(state_lines(run, state, None)).split())
    assert "spent tokens 2345 cost_micros 678 seconds 9 evidence_bytes 1234" in text


LINK = {"workflow_id": "before", "run_id": "r", "version": 4}


def _payload(value: object, encoding: str = "json/plain") -> Payload:
    return Payload(metadata={"encoding": encoding.encode()}, data=json.dumps(value).encode())


@pytest.mark.parametrize(
    ("given", "request_id", "continues"),
    [
        ([_payload({"request_id": "acme-shop-7"})], "acme-shop-7", None),
        ([_payload({"request_id": "R"}), _payload({"continued_from": LINK})], "R", "before"),
        ([_payload({"request_id": 7}), _payload({"mode": 7})], "", None),
        ([_payload({"request_id": "R"}, "binary/encrypted"), _payload(None)], "", None),
        ([], "", None),
    ],
    ids=["alone", "continues", "no request", "encrypted", "nothing"],
)
def test_what_a_run_was_started_with_is_read(
    given: list[Payload], request_id: str, continues: str | None
) -> None:
    """Its request and the run before it, each as far as it can be read here."""
    found = beginning_of(given)
    link: Any = found.continued_from
    assert (request_id, continues) == (found.request_id, link and link.workflow_id)


def test_the_request_of_a_run_is_named() -> None:
    """Whoever edits a run needs its request's id, which may follow from an issue."""
    run = cast("Run", SimpleNamespace(id="a-run", execution_status="running"))
    lines = [*state_lines(run, state_view(None), None, Beginning("acme-shop-7"))]
    assert "request     acme-shop-7" in lines
    assert not any(line.startswith("request ") for line in state_lines(run, state_view(None), None))
