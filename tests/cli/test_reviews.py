"""Checks approve, reject, operations and the tracker's issues around one real write."""

import os
import pwd
from pathlib import Path

from tests.cli.conftest import Stack, id_in


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
    assert {"accepted": False, "code": "stale_version", "version": 6} == stale.json()
    assert [1, 1, 1, 0, 1] == [a.status for a in (stale, other, forged, right, late)]
    assert "not_pending: the run is not waiting for this operation" in other.err
    assert "digest_mismatch" in forged.err
    assert {"accepted": True, "code": "accepted", "version": 6} == right.json()
    assert ("completed", ["bug", "component:api"]) == (response["status"], response["labels"])
    assert "has ended" in late.err


def test_a_reviewer_sees_the_exact_operation(stack: Stack, request_file: Path) -> None:
    """Before anything is sent, the operation is shown: target, labels, version and digest."""
    name = f"see-{id_in(request_file)}"
    follower = stack.waiting(request_file, name)
    [state] = [stack.triage("show", name, "--format", "json").json()]
    answer = stack.triage("reject", name, "op-6", "--version", "6", "--note", "not ours")
    rejected = follower.finish().json()
    for part in (
        "op-6 at version 6: apply_labels",
        f"local:local#{id_in(request_file)}",
        'after       "bug", "component:api"',
        state["pending"]["digest"],
    ):
        assert part in answer.err
        assert part in "\n".join(follower.told)
    assert ("review_required", "approval_required") == (rejected["status"], rejected["failure"])
    assert f"rejected op-6 at version 6 as {pwd.getpwuid(os.getuid()).pw_name}\n" == answer.out


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
