"""Key files: one private key a file, and the ring of public keys.

Why it exists: a key is as safe as its file. A private key is made for its owner's eyes and refused
when others may read it. The ring is refused when others may write it; it is replaced as a whole and
read anew for each approval, so that a key added or retired counts without a restart. Errors name
what is wrong, never a path or any content.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from triage.contracts.base import ContractError, explain
from triage.contracts.canonical import canonical_json, parse_json
from triage.signing.keys import (
    KeyFileError,
    Keyring,
    KeyringError,
    PrivateKey,
    SigningError,
    SigningKey,
    signing_key,
)

MAX_KEY_FILE_BYTES: Final = 16_384
MAX_KEYRING_BYTES: Final = 1_048_576
_OWNER_ONLY: Final = 0o600
_READ_BY_ALL: Final = 0o644
_FOR_OTHERS: Final = 0o077
_WRITE_FOR_OTHERS: Final = 0o022


def write_key(path: Path, private: PrivateKey) -> None:
    """Write a private key into a new file that only its owner may read.

    Raises:
        KeyFileError: the file exists, or cannot be written.
    """
    data = canonical_json(private.model_dump(mode="json")) + b"\n"
    try:
        _write_new(path, data, _OWNER_ONLY)
    except FileExistsError:
        raise KeyFileError("key: the file exists; a key is never overwritten") from None
    except (OSError, ValueError) as error:
        raise KeyFileError(f"key: cannot be written ({type(error).__name__})") from None


def read_key(path: Path) -> SigningKey:
    """Read a private key.

    Raises:
        KeyFileError: it cannot be read, may be read by others, or is no key of ours.
    """
    data = _read(path, MAX_KEY_FILE_BYTES, _FOR_OTHERS, KeyFileError, "key")
    try:
        value = parse_json(data, "key")
        return signing_key(PrivateKey.model_validate_json(canonical_json(value)))
    except ValidationError as error:
        raise KeyFileError(explain(error, "key", PrivateKey)) from None
    except ContractError as error:
        raise KeyFileError(str(error)) from None


class KeyringFile:
    """The ring in a file.

    Args:
        path: where it is; None if there is none, and then no key counts.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._known: tuple[bytes, Keyring] = (b"", Keyring())

    def load(self) -> Keyring:
        """Return the ring as the file is now; it is parsed again only when it changed.

        Raises:
            KeyringError: there is none, it cannot be read, others may write it, or it is no ring.
        """
        data = _read(self._place(), MAX_KEYRING_BYTES, _WRITE_FOR_OTHERS, KeyringError, "keyring")
        # By content, not by time: two changes can fall into one tick of the file's clock.
        known, ring = self._known
        if data != known:
            ring = Keyring.parse(data)
            self._known = (data, ring)
        return ring

    def change(self, edit: Callable[[Keyring], Keyring]) -> Keyring:
        """Replace the ring by what `edit` makes of it; a missing file is an empty ring.

        Two changes at the same time happen one after the other; a reader sees either, whole.

        Raises:
            KeyringError: as `load`, or the file cannot be written.
        """
        path = self._place().resolve()
        try:
            with _locked(path.parent):
                ring = edit(self.load() if path.exists() else Keyring())
                _replace(path, ring.to_json())
        except (OSError, ValueError) as error:
            raise KeyringError(f"keyring: cannot be written ({type(error).__name__})") from None
        return ring

    def _place(self) -> Path:
        if self._path is None:
            raise KeyringError("keyring: none is set")
        return self._path


def _read(path: Path, limit: int, forbidden: int, problem: type[SigningError], what: str) -> bytes:
    """Read a small regular file that none of the `forbidden` rights are given on."""
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            data = file.read(limit + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "no such path"
        raise problem(f"{what}: cannot be read ({why})") from None
    if not stat.S_ISREG(found.st_mode) or len(data) > limit:
        raise problem(f"{what}: is no file of at most {limit} bytes")
    if stat.S_IMODE(found.st_mode) & forbidden:
        raise problem(f"{what}: its file mode lets others in; take {forbidden:03o} away with chmod")
    return data


def _write_new(path: Path, data: bytes, mode: int) -> None:
    """Write a file that did not exist, with exactly these rights, onto the disk."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, mode)
        file.write(data)
        file.flush()
        os.fsync(descriptor)


def _replace(path: Path, data: bytes) -> None:
    beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        _write_new(beside, data, _READ_BY_ALL)
        beside.replace(path)
    finally:
        with suppress(FileNotFoundError):
            beside.unlink()


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold a folder, so that no file for the lock is left behind."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
