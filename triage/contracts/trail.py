"""What a run has read, in sixteen digits.

Why it exists: a store also has what a run does not know of: a workflow task that was lost, or given
up for an edit, has read for nothing, and so has what a reset took back. So each read is kept with
the trail of those before it, and whoever asks for a run's evidence follows its trail back.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Final

START: Final = ""
"""The trail of a run that has read nothing."""
_DIGITS: Final = 16


def onward(trail: str, evidence_id: str, digest: str) -> str:
    """Return the trail of a run that has read one thing more."""
    return sha256(f"{trail}\n{evidence_id}\n{digest}".encode(errors="surrogatepass")).hexdigest()[
        :_DIGITS
    ]


def along(trail: str, read: Iterable[tuple[str, str]]) -> str:
    """Return the trail after several reads, each by its id and digest."""
    for evidence_id, digest in read:
        trail = onward(trail, evidence_id, digest)
    return trail
