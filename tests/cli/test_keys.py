"""Keys come and go where no server is, and a key that is not safe signs nothing."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Answer, Triage, clean_environment
from triage.signing.files import KeyringFile

APPROVE = ("approve", "some-run", "op-6", "--version", "6")


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def _said(answer: Answer) -> str:
    return answer.out + answer.err


def test_a_new_key_is_for_its_owner_alone(triage: Triage, tmp_path: Path) -> None:
    """The private file and its folder are the owner's, the ring is for all, and no secret shows."""
    answer = triage("keys", "new", "ann", "--subject", "1001")
    key, ring = tmp_path / "keys" / "ann.json", tmp_path / "keyring.json"
    private = json.loads(key.read_text())
    [entry] = KeyringFile(ring).load().entries
    assert 0 == answer.status, answer.err
    assert (0o700, 0o600, 0o644) == (_mode(key.parent), _mode(key), _mode(ring))
    assert (private["kid"], "1001", "ann") == (entry.kid, entry.subject, entry.approver)
    assert private["x"] == entry.public_key.x
    assert private["d"] not in _said(answer) + ring.read_text()


def test_whoever_made_a_key_is_told_what_to_do(triage: Triage, tmp_path: Path) -> None:
    """The next steps name the setting, or say that nothing has to be restarted once it is set."""
    ring = tmp_path / "keyring.json"
    first = triage("keys", "new", "ann")
    second = triage("keys", "new", "bob", env={"TRIAGE_KEYRING": str(ring)})
    assert f"export TRIAGE_KEYRING={ring} TRIAGE_LOCAL_TRUST=false" in first.err
    assert "--version N --sign\n" in first.err
    assert "without a restart" in second.err
    assert f"--sign --key {tmp_path / 'keys' / 'bob.json'}\n" in second.err


def test_a_key_is_never_overwritten(triage: Triage, tmp_path: Path) -> None:
    """A second key of the same name needs another file; until then nothing has changed."""
    triage("keys", "new", "ann", "--subject", "1001")
    key, ring = tmp_path / "keys" / "ann.json", tmp_path / "keyring.json"
    before = (key.read_bytes(), ring.read_bytes())
    again = triage("keys", "new", "ann")
    assert (2, "", before) == (again.status, again.out, (key.read_bytes(), ring.read_bytes()))
    assert "never overwritten" in again.err
    assert "--key" in again.err


def test_a_person_s_next_key_has_the_same_owner(triage: Triage, tmp_path: Path) -> None:
    """For a rotation the subject need not be known by heart, and the older key is pointed at."""
    triage("keys", "new", "ann", "--subject", "1001")
    made = triage("keys", "new", "ann", "--key", tmp_path / "next.json", "--format", "json")
    first, second = KeyringFile(tmp_path / "keyring.json").load().entries
    assert ["1001", "1001"] == [first.subject, second.subject]
    assert second.kid == made.json()["entry"]["kid"]
    assert f"triage keys retire {first.kid}" in made.err


def test_a_key_that_cannot_be_added_is_not_kept(triage: Triage, tmp_path: Path) -> None:
    """Where the keyring cannot be written, no private key is left behind that counts nowhere."""
    ring = tmp_path / "missing" / "keyring.json"
    answer = triage("keys", "new", "ann", env={"TRIAGE_KEYRING": str(ring)})
    assert (2, "") == (answer.status, answer.out)
    assert str(ring) in answer.err
    assert [] == list((tmp_path / "keys").iterdir())


@pytest.mark.parametrize("name", ["", "two words", "../ann", ".ann", "a\u202eb"])
def test_a_name_that_cannot_be_used(triage: Triage, tmp_path: Path, name: str) -> None:
    """A name that is none, or would lead out of the folder, makes neither key nor folder."""
    answer = triage("keys", "new", "--", name)
    assert (2, "") == (answer.status, answer.out)
    assert "error: this name" in answer.err
    assert [] == list(tmp_path.iterdir())


