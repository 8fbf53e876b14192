"""Canonical JSON, digests and the one strict JSON reader.

Why it exists: two programs that disagree on what a document says cannot share an approval.
Everything that is hashed, signed or compared goes through `canonical_json`, and everything that
arrives as bytes goes through `parse_json`, which refuses what other readers accept silently.
"""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any, Final

from pydantic import JsonValue

from triage.contracts.base import ContractError

MAX_DEPTH = 40
_TOO_DEEP = f"nested deeper than {MAX_DEPTH} levels"
_TWICE = "an object has the same key twice"
_ALGORITHM = "sha256:"
ABBREVIATED_CHARS = 16
_CANONICAL: Final = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
)


def canonical_json(value: Any) -> bytes:  # noqa: ANN401 - any JSON value
    """Encode a JSON value so that equal values give equal bytes.

    Keys are sorted, separators have no spaces and every non-ASCII character is escaped, so the
    result is ASCII and can hold even a lone surrogate.

    Raises:
        ValueError: for a value that JSON cannot hold (NaN, infinity, another type).
    """
    return _CANONICAL.encode(value).encode("ascii")


def digest_of(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """Return ``sha256:`` and 64 hex digits over the canonical form of a JSON value."""
    return digest_of_bytes(canonical_json(value))


def digest_of_bytes(data: bytes) -> str:
    """Return ``sha256:`` and 64 hex digits over `data`."""
    return _ALGORITHM + hashlib.sha256(data).hexdigest()


def abbreviated(digest: str) -> str:
    """Return the first 16 hex digits of a digest, which stand for it where every step names it.

    Whoever looks one up by them takes no document if two have the same.
    """
    return digest.removeprefix(_ALGORITHM)[:ABBREVIATED_CHARS]


def digests_like(digest: str) -> tuple[str, str]:
    """Return the first and the last digest that `digest`, whole or abbreviated, may stand for."""
    digits = digest.removeprefix(_ALGORITHM)
    if len(digits) < ABBREVIATED_CHARS:
        return digest, digest
    return f"{_ALGORITHM}{digits:0<64}", f"{_ALGORITHM}{digits:f<64}"


def short_hash(*parts: str) -> str:
    """Return 32 hex digits (128 bits) that name a tuple of strings, for use in keys."""
    return hashlib.sha256(canonical_json(list(parts))).hexdigest()[:32]


def parse_json(data: bytes, what: str) -> JsonValue:
    """Read one JSON document strictly.

    Refused: bytes that are not UTF-8, duplicate keys, NaN and infinities, numbers too large or
    too long to read, and nesting beyond `MAX_DEPTH`. Escaped lone surrogates, which no UTF-8 text
    can hold, become U+FFFD. A byte order mark in front is skipped.

    Args:
        data: the document.
        what: what the document is, for the error.

    Raises:
        ContractError: the message says what was wrong and quotes nothing.
    """
    try:
        # Given bytes, json.loads would guess the encoding and let encoded surrogates pass.
        text = data.decode("utf-8-sig")
        value = json.loads(text, object_pairs_hook=_unique)
    except ContractError as error:
        raise ContractError(f"{what}: {error}") from None
    except RecursionError:
        raise ContractError(f"{what}: {_TOO_DEEP}") from None
    except ValueError:
        raise ContractError(f"{what} is not valid JSON") from None
    return clean(value, what)


def clean(value: JsonValue, what: str, depth: int = 0) -> JsonValue:
    """Replace lone surrogates in every string of a JSON value and bound its nesting.

    What comes out always has a canonical form.

    Raises:
        ContractError: `value` is nested deeper than `MAX_DEPTH` levels, holds NaN or an infinity,
            or has keys that only lone surrogates told apart.
    """
    if depth > MAX_DEPTH:
        raise ContractError(f"{what}: {_TOO_DEEP}")
    # Not by isinstance, which the workflow sandbox replaces by a slower one of its own.
    match value:
        case str():
            return clean_text(value)
        case list():
            return [clean(item, what, depth + 1) for item in value]
        case dict():
            cleaned = {clean_text(key): clean(item, what, depth + 1) for key, item in value.items()}
            if len(cleaned) != len(value):
                raise ContractError(f"{what}: {_TWICE}")
            return cleaned
        case float() if not math.isfinite(value):
            raise ContractError(f"{what}: NaN and infinity are not JSON")
        case _:
            return value


def clean_text(text: str) -> str:
    """Return `text` with each lone surrogate replaced by U+FFFD and each pair joined."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _unique(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ContractError(_TWICE)
    return result
