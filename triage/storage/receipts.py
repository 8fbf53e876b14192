"""The receipt of a write: what was sent, what was seen, and on whose word. Pure.

A receipt is written once, stored as bytes and answered byte for byte to every repeat.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from triage.contracts.canonical import canonical_json, digest_of_bytes
from triage.storage.schema import MAX_RECEIPT_BYTES

How = Literal[
    "applied_by_us",
    "already_present",
    "readback",
    "removed_by_person",
    "taken_off",
    "partly_taken_off",
]
_SHRINKABLE: Final = ("before", "after", "labels")


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """What a receipt says of a write that is done.

    Attributes:
        operation_key: the ledger's key.
        operation_id: its name inside its run.
        version: the run's version at which it was approved.
        epoch: under which it was sent, or read back.
        digest: the ledger's digest of the operation.
        issue: the issue's number.
        labels: what was to be added; of an undo, what it took off itself.
        how: how the effect was seen.
        before: the issue's labels before, where they were looked at.
        after: the issue's labels when the effect was seen.
        policy: the digest of the rules in force; None where only the run knew.
        approver: who approved it.
        approved_by: how the approval arrived.
        approval_digest: over everything the reviewer saw.
        request_id: the tracker's own name for the request, where it gave one.
        undoes: the operation whose labels were taken off, if that is what was done.
    """

    operation_key: str
    operation_id: str
    version: int
    epoch: int
    digest: str
    issue: str
    labels: Sequence[str]
    how: How
    before: Sequence[str]
    after: Sequence[str]
    policy: str | None
    approver: str | None
    approved_by: str | None
    approval_digest: str | None
    request_id: str | None = None
    undoes: str | None = None

    def to_bytes(self) -> bytes:
        """Return the receipt as canonical JSON of at most 4 KiB.

        Label sets that do not fit are given by their digest.
        """
        document = self._document()
        for name in _SHRINKABLE:
            data = canonical_json(document)
            if len(data) <= MAX_RECEIPT_BYTES:
                return data
            document[name] = digest_of_bytes(canonical_json(document[name]))
        return canonical_json(document)

    def _document(self) -> dict[str, Any]:
        more = {"request_id": self.request_id, "undoes": self.undoes}
        return {name: value for name, value in more.items() if value is not None} | {
            "operation_key": self.operation_key,
            "operation_id": self.operation_id,
            "version": self.version,
            "epoch": self.epoch,
            "digest": self.digest,
            "issue_id": self.issue,
            "labels": list(self.labels),
            "applied": True,
            "how": self.how,
            "before": sorted(self.before),
            "after": sorted(self.after),
            "policy": self.policy,
            "approval": {
                "approver": self.approver,
                "source": self.approved_by,
                "digest": self.approval_digest,
            },
        }
