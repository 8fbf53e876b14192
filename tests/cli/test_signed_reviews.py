"""Where unsigned approvals do not count: a real server and worker, and keys that come and go."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Answer, Follower, Stack, Up, clean_environment, id_in, run_triage
from tests.replay.histories import payloads
from triage.contracts.canonical import short_hash

OPERATION = ("op-6", "--version", "6")
A_TOKEN_BEGINS = "eyJ"
"""Every token does: it is how a JSON object in base64 begins."""
SIGNED = "  signed      by ann with the key "


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack whose worker counts signed approvals only, and Ann's key in its keyring."""
    home = tmp_path_factory.mktemp("signed")
    made = run_triage("keys", "new", "ann", "--subject", "1001", env=clean_environment(home))
    assert 0 == made.status, made.err
    settings = {"TRIAGE_LOCAL_TRUST": "false", "TRIAGE_KEYRING": str(home / "keyring.json")}
    up = Up(home, **settings)
    yield Stack(up)
    up.end()


def _waiting(signed: Stack, request: Path) -> tuple[str, Follower]:
    name = f"signed-{id_in(request)}"
    return name, signed.waiting(request, name)


def _key(signed: Stack, name: str = "ann") -> Path:
    return signed.up.home / "keys" / f"{name}.json"


def _approve(signed: Stack, run: str, *more: str | Path) -> Answer:
    answer = signed.triage("approve", run, *OPERATION, *more)
    assert A_TOKEN_BEGINS not in answer.out + answer.err
    return answer


def test_only_a_signature_counts(signed: Stack, request_file: Path) -> None:
    """An unsigned approval is refused and told how to sign; a signed one writes; it ends there."""
    name, follower = _waiting(signed, request_file)
    shown = signed.triage("show", name).out
    unsigned = _approve(signed, name, "--as", "ann")
    accepted = _approve(signed, name, "--sign", "--key", _key(signed))
    response = follower.finish().json()
    second = _approve(signed, name, "--sign", "--key", _key(signed))
    assert [1, 0, 1] == [answer.status for answer in (unsigned, accepted, second)]
    assert f"waits for a person: triage approve {name} op-6 --version 6 --sign\n" in shown
    assert "unauthorised: this approver may not decide" in unsigned.err
    assert "'triage keys new NAME' and add --sign" in unsigned.err
    assert "approved op-6 at version 6 as ann\n" == accepted.out
    assert ("completed", ["bug", "component:api"]) == (response["status"], response["labels"])
    assert "has ended: no decision counts any more" in second.err


def test_a_token_stays_between_its_signer_and_the_run(signed: Stack, request_file: Path) -> None:
    """The token that the history holds is in no output and in no log of worker, server or stack."""
    name, follower = _waiting(signed, request_file)
    env = {"TRIAGE_DEBUG": "1"}
    key = _key(signed)
    wrong = signed.triage("reject", name, "op-6", "--version", "5", "--sign", "--key", key, env=env)
    right = signed.triage("reject", name, *OPERATION, "--sign", "--key", key, env=env)
    assert "review_required" == follower.finish().json()["status"]
    [token] = _tokens(signed.temporal("workflow", "show", "--workflow-id", name))
    logs = [path.read_text(errors="replace") for path in _logs(signed)]
    said = [text for answer in (wrong, right) for text in (answer.out, answer.err)]
    assert (1, 0) == (wrong.status, right.status)
    assert "rejected op-6 at version 6 as ann\n" == right.out
    assert [] == [text for text in (*said, *logs) if token in text]


def test_a_token_says_what_it_is_for(signed: Stack, request_file: Path) -> None:
    """It is for this run of this name alone, at this version, in this namespace, for minutes."""
    name, follower = _waiting(signed, request_file)
    digest = signed.triage("show", name, "--format", "json").json()["pending"]["digest"]
    shown = signed.temporal("workflow", "describe", "--workflow-id", name)
    _approve(signed, name, "--sign", "--key", _key(signed))
    follower.finish()
    [token] = _tokens(signed.temporal("workflow", "show", "--workflow-id", name))
    payload = token.split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    first = shown["workflowExecutionInfo"]["firstRunId"]
    expected = {
        "iss": "bounded-triage",
        "aud": "bounded-triage/approve:default",
        "sub": "1001",
        "workflow_id": name,
        "scope": short_hash("default", name, first),
        "operation_id": "op-6",
        "operation_digest": digest,
        "state_version": 6,
        "verdict": "approve",
    }
    assert expected == {name: claims[name] for name in expected}
    assert 300 == claims["exp"] - claims["iat"]


def _logs(signed: Stack) -> list[Path]:
    found = [signed.up.log, *signed.up.home.glob("*.log")]
    assert {"up.err", "worker.log", "temporal.log"} <= {path.name for path in found}
    return found


def _tokens(history: object) -> set[str]:
    """Find the tokens in the payloads of a history."""
    held = [json.loads(data or b"null") for data in payloads(history)]
    return {value["token"] for value in held if isinstance(value, dict) and "token" in value}


def test_nothing_but_what_was_shown_is_signed(signed: Stack, request_file: Path) -> None:
    """Another operation, version or digest is refused before anything is signed or sent."""
    name, follower = _waiting(signed, request_file)
    sign = ("--sign", "--key", str(_key(signed)), "--format", "json")
    answers = [
        signed.triage("approve", name, "op-5", "--version", "6", *sign),
        signed.triage("approve", name, "op-6", "--version", "5", *sign),
        signed.triage("approve", name, *OPERATION, "--digest", f"sha256:{'0' * 64}", *sign),
    ]
    assert [1, 1, 1] == [answer.status for answer in answers]
    codes = ["not_pending", "stale_version", "digest_mismatch"]
    assert codes == [answer.json()["code"] for answer in answers]
    right = _approve(signed, name, *sign)
    assert 0 == right.status
    told = [SIGNED in answer.err for answer in (*answers, right)]
    assert [False, False, False, True] == told
    follower.finish()


def test_a_stranger_s_key_does_not_count(signed: Stack, request_file: Path, tmp_path: Path) -> None:
    """A key that the worker's keyring does not have is refused, whatever name it claims."""
    name, follower = _waiting(signed, request_file)
    run_triage("keys", "new", "ann", "--subject", "1001", env=clean_environment(tmp_path))
    forged = _approve(signed, name, "--sign", "--key", tmp_path / "keys" / "ann.json")
    assert (1, "") == (forged.status, forged.out)
    assert "unauthorised" in forged.err
    assert "the worker's log names the check" in forged.err
    assert "unknown_key" in (signed.up.home / "worker.log").read_text()
    assert 0 == _approve(signed, name, "--sign", "--key", _key(signed)).status
    follower.finish()


def test_keys_are_rotated_without_a_restart(signed: Stack, request_file: Path) -> None:
    """A new key counts at once, the old one until it is retired, and the worker just goes on."""
    old, new = _key(signed, "bob"), signed.up.home / "bob-next.json"
    first = signed.triage("keys", "new", "bob", "--format", "json").json()["entry"]
    name, follower = _waiting(signed, request_file)
    signed.triage("keys", "new", "bob", "--key", new)
    assert 0 == signed.triage("keys", "retire", first["kid"]).status
    retired = _approve(signed, name, "--sign", "--key", old)
    rotated = _approve(signed, name, "--sign", "--key", new)
    assert (1, 0) == (retired.status, rotated.status)
    assert "unauthorised" in retired.err
    assert "key_retired" in (signed.up.home / "worker.log").read_text()
    assert "completed" == follower.finish().json()["status"]
    assert 1 == signed.up.log.read_text().count("the worker is ready")
