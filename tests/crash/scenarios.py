"""What else goes wrong, or is different, in a run that is disturbed: each leads past other points.

Every scenario has an undisturbed run of its own, which its disturbed ones must be equal to.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from tests.fakes.control import TrackerControl
from tests.fakes.faults import Fault, dropped_after, dropped_before, rate_limited
from tests.workflow.decisions import ISSUE
from triage.contracts.approval import Verdict
from triage.contracts.state import PendingView
from triage.signing.files import KeyringFile
from triage.signing.keys import SigningKey, new_key, signing_key
from triage.signing.tokens import Statement, audience, new_claims, sign

REPOSITORY: Final = "acme/shop"
LABELS: Final = ("bug", "component:api", "docs")
APPROVER: Final = "maintainer"
NAMESPACE: Final = "default"
KEYRING: Final = "keyring.json"


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """What is different.

    Attributes:
        name: in one word.
        faults: the tracker's plan.
        signed: only signed approvals count.
        edited: a person edits the issue while the run waits.
        bounded: the run has a budget, so each question to its model is an activity of its own.
    """

    name: str
    faults: tuple[Fault, ...] = ()
    signed: bool = False
    edited: bool = False
    bounded: bool = False


PLAIN: Final = Scenario(name="plain")
LOST: Final = Scenario(name="lost", faults=(dropped_after(),))
NOTHING: Final = Scenario(name="nothing", faults=(dropped_before(),))
LIMITED: Final = Scenario(name="limited", faults=(rate_limited("1"),))
EDITED: Final = Scenario(name="edited", edited=True)
SIGNED: Final = Scenario(name="signed", signed=True)
BOUNDED: Final = Scenario(name="bounded", bounded=True)


async def set_the_scene(scenario: Scenario, tracker: TrackerControl) -> None:
    """Open the issue, and plan what goes wrong with requests."""
    await tracker.define_labels(REPOSITORY, LABELS)
    await tracker.open_issue(REPOSITORY, ISSUE, title="The API returns 500", body="Every call.")
    await tracker.plan(*scenario.faults)


def make_key(home: Path) -> SigningKey:
    """Give the approver a key that counts for the workers of a cell."""
    private, entry = new_key(APPROVER, datetime.now(UTC) - timedelta(minutes=1))
    KeyringFile(home / KEYRING).change(lambda keys: keys.with_key(entry))
    return signing_key(private)


def signed_review(workflow_id: str, pending: PendingView, key: SigningKey) -> dict[str, JsonValue]:
    """Return the signed approval of what a run waits for."""
    statement = Statement(
        audience=audience(NAMESPACE),
        workflow_id=workflow_id,
        operation_id=pending.operation_id,
        version=pending.version,
        digest=pending.digest,
        verdict=Verdict.APPROVE,
        approver=key.approver,
    )
    return {
        "operation_id": pending.operation_id,
        "version": pending.version,
        "approver": key.approver,
        "digest": pending.digest,
        "token": sign(new_claims(statement, key, datetime.now(UTC)), key),
    }
