"""Who signed a delivery: HMAC-SHA-256 over its raw bytes, before anything else looks at them."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Sequence
from typing import Final

HEADER: Final = "x-hub-signature-256"
_FORM: Final = re.compile(r"sha256=([0-9a-f]{64})")


def is_signed(body: bytes, headers: Sequence[str], secrets: Sequence[bytes]) -> bool:
    """Tell whether one of our secrets signed exactly these bytes.

    How long it takes depends on the size of `body` and the number of secrets, not on their values
    nor on which of them it was. The older SHA-1 header is not looked at.

    Args:
        body: the request's body as it arrived.
        headers: every value of the header that carries the signature; anything but one is refused.
        secrets: the secret in force and, during a rotation, the one before it.
    """
    form = _FORM.fullmatch(headers[0]) if len(headers) == 1 else None
    if form is None:
        return False
    given = form[1].encode()
    matches = [hmac.compare_digest(given, _digest(body, secret)) for secret in secrets]
    return any(matches)


def _digest(body: bytes, secret: bytes) -> bytes:
    return hmac.new(secret, body, hashlib.sha256).hexdigest().encode()
