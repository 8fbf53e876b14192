"""`triage keys`: make, list and retire the keys that sign approvals; no server is needed.

Why it exists: what is printed here is public. A private key goes from where it is made into its
file, and nowhere else.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from triage.cli.errors import InputError, RefusedError
from triage.cli.folders import made_folder
from triage.cli.key_files import (
    KEYS,
    SERVICE_KEYS,
    default_key_path,
    load_ring,
    own_key_path,
    ring_path,
    told_of_ring,
)
from triage.cli.output import Format, put, put_json, put_table, say
from triage.cli.times import told
from triage.settings import Settings, load_settings
from triage.signing.files import KeyringFile, write_key
from triage.signing.keys import (
    KeyEntry,
    KeyFileError,
    Keyring,
    PrivateKey,
    SigningError,
    new_key,
)

HEADERS: Final = ("KEY", "APPROVER", "SUBJECT", "FROM", "STATE")
OPTION_SIGN: Final = "-"


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose a new key is.

    Attributes:
        subject: the id that they keep for life; None for the one in the keyring, or the name.
        vouches_for: the trackers whose people it may sign for; none for a person's own key.
    """

    subject: str | None
    vouches_for: tuple[str, ...] = ()


def new(name: str, file: Path | None, owner: Owner, format_: Format) -> None:
    """Make a key pair, keep the private one in a new file and add the public one to the keyring.

    Raises:
        InputError: the name fits neither a key nor a file, or a file cannot be used; then there
            is neither a new key file nor a new entry.
    """
    settings = load_settings()
    private, entry = _made(name, owner.subject or _known_subject(settings, name), owner.vouches_for)
    path = _key_path(settings, name, file, SERVICE_KEYS if owner.vouches_for else KEYS)
    ring = _kept(path, private, entry, ring_path(settings))
    if format_ is Format.JSON:
        place = {"key_file": str(path), "keyring": str(ring_path(settings))}
        put_json({**place, "entry": entry.model_dump(mode="json")})
    else:
        put(*_made_lines(settings, path, entry))
    say(*_next_steps(settings, path, entry, ring))


def list_all(format_: Format) -> None:
    """Print the keys in the keyring.

    Raises:
        InputError: the keyring cannot be used.
    """
    path = ring_path(load_settings())
    entries, now = load_ring(path).entries, datetime.now(UTC)
    if format_ is Format.JSON:
        put_json([entry.model_dump(mode="json") for entry in entries])
    elif entries:
        put_table(HEADERS, [_cells(entry, now) for entry in entries])
    else:
        say(f"there are no keys in {path}", "'triage keys new NAME' makes one")


def retire(kid: str, at: str | None, format_: Format) -> None:
    """Let a key sign nothing more from `at` on, or from when it was retired already if earlier.

    Raises:
        RefusedError: the keyring does not have the key.
        InputError: the time is none, or the keyring cannot be used.
    """
    when, path = _time(at), ring_path(load_settings())
    entry = load_ring(path).find(kid)
    if entry is None:
        raise _no_such_key(path, kid)
    with told_of_ring(path):
        changed = KeyringFile(path).change(lambda ring: ring.with_retired(kid, when)).find(kid)
    entry = changed or entry
    if format_ is Format.JSON:
        put_json(entry.model_dump(mode="json"))
        return
    put(f"{kid} of {entry.approver}: {_state(entry, datetime.now(UTC))}")
    say(
        "what it signed earlier counts for its remaining minutes",
        f"to stop a stolen key at once, take its line out of {path}",
    )


def _no_such_key(path: Path, kid: str) -> RefusedError:
    """Return what to tell about an id that no key has; a person's name is what people try."""
    theirs = [entry.kid for entry in load_ring(path).entries if entry.approver == kid]
    if not theirs:
        return RefusedError(f"there is no such key in {path}", "'triage keys list' shows them")
    return RefusedError(
        f"{kid} is a person, and a key is retired by its id", f"theirs are: {', '.join(theirs)}"
    )


def _known_subject(settings: Settings, name: str) -> str:
    """Return whom the keyring's latest key of this name belongs to, else the name."""
    known = [entry for entry in load_ring(ring_path(settings)).entries if entry.approver == name]
    return known[-1].subject if known else name


