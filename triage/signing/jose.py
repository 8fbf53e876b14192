"""All that the library for signatures is asked.

Why it exists: the library and the one beneath it take 9 MB and a tenth of a second to load, and a
process that has no key needs neither. So this module is loaded with the first key, and its callers
import it where they use it. A worker with a ring reads it when it starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import OKPKey

from triage.signing.keys import ALGORITHM

_REGISTRY: Final = jws.JWSRegistry(algorithms=[ALGORITHM])


def new_pair() -> tuple[str, str, str]:
    """Make a key pair; return its public and its private part, and its thumbprint (RFC 7638)."""
    made = OKPKey.generate_key(ALGORITHM)
    return str(made["x"]), str(made["d"]), made.thumbprint()


def imported(members: Mapping[str, str]) -> OKPKey | None:
    """Import a key, or return None if it is none; the reason may quote it and is dropped."""
    try:
        jwk = OKPKey.import_key({**members})
        # A library key remembers what it was made of; the number itself says what it is.
        made_of = OKPKey.import_key(jwk.private_key or jwk.public_key)
    except (JoseError, ValueError):
        return None
    return jwk if made_of["x"] == members["x"] else None


def serialised(header: Mapping[str, str], payload: bytes, key: OKPKey) -> str:
    """Sign `payload`; return the token in its compact form."""
    return jws.serialize_compact({**header}, payload, key, registry=_REGISTRY)


def signed_payload(token: str, key: OKPKey) -> bytes | None:
    """Return what a token says, or None if `key` did not sign it."""
    try:
        return jws.deserialize_compact(token, key, registry=_REGISTRY).payload
    except (JoseError, ValueError):
        return None
