"""Key files are for their owner's eyes, and the ring is read as it is at each moment."""

from __future__ import annotations

import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.unit.signing.makers import (
    ALICE,
    ALICE_ENTRY,
    ALICE_PRIVATE,
    BOB_ENTRY,
    NOW,
    RING,
    detail_of,
    person,
    token,
)
from triage.contracts.canonical import canonical_json
from triage.signing.files import KeyringFile, read_key, write_key
from triage.signing.keys import KeyFileError, Keyring, KeyringError


@pytest.fixture
def key_path(tmp_path: Path) -> Path:
    """The file of Alice's private key."""
    path = tmp_path / "alice.key.json"
    write_key(path, ALICE_PRIVATE)
    return path


@pytest.fixture
def ring_path(tmp_path: Path) -> Path:
    """The file of a ring with Alice and Bob."""
    path = tmp_path / "keyring.json"
    KeyringFile(path).change(lambda _: RING)
    return path


def test_a_key_from_a_file_signs(key_path: Path) -> None:
    """What was written is read back as the same key, which verifies."""
    read = read_key(key_path)
    assert ALICE == read
    assert detail_of(token(read)) is None


def test_a_key_file_is_a_json_web_key_for_its_owner_only(key_path: Path) -> None:
    """The file has the standard's members, the owner as further ones, and mode 600."""
    members = json.loads(key_path.read_text())
    assert ("OKP", "Ed25519", "sig") == (members["kty"], members["crv"], members["use"])
    assert ("1001", "alice") == (members["subject"], members["approver"])
    assert 0o600 == stat.S_IMODE(key_path.stat().st_mode)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_the_umask_changes_no_rights(tmp_path: Path, umask: int) -> None:
    """Whatever the umask, a private key is its owner's alone and a worker can read the ring."""
    before = os.umask(umask)
    try:
        write_key(tmp_path / "key.json", ALICE_PRIVATE)
        KeyringFile(tmp_path / "ring.json").change(lambda _: RING)
    finally:
        os.umask(before)
    assert 0o600 == stat.S_IMODE((tmp_path / "key.json").stat().st_mode)
    assert 0o644 == stat.S_IMODE((tmp_path / "ring.json").stat().st_mode)


def test_a_key_is_never_overwritten(key_path: Path) -> None:
    """Writing a second key to the same place fails and changes nothing."""
    before = key_path.read_bytes()
    other, _, _ = person("mallory")
    with pytest.raises(KeyFileError, match="exists"):
        write_key(key_path, other)
    assert before == key_path.read_bytes()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o601])
def test_a_key_that_others_may_use_is_refused(key_path: Path, mode: int) -> None:
    """Like ssh: whoever lets others at the file is told to close it."""
    key_path.chmod(mode)
    with pytest.raises(KeyFileError, match="chmod"):
        read_key(key_path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"c4n4ry",
        b"[]",
        b'{"d":"c4n4ry"}',
        b'{"d":1,"d":2}',
        canonical_json(ALICE_PRIVATE.model_dump(mode="json") | {"c4n4ry": 1}),
        canonical_json(ALICE_PRIVATE.model_dump(mode="json") | {"alg": "c4n4ry"}),
        canonical_json(ALICE_PRIVATE.model_dump(mode="json") | {"d": "A" * 43}),
        b" " * 20_000,
    ],
)
def test_a_bad_key_file_is_refused_unquoted(key_path: Path, content: bytes) -> None:
    """Neither the key nor anything else of the file is in the error or behind it."""
    key_path.write_bytes(content)
    with pytest.raises(KeyFileError) as failed:
        read_key(key_path)
    shown = f"{failed.value} {failed.value!r} {failed.value.__cause__}"
    assert "c4n4ry" not in shown
    assert ALICE_PRIVATE.d not in shown
    assert key_path.name not in shown


@pytest.mark.parametrize("name", ["missing.json", "folder", "nul\x00byte"])
def test_what_is_no_file_is_refused(tmp_path: Path, name: str) -> None:
    """A missing file, a folder and an impossible name are errors of their own kind."""
    (tmp_path / "folder").mkdir()
    with pytest.raises(KeyFileError):
        read_key(tmp_path / name)
    with pytest.raises(KeyringError):
        KeyringFile(tmp_path / name).load()


