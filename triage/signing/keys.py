"""Keys that sign approvals: the private one of a person, and the ring of those that count.

Why it exists: a signature says which key signed; only the ring says whose key that is and when it
counts. So the ring is the authority on who may approve, and a name in a token is never one.
Nothing here shows key material, neither in errors nor when printed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Final, Literal, Self

from pydantic import AwareDatetime, ConfigDict, Field, StringConstraints, ValidationError

from triage.contracts.base import Contract, ContractError, explain
from triage.contracts.canonical import canonical_json, parse_json

if TYPE_CHECKING:
    from joserfc.jwk import OKPKey

ALGORITHM: Final = "Ed25519"
"""The one algorithm, by its fully specified name (RFC 9864); ``EdDSA`` names two curves."""

MAX_KEYS: Final = 1_000

# A key id is only ever looked up, and still has no character that means anything in a path.
KeyId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
# The length beside the form: counted inside it, each use of the form took 3.7 MB of memory.
PersonName = Annotated[str, StringConstraints(pattern=r"^[^\s\p{C}]+$", max_length=200)]
TrackerName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,39}$")]
Coordinate = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{43}$")]


class SigningError(Exception):
    """Something about keys or signing cannot be used; the message holds no key and no token."""


class KeyringError(SigningError):
    """The ring of public keys cannot be used."""


class KeyFileError(SigningError):
    """A private key's file cannot be used."""


class PublicKey(Contract):
    """An Ed25519 public key as a JSON Web Key (RFC 8037)."""

    kty: Literal["OKP"] = "OKP"
    crv: Literal["Ed25519"] = "Ed25519"
    x: Coordinate


class KeyEntry(Contract):
    """One public key and whose it is.

    Most keys are a person's. A key that vouches is a service's: what it signs says who somebody is
    at a tracker, which the service saw for itself, and never counts as the service's own word.

    Attributes:
        kid: the key's id, unique in a ring.
        subject: the owner's stable id, such as a numeric user id: what a token is bound to, so
            that a login which was renamed or given to somebody else has no say.
        approver: the name that runs show, and that is compared with the issue's author.
        public_key: no other entry has it.
        not_before: tokens that were issued earlier do not count.
        retired_at: tokens that were issued then or later do not count; None while in use. To make
            a key worthless at once, remove its entry.
        vouches_for: the trackers whose people this key may name; empty for a person's own key.
    """

    kid: KeyId
    subject: PersonName
    approver: PersonName
    public_key: PublicKey
    not_before: AwareDatetime
    retired_at: AwareDatetime | None = None
    vouches_for: Annotated[tuple[TrackerName, ...], Field(max_length=10)] = ()


