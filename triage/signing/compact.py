"""The form of a token before anything in it is believed: size, encoding and header.

Why it exists: a library accepts what its standard allows; a token of ours has one form only. It is
three canonical base64url parts, and a header of exactly algorithm, type and key id, each of them
one known value or pattern. So no token can bring its own key, name another algorithm, ask for an
extension or be written in two ways.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

from pydantic import JsonValue

from triage.contracts.base import ContractError
from triage.contracts.canonical import parse_json
from triage.signing.keys import ALGORITHM
from triage.signing.refusals import Detail, RefusedTokenError

MAX_TOKEN_BYTES: Final = 8_192
TOKEN_TYPE: Final = "triage-approval+jwt"  # noqa: S105 - a media type, not a secret
_KEY_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


def read_compact(token: str) -> str:
    """Return the key id of a well-formed token; nothing is verified yet.

    Raises:
        RefusedTokenError: it does not have the one form.
    """
    if len(token) > MAX_TOKEN_BYTES:
        raise RefusedTokenError(Detail.TOO_LARGE)
    parts = token.split(".")
    if len(parts) != 3 or not all(parts):  # noqa: PLR2004 - header, payload, signature
        raise RefusedTokenError(Detail.NOT_COMPACT)
    header, _, _ = (_decoded(part) for part in parts)
    return _key_id(header)


def _decoded(part: str) -> bytes:
    """Decode base64url without padding; only what encoding would give back is accepted."""
    try:
        encoded = part.encode("ascii")
        decoded = base64.urlsafe_b64decode(encoded + b"=" * (-len(encoded) % 4))
    except (binascii.Error, UnicodeEncodeError):
        raise RefusedTokenError(Detail.NOT_CANONICAL) from None
    if base64.urlsafe_b64encode(decoded).rstrip(b"=") != encoded:
        raise RefusedTokenError(Detail.NOT_CANONICAL)
    return decoded


def _key_id(header: bytes) -> str:
    members = _members(header)
    if members.get("alg") != ALGORITHM:
        raise RefusedTokenError(Detail.WRONG_ALGORITHM)
    if members.keys() != {"alg", "kid", "typ"}:
        raise RefusedTokenError(Detail.BAD_HEADER)
    if members["typ"] != TOKEN_TYPE:
        raise RefusedTokenError(Detail.WRONG_TYPE)
    kid = members["kid"]
    if not isinstance(kid, str) or not _KEY_ID.fullmatch(kid):
        raise RefusedTokenError(Detail.BAD_KEY_ID)
    return kid


def _members(header: bytes) -> dict[str, JsonValue]:
    try:
        members = parse_json(header, "header")
    except ContractError:
        raise RefusedTokenError(Detail.BAD_HEADER) from None
    if not isinstance(members, dict):
        raise RefusedTokenError(Detail.BAD_HEADER)
    return members
