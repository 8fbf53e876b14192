"""The digests that an approval rests on: over what would be written, and over what was shown.

Why it exists: whoever proposes, verifies, sends or tells a write has to mean the same by them, or
an approval of one thing would be taken for one of another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from triage.contracts.canonical import digest_of


def operation_digest(tool: str, target: Mapping[str, str], labels: Sequence[str]) -> str:
    """Return the digest over what would be written, and where."""
    return digest_of([tool, dict(target), list(labels)])


def approval_digest(operation: str, version: int, content: str, rules: str) -> str:
    """Return the digest over everything that a reviewer is shown.

    Args:
        operation: the digest over what would be written.
        version: the run's, when it was proposed.
        content: the digest of the issue's content.
        rules: the digest of the rules that the run is held to.
    """
    return digest_of([operation, version, content, rules])