class PrivateKey(Contract):
    """The content of a private key's file: a JSON Web Key, with its owner as further members."""

    model_config = ConfigDict(hide_input_in_errors=True)

    kty: Literal["OKP"] = "OKP"
    crv: Literal["Ed25519"] = "Ed25519"
    x: Coordinate
    d: Annotated[Coordinate, Field(repr=False)]
    alg: Literal["Ed25519"] = "Ed25519"
    use: Literal["sig"] = "sig"
    kid: KeyId
    subject: PersonName
    approver: PersonName


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A private key that is ready to sign, and its owner."""

    kid: str
    subject: str
    approver: str
    jwk: OKPKey = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Keyring:
    """The public keys that count; changing it gives a new one."""

    entries: tuple[KeyEntry, ...] = ()

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Read a ring: a JSON list of entries.

        Raises:
            KeyringError: the message names the entry's place and field, and quotes nothing.
        """
        try:
            listed = parse_json(data, "keyring")
        except ContractError as error:
            raise KeyringError(str(error)) from None
        if not isinstance(listed, list) or len(listed) > MAX_KEYS:
            raise KeyringError(f"keyring: must be a list of at most {MAX_KEYS} keys")
        return cls.of(_entry(value, f"keyring.{place}") for place, value in enumerate(listed))

    @classmethod
    def of(cls, entries: Iterable[KeyEntry]) -> Self:
        """Make a ring of entries; a person may have several, so that an old one can be retired.

        Raises:
            KeyringError: a key or an id is there twice, or a key is no Ed25519 key.
        """
        ring = cls(tuple(entries))
        if len({entry.kid for entry in ring.entries}) != len(ring.entries):
            raise KeyringError("keyring: two keys have the same id")
        if len({entry.public_key.x for entry in ring.entries}) != len(ring.entries):
            raise KeyringError("keyring: one public key stands there twice")
        for entry in ring.entries:
            verification_key(entry)
        return ring

    def to_json(self) -> bytes:
        """Return what `parse` reads, for people to read too: one line a key."""
        lines = [canonical_json(entry.model_dump(mode="json")) for entry in self.entries]
        return b"[\n" + b",\n".join(lines) + b"\n]\n"

    def find(self, kid: str) -> KeyEntry | None:
        """Return the entry of a key, if the ring has it."""
        return next((entry for entry in self.entries if entry.kid == kid), None)

    def with_key(self, entry: KeyEntry) -> Self:
        """Add a key.

        Raises:
            KeyringError: the ring has the key or its id already, or it is no Ed25519 key.
        """
        return self.of((*self.entries, entry))

    def with_retired(self, kid: str, at: datetime) -> Self:
        """Let a key count only for tokens that were issued before `at`, or earlier if it was so.

        Raises:
            KeyringError: the ring does not have the key.
        """
        entry = self._existing(kid)
        retired = entry.model_copy(update={"retired_at": min(at, entry.retired_at or at)})
        return type(self)(tuple(retired if e.kid == kid else e for e in self.entries))

    def without(self, kid: str) -> Self:
        """Remove a key: no token of its counts from now on, whenever it was issued.

        Raises:
            KeyringError: the ring does not have the key.
        """
        gone = self._existing(kid)
        return type(self)(tuple(entry for entry in self.entries if entry != gone))

    def _existing(self, kid: str) -> KeyEntry:
        entry = self.find(kid)
        if entry is None:
            raise KeyringError("keyring: it has no key with this id")
        return entry


def new_key(
    subject: str,
    now: datetime,
    approver: str | None = None,
    *,
    vouches_for: tuple[str, ...] = (),
) -> tuple[PrivateKey, KeyEntry]:
    """Make a key pair; its id is the public key's thumbprint (RFC 7638).

    Args:
        subject: the owner's stable id.
        now: from when on the key counts.
        approver: the name that runs show; the subject unless given.
        vouches_for: the trackers whose people it may name; none for a person's own key.

    Returns:
        What to keep secret and what to put into the ring.

    Raises:
        SigningError: a name has blanks or invisible characters, or is empty or too long.
    """
    from triage.signing import jose  # noqa: PLC0415 - loaded with the first key

    x, d, kid = jose.new_pair()
    name = approver or subject
    try:
        private = PrivateKey(x=x, d=d, kid=kid, subject=subject, approver=name)
        entry = KeyEntry(
            kid=kid,
            subject=subject,
            approver=name,
            public_key=PublicKey(x=x),
            not_before=now.replace(microsecond=0),
            vouches_for=vouches_for,
        )
    except ValidationError as error:
        raise SigningError(explain(error, "key", KeyEntry)) from None
    return private, entry


def signing_key(private: PrivateKey) -> SigningKey:
    """Make a private key ready to sign.

    Raises:
        KeyFileError: it is no Ed25519 key, or its public part belongs to another one.
    """
    jwk = _imported(private.model_dump(include={"kty", "crv", "x", "d"}))
    if jwk is None:
        raise KeyFileError("key: is no Ed25519 key pair")
    return SigningKey(kid=private.kid, subject=private.subject, approver=private.approver, jwk=jwk)


def verification_key(entry: KeyEntry) -> OKPKey:
    """Return the public key of an entry.

    Raises:
        KeyringError: it is no Ed25519 key.
    """
    jwk = _imported(entry.public_key.model_dump())
    if jwk is None:
        raise KeyringError("keyring: a public key is no Ed25519 key")
    return jwk


def _imported(members: dict[str, str]) -> OKPKey | None:
    from triage.signing import jose  # noqa: PLC0415 - loaded with the first key

    return jose.imported(members)


def _entry(value: object, what: str) -> KeyEntry:
    try:
        return KeyEntry.model_validate_json(canonical_json(value))
    except ValidationError as error:
        raise KeyringError(explain(error, what, KeyEntry, PublicKey)) from None
