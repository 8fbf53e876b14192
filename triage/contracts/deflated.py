"""Records that are deflated where they are kept: large ones that every run has in its history.

Why it exists: what a run pins is its largest payload by far, and two thirds of it are names that
every run repeats. No text of a stranger is in it, so its size tells nobody anything.
"""

from __future__ import annotations

import zlib
from typing import Final

from triage.contracts.base import Contract, ContractError

ENCODING: Final = b"json/zlib"
"""How a payload says that it is deflated JSON."""
MAX_INFLATED_BYTES: Final = 2_097_152
"""As much as the server takes of a payload that is not deflated."""


class Deflated(Contract):
    """A record that is deflated when it becomes a payload."""


def deflate(document: bytes) -> bytes:
    """Return a JSON document in fewer bytes."""
    return zlib.compress(document, 9)


def inflate(data: bytes) -> bytes:
    """Return the document that was deflated.

    Raises:
        ContractError: it was not, or it is too large.
    """
    reader = zlib.decompressobj()
    try:
        document = reader.decompress(data, MAX_INFLATED_BYTES)
    except zlib.error:
        raise ContractError("the payload is not deflated JSON") from None
    if not reader.eof or reader.unused_data:
        raise ContractError("the payload is cut, or larger than it may be")
    return document
