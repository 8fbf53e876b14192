"""Checks `triage edit`: what is refused before anything is sent, and what an edit does to a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Stack, Triage, write_request
from tests.cli.in_process import Typed
from tests.cli.samples import pending_view, state_view
from triage.cli import editing
from triage.cli.clients import NoWorkerError
from triage.cli.errors import CliError, InputError, RefusedError
from triage.contracts.request import parse_request
from triage.contracts.state import StateView
from workflows.start import MAX_REQUEST_BYTES

REQUEST = parse_request(
    {"request_id": "R", "title": "t", "body": "b", "changed_paths": [], "source": "test"}
)


def test_an_edit_withdraws_what_waits(stack: Stack, request_file: Path, tmp_path: Path) -> None:
    """It says what it changes and withdraws; sent again it changes nothing, and is refused."""
    name = f"edit-{json.loads(request_file.read_text())['request_id']}"
    follower = stack.waiting(request_file, name)
    changed = write_request(tmp_path, **{**json.loads(request_file.read_text()), "title": "Other"})
    edited = stack.triage("edit", name, changed)
    again = stack.triage("edit", name, changed)
    told = stack.triage("approve", name, "op-6", "--version", "6", "--as", "ann")
    stack.temporal("workflow", "terminate", "-w", name)
    follower.finish()
    late = stack.triage("edit", name, request_file)
    assert (0, f"edited {name}: title\n") == (edited.status, edited.out), edited.err
    assert "op-6 at version 6 is withdrawn and never written" in edited.err
    assert (1, True) == (told.status, "not_pending: " in told.err)
    assert [(1, ""), (1, "")] == [(answer.status, answer.out) for answer in (again, late)]
    assert "is the request of" in again.err
    assert "triage resume" in late.err


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"title": ""}, "request.title: must not be blank"),
        ({"titel": "Orders"}, "request has unknown fields: titel"),
    ],
)
def test_a_request_that_no_run_takes_is_not_sent(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    changes: dict[str, object],
    why: str,
) -> None:
    """What breaks the contract is told at once: the run would only keep it as a refusal."""
    typed = Typed(tmp_path, monkeypatch, capsys)
    answer = typed("edit", "any", write_request(tmp_path, **changes))
    assert (2, "") == (answer.status, answer.out)
    assert why in answer.err


def test_an_edit_is_of_the_same_request_and_changes_it() -> None:
    """Another request is wrong input; the same one is refused, as it would withdraw for nothing."""
    other = REQUEST.model_copy(update={"request_id": "R-2"})
    with pytest.raises(InputError, match="about the request R, not about R-2: nothing was sent"):
        editing.changes_of("run", REQUEST, other)
    with pytest.raises(RefusedError, match="already: nothing was sent"):
        editing.changes_of("run", REQUEST, REQUEST)
    changed = REQUEST.model_copy(update={"body": "c", "title": "u"})
    assert ("title", "body") == editing.changes_of("run", REQUEST, changed)


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (state_view(pending_view()), "op-6 at version 6 is withdrawn and never written"),
        (state_view(None), "a call that is under way is finished first"),
        (NoWorkerError(), editing.NO_WORKER),
        (RefusedError("?"), "what the run was doing is not known"),
    ],
    ids=("pending", "a call", "no worker", "another version"),
)
def test_what_becomes_of_the_run_is_said(state: StateView | CliError, said: str) -> None:
    """Whoever edits is told what is withdrawn, or that nobody can say."""
    assert said == editing.consequences(state)[0]


def test_the_commands_bound_is_the_runs() -> None:
    """A request that the command lets through is never too large for the run."""
    assert MAX_REQUEST_BYTES == editing.MAX_EDIT_BYTES


def test_without_a_server_nothing_hangs(triage: Triage, request_file: Path) -> None:
    """A server that is not there is told as such."""
    assert (3, "") == ((answer := triage("edit", "any", request_file)).status, answer.out)
