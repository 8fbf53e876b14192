"""Checks approve, reject, operations and the tracker's issues around one real write."""

import json
import os
import pwd
from pathlib import Path

import pytest

from tests.cli.conftest import Answer, Stack, id_in
from triage.cli import reviewing, sending
from triage.cli.clients import Run
from triage.cli.errors import RefusedError
from triage.cli.output import Format
from triage.cli.reviewing import Given
from triage.cli.sending import Outcome
from triage.contracts.approval import Review


def test_an_operation_is_approved_once(stack: Stack, request_file: Path) -> None:
    """Only the exact operation at its version counts; then it is written, and never again."""
    name = f"approve-{id_in(request_file)}"
    follower = stack.waiting(request_file, name)
    stale = stack.triage("approve", name, "op-6", "--version", "5", "--format", "json")
    other = stack.triage("approve", name, "op-5", "--version", "6")
    forged = stack.triage(
        "approve", name, "op-6", "--version", "6", "--digest", f"sha256:{'0' * 64}"
    )
    right = stack.triage("approve", name, "op-6", "--version", "6", "--format", "json")
    response = follower.finish().json()
    late = stack.triage("approve", name, "op-6", "--version", "6")
    assert (False, "stale_version", 6) == _answered(stale)
    assert "is pending at version 6, not 5" in stale.json()["reason"]
    assert "is pending at version 6, not 5" in stale.err
    assert [1, 1, 1, 0, 1] == [a.status for a in (stale, other, forged, right, late)]
    assert "not_pending: the run is not waiting for this operation" in other.err
    assert "digest_mismatch" in forged.err
    assert (True, "accepted", 6) == _answered(right)
    assert (name, "op-6") == (
        right.json()["workflow_id"],
        right.json()["review"]["operation"]["operation_id"],
    )
    assert ("completed", ["bug", "component:api"]) == (response["status"], response["labels"])
    assert (
        "has ended: no decision counts any more; op-6 at version 6 is applied already" in late.err
    )


def test_a_signature_that_nobody_checks_is_told_as_such(
    stack: Stack, request_file: Path, tmp_path: Path
) -> None:
    """Under local trust a forged signature counts, so it is called unchecked, then and later."""
    name = f"unchecked-{id_in(request_file)}"
    stack.triage("keys", "new", "ann", env={"TRIAGE_HOME": str(tmp_path)})
    key = tmp_path / "keys" / "ann.json"
    follower = stack.waiting(request_file, name)
    approved = stack.triage("approve", name, "op-6", "--version", "6", "--sign", "--key", key)
    follower.finish()
    [told] = [line for line in stack.triage("explain", name).out.splitlines() if "by ann" in line][
        :1
    ]
    assert 0 == approved.status
    assert reviewing.UNCHECKED in approved.err.splitlines()
    assert told.endswith("by ann, signed, not checked (local trust takes any approval): it counts")


def _answered(answer: Answer) -> tuple[bool, str, int]:
    document = answer.json()
    return document["accepted"], document["code"], document["version"]


def test_a_reviewer_sees_the_exact_operation(
    stack: Stack, request_file: Path, tmp_path: Path
) -> None:
    """All ways to look show the same: what is written, on what grounds, and the issue's text."""
    name = f"see-{id_in(request_file)}"
    follower = stack.waiting(request_file, name)
    state = stack.triage("show", name, "--format", "json").json()
    shown = stack.triage("show", name)
    dry = stack.triage("approve", name, "op-6", "--version", "6", "--dry-run")
    words = ("approve", name, "op-6", "--version", "6", "--format", "json")
    blind = stack.triage(*words, env={"TRIAGE_HOME": str(tmp_path / "elsewhere")})
    answer = stack.triage("reject", name, "op-6", "--version", "6", "--note", "not ours")
    rejected = follower.finish().json()
    told = stack.triage("show", name).out
    assert "  op-6 at version 6  rejected by " in told
    assert "    | not ours\n" in told
    for part in (
        "op-6 at version 6: apply_labels",
        f"local:local#{id_in(request_file)}",
        'changes     + "bug"\n              + "component:api"\n',
        state["pending"]["digest"],
        "owners-api by lookup_component_owner (cited)",
        '    | {"allowed_labels":["bug","component:api"],"owner":"backend-team"}',
        "model's text, which nobody has checked (final)\n  route       bug",
        "issue (the digest covers this text)",
        "    | Every POST fails with status 500 since the last release.",
    ):
        for output in (answer.err, "\n".join(follower.told), shown.out, dry.out):
            assert part in output
    assert (0, "nothing was sent\n") == (dry.status, dry.err)
    assert (1, False, False) == (blind.status, blind.json()["sent"], blind.json()["accepted"])
    assert "the issue cannot be shown here" in blind.err
    assert "hint: go to the folder that the worker runs in, or set TRIAGE_HOME" in blind.err
    assert (name, True) == (state["workflow_id"], state["review"]["issue"]["covered_by_digest"])
    assert ("review_required", "approval_required") == (rejected["status"], rejected["failure"])
    assert f"rejected op-6 at version 6 as {pwd.getpwuid(os.getuid()).pw_name}\n" == answer.out