def test_keys_are_listed(triage: Triage, tmp_path: Path) -> None:
    """Each key has a line for people, and for programs the entry as the keyring has it."""
    assert ([], 0) == ((none := triage("keys", "list", "--format", "json")).json(), none.status)
    triage("keys", "new", "ann", "--subject", "1001")
    [entry] = triage("keys", "list", "--format", "json").json()
    listed = triage("keys", "list").out.splitlines()
    assert json.loads((tmp_path / "keyring.json").read_text()) == [entry]
    assert ["KEY", "APPROVER", "SUBJECT", "FROM", "STATE"] == listed[0].split()
    assert [entry["kid"], "ann", "1001"] == listed[1].split()[:3]
    assert listed[1].rstrip().endswith("in use")


def test_a_key_is_retired_for_good(triage: Triage) -> None:
    """The earliest retirement stands, in whole seconds as tokens have them; none is undone."""
    kid = triage("keys", "new", "ann", "--format", "json").json()["entry"]["kid"]
    triage("keys", "retire", kid, "--at", "2090-01-01T01:00+01:00")
    later = triage("keys", "retire", kid, "--at", "2099-01-01T00:00Z")
    now = triage("keys", "retire", kid)
    [entry] = triage("keys", "list", "--format", "json").json()
    assert f"{kid} of ann: in use until 2090-01-01 00:00 UTC\n" == later.out
    day, minute = entry["retired_at"][:10], entry["retired_at"][11:16]
    assert f"{kid} of ann: retired since {day} {minute} UTC\n" == now.out
    assert entry["retired_at"] < "2090"
    assert "." not in entry["retired_at"]


@pytest.mark.parametrize(
    ("arguments", "status"),
    [(["nobody-s"], 1), (["any", "--at", "soon"], 2), (["any", "--at", "2030-01-01T00:00"], 2)],
    ids=["unknown", "no time", "no zone"],
)
def test_what_cannot_be_retired(triage: Triage, arguments: list[str], status: int) -> None:
    """An unknown key is refused, and a time needs its zone."""
    triage("keys", "new", "ann")
    answer = triage("keys", "retire", *arguments)
    assert (status, "") == (answer.status, answer.out)
    assert "hint:" in answer.err


def test_a_person_is_not_retired(triage: Triage) -> None:
    """Whoever names a person is told which keys are theirs."""
    kid = triage("keys", "new", "ann", "--format", "json").json()["entry"]["kid"]
    answer = triage("keys", "retire", "ann")
    assert (1, "") == (answer.status, answer.out)
    assert f"theirs are: {kid}" in answer.err


def test_a_key_that_others_may_read_signs_nothing(triage: Triage, tmp_path: Path) -> None:
    """It is refused before anybody is asked, with the line that puts it right."""
    triage("keys", "new", "ann")
    key = tmp_path / "keys" / "ann.json"
    key.chmod(0o640)
    answer = triage(*APPROVE, "--sign")
    key.chmod(0o600)
    assert (2, "") == (answer.status, answer.out)
    assert f"hint: chmod 600 {key}\n" in answer.err
    assert 3 == triage(*APPROVE, "--sign").status


def test_a_keyring_that_others_may_write_is_not_used(triage: Triage, tmp_path: Path) -> None:
    """Every command refuses it, with the line that puts it right."""
    triage("keys", "new", "ann")
    ring = tmp_path / "keyring.json"
    ring.chmod(0o666)
    for arguments in (["list"], ["new", "bob"], ["retire", "any"]):
        answer = triage("keys", *arguments)
        assert (2, "") == (answer.status, answer.out)
        assert f"hint: chmod go-w {ring}\n" in answer.err


