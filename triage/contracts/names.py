"""Every name that two parts of the system, or a person at a terminal, must agree on.

Why it exists: activities are called, signals sent and workflows started by name across import
boundaries. A name is declared here once; nothing else spells it.
"""

from __future__ import annotations

from typing import Final

ISSUE_TRIAGE: Final = "IssueTriage"
EVIDENCE_LOOP: Final = "EvidenceLoop"

TASK_QUEUE: Final = "triage"

SIGNAL_APPROVE: Final = "approve"
SIGNAL_REJECT: Final = "reject"
SIGNAL_EDIT: Final = "edit"
UPDATE_REVIEW: Final = "review"
QUERY_STATE: Final = "state"
QUERY_PENDING: Final = "pending"
QUERY_MUTATIONS: Final = "mutations"

ACTIVITY_PIN_RUN_CONTEXT: Final = "pin_run_context"
ACTIVITY_DECIDE: Final = "decide"
ACTIVITY_LOOKUP_OWNER: Final = "lookup_component_owner"
ACTIVITY_SEARCH_POLICY: Final = "search_triage_policy"
ACTIVITY_READ_ISSUE: Final = "read_issue"
ACTIVITY_PREVIEW_OPERATION: Final = "preview_operation"
ACTIVITY_VERIFY_APPROVAL: Final = "verify_approval"
ACTIVITY_APPLY_LABELS: Final = "apply_labels"
ACTIVITY_OPEN_INCIDENT: Final = "open_incident"
ACTIVITY_CHOOSE_ACTION: Final = "choose_action"
ACTIVITY_READ_REFERENCE: Final = "read_reference"


def writes_queue(task_queue: str) -> str:
    """Return the queue of the write worker that belongs to `task_queue`."""
    return f"{task_queue}-writes"