def test_without_a_ring_no_key_counts() -> None:
    """A worker that was given no ring can verify nothing, and says so."""
    with pytest.raises(KeyringError, match="none is set"):
        KeyringFile(None).load()


def test_a_ring_is_parsed_again_only_when_it_changed(ring_path: Path) -> None:
    """The same content is the same ring; a changed file counts at once, in whatever tick."""
    file = KeyringFile(ring_path)
    first = file.load()
    times = ring_path.stat()
    assert first is file.load()
    ring_path.write_bytes(RING.without(ALICE.kid).to_json())
    os.utime(ring_path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert RING.without(ALICE.kid) == file.load()


def test_a_ring_that_others_may_write_is_refused(ring_path: Path) -> None:
    """Whoever can write the ring can approve anything."""
    for mode in (0o664, 0o646):
        ring_path.chmod(mode)
        with pytest.raises(KeyringError, match="chmod"):
            KeyringFile(ring_path).load()


def test_a_broken_ring_is_not_replaced_by_the_last_good_one(ring_path: Path) -> None:
    """What cannot be read counts for nothing, even if it could be read before."""
    file = KeyringFile(ring_path)
    file.load()
    ring_path.write_bytes(b"[")
    with pytest.raises(KeyringError):
        file.load()
    with pytest.raises(KeyringError):
        file.change(lambda ring: ring.without(ALICE.kid))
    assert b"[" == ring_path.read_bytes()


def test_a_ring_begins_with_its_first_key(tmp_path: Path) -> None:
    """Adding a key makes the file, and a second one joins the first."""
    file = KeyringFile(tmp_path / "keyring.json")
    file.change(lambda ring: ring.with_key(ALICE_ENTRY))
    file.change(lambda ring: ring.with_key(BOB_ENTRY))
    assert RING == file.load()
    assert ["keyring.json"] == [path.name for path in tmp_path.iterdir()]


def test_a_ring_behind_a_link_is_changed_where_it_is(ring_path: Path, tmp_path: Path) -> None:
    """A link to the ring stays a link."""
    link = tmp_path / "link.json"
    link.symlink_to(ring_path)
    KeyringFile(link).change(lambda ring: ring.with_retired(ALICE.kid, NOW))
    assert link.is_symlink()
    assert RING.with_retired(ALICE.kid, NOW) == KeyringFile(ring_path).load()


def test_a_refused_change_leaves_the_ring(ring_path: Path) -> None:
    """An edit that fails changes nothing and leaves nothing behind."""
    before = ring_path.read_bytes()
    with pytest.raises(KeyringError):
        KeyringFile(ring_path).change(lambda ring: ring.with_key(ALICE_ENTRY))
    assert before == ring_path.read_bytes()
    assert [ring_path] == list(ring_path.parent.iterdir())


def test_keys_added_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    """Two people who add a key at once do not overwrite each other."""
    path = tmp_path / "keyring.json"
    entries = [person(f"person-{number}")[2] for number in range(8)]

    def add(entry_number: int) -> Keyring:
        return KeyringFile(path).change(lambda ring: ring.with_key(entries[entry_number]))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(8)))
    assert sorted(entry.kid for entry in entries) == sorted(
        entry.kid for entry in KeyringFile(path).load().entries
    )


def test_a_folder_that_is_not_there_is_a_keyring_error(tmp_path: Path) -> None:
    """Neither a missing folder nor an unset path makes a change fail in another way."""
    for path in (tmp_path / "missing" / "keyring.json", None):
        with pytest.raises(KeyringError):
            KeyringFile(path).change(lambda ring: ring)


def test_signing_needs_only_the_key_file(key_path: Path) -> None:
    """A reviewer's machine needs no ring: the key knows whose it is."""
    key = read_key(key_path)
    assert ("1001", "alice") == (key.subject, key.approver)