def test_a_broken_key_is_told_without_its_content(triage: Triage, tmp_path: Path) -> None:
    """What is wrong with a key's file is told, with a traceback too, and nothing of it is shown."""
    triage("keys", "new", "ann")
    key = tmp_path / "keys" / "ann.json"
    private = json.loads(key.read_text())
    key.write_text(json.dumps(private | {"kty": "RSA", "more": "s3cret"}))
    answer = triage("--debug", *APPROVE, "--sign")
    assert (2, "") == (answer.status, answer.out)
    assert "key.kty" in answer.err
    assert [] == [part for part in ("s3cret", private["d"]) if part in _said(answer)]


def test_the_key_to_sign_with_must_be_plain(triage: Triage, tmp_path: Path) -> None:
    """Without a key, with several, with another's or without --sign, nothing is signed."""
    none = triage(*APPROVE, "--sign")
    triage("keys", "new", "ann")
    triage("keys", "new", "bob")
    several = triage(*APPROVE, "--sign")
    ann = tmp_path / "keys" / "ann.json"
    foreign = triage(*APPROVE, "--sign", "--key", ann, "--as", "bob")
    unsigned = triage(*APPROVE, "--key", ann)
    chosen = triage(*APPROVE, "--sign", env={"TRIAGE_SIGNING_KEY": str(ann)})
    assert [2, 2, 2, 2, 3] == [a.status for a in (none, several, foreign, unsigned, chosen)]
    assert "triage keys new" in none.err
    assert "ann.json, bob.json" in several.err
    assert "this is the key of ann" in foreign.err
    assert "add --sign" in unsigned.err


def test_the_doctor_tells_whether_signatures_can_count(triage: Triage, tmp_path: Path) -> None:
    """A ring that is set is used or fails; without one it matters whether unsigned ones count."""
    triage("keys", "new", "ann")
    ring = tmp_path / "keyring.json"
    settings = {"TRIAGE_KEYRING": str(ring), "TRIAGE_LOCAL_TRUST": "false"}
    used = _keyring_row(triage, settings)
    ring.chmod(0o602)
    open_to_all = _keyring_row(triage, settings)
    nothing_counts = _keyring_row(triage, {"TRIAGE_LOCAL_TRUST": "false"})
    assert ("ok", f"{ring}: 1 of 1 keys in use") == (used["status"], used["detail"])
    assert ("fail", f"chmod go-w {ring}") == (open_to_all["status"], open_to_all["advice"])
    assert "warn" == nothing_counts["status"]
    unasked = _keyring_row(triage, {"TRIAGE_LOCAL_TRUST": "true"})
    assert ("ok", "none is set: no signature can be checked") == (
        unasked["status"],
        unasked["detail"],
    )
    assert "triage keys new" in nothing_counts["advice"]


def _keyring_row(triage: Triage, env: dict[str, str]) -> dict[str, str]:
    rows: list[dict[str, str]] = triage("doctor", "--format", "json", env=env).json()
    [row] = [row for row in rows if row["check"] == "keyring"]
    return row


@pytest.mark.parametrize("module", ["triage.cli.main", "triage.cli.reviewing"])
def test_only_who_signs_loads_the_library(tmp_path: Path, module: str) -> None:
    """Neither help nor an unsigned approval waits for cryptography to load."""
    code = f"import sys, {module}; print(*{{m.split('.')[0] for m in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=clean_environment(tmp_path),
        capture_output=True,
        text=True,
        check=True,
    )
    assert set() == {"joserfc", "cryptography"} & set(done.stdout.split())


def test_a_service_s_key_lies_apart_and_says_for_whom_it_signs(
    triage: Triage, tmp_path: Path
) -> None:
    """Nobody signs with it by accident, and the list and the next steps say what it is for."""
    made = triage("keys", "new", "triage-serve", "--vouches-for", "github")
    key = tmp_path / "service-keys" / "triage-serve.json"
    assert 0o600 == _mode(key)
    assert f"export TRIAGE_SERVICE_KEY={key}" in made.err
    [entry] = KeyringFile(tmp_path / "keyring.json").load().entries
    assert ("github",) == entry.vouches_for
    assert "in use, vouches for github" in triage("keys", "list").out
