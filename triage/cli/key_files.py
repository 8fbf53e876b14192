"""Where keys and the keyring lie, and what to tell when one of them cannot be used.

Why it exists: the parts that read them name no path, since their errors are logged elsewhere too.
A person needs the path, and the one line that puts it right.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from triage.cli.errors import InputError
from triage.settings import Settings
from triage.signing.files import KeyringFile, read_key
from triage.signing.keys import KeyFileError, Keyring, KeyringError, SigningKey

KEYS: Final = "keys"
SERVICE_KEYS: Final = "service-keys"
"""Apart from people's own, so that nobody signs with one by accident."""
KEYRING: Final = "keyring.json"
_FILE_NAME: Final = re.compile(r"\w[\w.@+-]*")
_OTHERS_MAY: Final = 0o077
_OTHERS_WRITE: Final = 0o022


def ring_path(settings: Settings) -> Path:
    """Return the keyring's file: the one that is set, else the one in the home folder."""
    return settings.keyring or settings.home / KEYRING


def default_key_path(settings: Settings, name: str, folder: str = KEYS) -> Path:
    """Return where the key of `name` is kept unless another place is named.

    Raises:
        InputError: the name is none that a file can have.
    """
    if not _FILE_NAME.fullmatch(name):
        raise InputError("this name cannot be a file's", "say where the key is kept with --key")
    return settings.home / folder / f"{name}.json"


def own_key_path(settings: Settings, given: Path | None) -> Path:
    """Return the file of the key to sign with: the given one, the set one, or the only one.

    Raises:
        InputError: none is given or set, and there is not exactly one.
    """
    chosen = given or settings.signing_key
    if chosen is not None:
        return chosen.expanduser()
    folder = settings.home / KEYS
    found = sorted(folder.glob("*.json"))
    if not found:
        advice = "'triage keys new NAME' makes one; --key or TRIAGE_SIGNING_KEY names another"
        raise InputError(f"there is no key to sign with in {folder}", advice)
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        advice = "say which with --key or TRIAGE_SIGNING_KEY"
        raise InputError(f"there are several keys in {folder}: {names}", advice)
    return found[0]


def own_key(path: Path) -> SigningKey:
    """Read the key to sign with.

    Raises:
        InputError: it cannot be used.
    """
    try:
        return read_key(path)
    except KeyFileError as error:
        raise key_problem(path, error) from None


def load_ring(path: Path) -> Keyring:
    """Read the keyring; one that is not there has no keys.

    Raises:
        InputError: it cannot be used.
    """
    with told_of_ring(path):
        return KeyringFile(path).load() if _mode(path) else Keyring()


@contextmanager
def told_of_ring(path: Path) -> Iterator[None]:
    """Tell which file it was when the keyring cannot be used.

    Raises:
        InputError: the body raised a `KeyringError`.
    """
    try:
        yield
    except KeyringError as error:
        raise InputError(f"{path}: {error}", ring_advice(path)) from None


def ring_advice(path: Path) -> str:
    """Return what to do about a keyring that cannot be used; empty if that is not plain."""
    return f"chmod go-w {shlex.quote(str(path))}" if _mode(path) & _OTHERS_WRITE else ""


def key_problem(path: Path, error: KeyFileError) -> InputError:
    """Return what to tell about a key's file that cannot be used."""
    hint = ""
    if not _mode(path):
        hint = "'triage keys new NAME' makes a key"
    elif _mode(path) & _OTHERS_MAY:
        hint = f"chmod 600 {shlex.quote(str(path))}"
    return InputError(f"{path}: {error}", hint)


def _mode(path: Path) -> int:
    """Return a file's mode, 0 if it cannot be looked at."""
    try:
        return path.stat().st_mode
    except OSError:
        return 0
