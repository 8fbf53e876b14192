"""How people write their answers: signed where signatures count, plainly where they do not."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from tests.workflow.runs import envelope
from triage.contracts.approval import Verdict
from triage.contracts.state import PendingView
from triage.signing.files import KeyringFile
from triage.signing.keys import SigningKey, new_key, signing_key
from triage.signing.tokens import Statement, audience, new_claims, sign

NAME: Final = "maintainer"


@dataclass(frozen=True)
class Pen:
    """What one person answers with; without a key nothing is signed."""

    namespace: str
    key: SigningKey | None = None

    def answer(
        self, workflow_id: str, pending: PendingView, verdict: Verdict
    ) -> dict[str, JsonValue]:
        """Return the envelope of an answer to exactly what is pending."""
        plain = envelope(pending, approver=NAME)
        if self.key is None:
            return plain
        statement = Statement(
            audience=audience(self.namespace),
            workflow_id=workflow_id,
            operation_id=pending.operation_id,
            version=pending.version,
            digest=pending.digest,
            verdict=verdict,
            approver=NAME,
        )
        return {
            **plain,
            "token": sign(new_claims(statement, self.key, datetime.now(UTC)), self.key),
        }


def cut_pen(namespace: str, keyring: Path) -> Pen:
    """Make a person's key, and let it count."""
    private, entry = new_key(NAME, datetime.now(UTC) - timedelta(minutes=1))
    KeyringFile(keyring).change(lambda keys: keys.with_key(entry))
    return Pen(namespace, signing_key(private))