def _made(name: str, subject: str, vouches_for: tuple[str, ...]) -> tuple[PrivateKey, KeyEntry]:
    """Make a key whose id nobody can take for an option when it is typed.

    Raises:
        InputError: a name cannot be used.
    """
    try:
        while True:
            private, entry = new_key(subject, datetime.now(UTC), name, vouches_for=vouches_for)
            if not entry.kid.startswith(OPTION_SIGN):
                return private, entry
    except SigningError:
        advice = "both have 1 to 200 characters, none of them blank or invisible"
        raise InputError("this name or subject cannot be used", advice) from None


def _key_path(settings: Settings, name: str, given: Path | None, folder: str) -> Path:
    path = given.expanduser().absolute() if given else default_key_path(settings, name, folder)
    if not given or not settings.keyring:
        made_folder(settings.home)
    if not given:
        made_folder(settings.home / folder)
    return path


def _kept(path: Path, private: PrivateKey, entry: KeyEntry, ring: Path) -> Keyring:
    """Write both files, or neither."""
    try:
        write_key(path, private)
    except KeyFileError as error:
        raise InputError(f"{path}: {error}", "name another file with --key") from None
    try:
        with told_of_ring(ring):
            return KeyringFile(ring).change(lambda known: known.with_key(entry))
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _made_lines(settings: Settings, path: Path, entry: KeyEntry) -> list[str]:
    return [
        f"key       {entry.kid}",
        f"approver  {entry.approver}",
        f"subject   {entry.subject}",
        f"private   {path}",
        f"keyring   {ring_path(settings)}",
        *([f"vouches   for people of {', '.join(entry.vouches_for)}"] if entry.vouches_for else []),
    ]


def _next_steps(settings: Settings, path: Path, entry: KeyEntry, ring: Keyring) -> list[str]:
    """Say what is left to do until an approval that this key signs counts."""
    shown = shlex.quote(str(ring_path(settings)))
    steps = ["the private file is for its owner alone; the keyring holds nothing secret"]
    if settings.keyring is None:
        steps += [
            "workers use the keyring once they are started with",
            f"  export TRIAGE_KEYRING={shown} TRIAGE_LOCAL_TRUST=false",
        ]
    else:
        steps.append("workers that read this keyring know the key from now on, without a restart")
    if entry.vouches_for:
        steps += ["comments count once 'triage serve' is started with"]
        return [*steps, f"  export TRIAGE_SERVICE_KEY={shlex.quote(str(path))}"]
    steps += ["sign with", f"  triage approve ID OPERATION --version N --sign{_choice(path)}"]
    return [*steps, *_older(entry, ring)]


def _choice(path: Path) -> str:
    """Return the option that is needed to sign with this very key, if any."""
    try:
        is_found = own_key_path(load_settings(), None) == path
    except InputError:
        is_found = False
    return "" if is_found else f" --key {shlex.quote(str(path))}"


def _older(entry: KeyEntry, ring: Keyring) -> list[str]:
    """Say how to end the keys that this one is to replace."""
    return [
        f"another key of {other.approver} ({other.subject}) counts too, until "
        f"'triage keys retire {other.kid}'"
        for other in ring.entries
        if other.approver == entry.approver and other != entry and other.retired_at is None
    ]


def _cells(entry: KeyEntry, now: datetime) -> tuple[str, ...]:
    begin = told(entry.not_before)
    state = _state(entry, now)
    if entry.vouches_for:
        state = f"{state}, vouches for {', '.join(entry.vouches_for)}"
    return entry.kid, entry.approver, entry.subject, begin, state


def _state(entry: KeyEntry, now: datetime) -> str:
    if entry.retired_at is not None:
        word = "retired since" if entry.retired_at <= now else "in use until"
        return f"{word} {told(entry.retired_at)}"
    return "in use" if entry.not_before <= now else "not in use yet"


def _time(text: str | None) -> datetime:
    """Read a time; tokens count in whole seconds, and so does it.

    Raises:
        InputError: it is none, or has no time zone.
    """
    try:
        when = datetime.now(UTC) if text is None else datetime.fromisoformat(text)
        if when.tzinfo is None:
            raise ValueError
        return when.astimezone(UTC).replace(microsecond=0)
    except (ValueError, OverflowError):
        advice = "write it like 2030-01-31T12:00Z, with its zone"
        raise InputError("--at is no time with a zone", advice) from None