def test_stopped_writes_are_not_approved(stack: Stack, request_file: Path) -> None:
    """While writes are stopped whoever looks is told, and an approval is sent only on purpose."""
    name = f"stopped-{id_in(request_file)}"
    follower = stack.waiting(request_file, name)
    stack.triage("writes", "stop", "--reason", "wrong labels", "--as", "ann")
    try:
        shown = stack.triage("show", name)
        refused = stack.triage("approve", name, "op-6", "--version", "6", "--format", "json")
        doctor = stack.triage("doctor", "--format", "json")
        still = stack.triage("show", name, "--format", "json").json()
        sent = stack.triage("approve", name, "op-6", "--version", "6", "--anyway")
        response = follower.finish().json()
        refused_run = stack.triage("show", name).out
    finally:
        stack.triage("writes", "allow")
    for text in (shown.out, refused.err, sent.err):
        assert "warning: writes are stopped for everybody, by ann at " in text
    [warning] = [row for row in doctor.json() if row["check"] == "writes"]
    assert ("warn", True) == (warning["status"], "by ann at" in warning["detail"])
    assert (1, False, False) == (
        refused.status,
        refused.json()["sent"],
        refused.json()["accepted"],
    )
    assert "--anyway" in refused.err
    assert (None, 0) == (still["response"], len(still["refusals"]))
    assert (0, "policy_block") == (sent.status, response["failure"])
    assert f"continue    once that is settled: triage resume {name}\n" in refused_run


def test_only_what_was_shown_is_approved(
    stack: Stack,
    request_file: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An edit between showing and sending is told: nothing that was not shown gets approved."""
    name = f"race-{id_in(request_file)}"
    follower = stack.waiting(request_file, name)
    edited = json.loads(request_file.read_text()) | {"title": "Orders fail now and then"}
    send = sending.send

    async def late(run: Run, review: Review, version: int) -> Outcome:
        await run.handle.signal("edit", edited)
        return await send(run, review, version)

    for variable in ("TEMPORAL_ADDRESS", "TRIAGE_HOME"):
        monkeypatch.setenv(variable, stack.up.environment[variable])
    monkeypatch.setattr(sending, "send", late)
    given = Given("approve", "op-6", 6, "ann", None, None)
    with pytest.raises(RefusedError) as caught:
        reviewing.review(name, given, Format.TEXT)
    assert "it changed after it was shown: " in str(caught.value)
    assert "op-6 at version 6" in capsys.readouterr().err
    shown = stack.triage("show", name).out
    assert "what the model was given\n  title\n    | Orders fail now and then\n" in shown
    assert "warning: the model was given another text than the issue's" in shown
    pending = stack.triage("show", name, "--format", "json").json()["pending"]
    assert ("op-6", 6) != (pending["operation_id"], pending["version"])
    words = (pending["operation_id"], "--version", str(pending["version"]))
    assert 0 == stack.triage("reject", name, *words).status
    follower.finish()


def test_a_blank_approver_is_no_one(stack: Stack) -> None:
    """A review without a name is bad input; nothing is looked up or sent."""
    answer = stack.triage("approve", "any", "op-6", "--version", "6", "--as", "  ")
    assert (2, "") == (answer.status, answer.out)


def test_a_write_is_on_record(stack: Stack, request_file: Path) -> None:
    """The ledger lists the write with its receipt, and the tracker what it did to the issue."""
    name = f"write-{id_in(request_file)}"
    follower = stack.waiting(request_file, name)
    stack.triage("approve", name, "op-6", "--version", "6", "--as", "ann")
    follower.finish()
    listed = stack.triage("operations", "--format", "json")
    [operation] = [row for row in listed.json() if row["workflow_id"] == name]
    attention = stack.triage("operations", "--attention", "--format", "json")
    issue = stack.triage("issues", "show", id_in(request_file), "--format", "json").json()
    assert {
        "operation_key",
        "operation_id",
        "workflow_id",
        "state",
        "epoch",
        "version",
        "digest",
        "target",
        "labels",
        "reason",
        "receipt",
    } == set(operation)
    assert ("applied", "op-6", 6) == (
        operation["state"],
        operation["operation_id"],
        operation["version"],
    )
    assert "ann" == operation["receipt"]["approval"]["approver"]
    assert [] == attention.json()
    assert ["bug", "component:api"] == issue["labels"]
    added = [event for event in issue["events"] if event["action"] == "added"]
    assert ["bug", "component:api"] == [event["label"] for event in added]
    assert name in stack.triage("operations").out
