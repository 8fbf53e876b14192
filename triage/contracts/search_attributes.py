"""The search attributes of a run, declared once.

They are written only when a wait begins and ends and when the run ends. Nothing in them
identifies a person or quotes content.
"""

from __future__ import annotations

from typing import Final

from temporalio.common import SearchAttributeKey

TRIAGE_STATUS: Final = SearchAttributeKey.for_keyword("TriageStatus")
TRIAGE_ROUTE: Final = SearchAttributeKey.for_keyword("TriageRoute")
TRIAGE_FAILURE: Final = SearchAttributeKey.for_keyword("TriageFailure")
TRIAGE_TENANT: Final = SearchAttributeKey.for_keyword("TriageTenant")
TRIAGE_WAITING_SINCE: Final = SearchAttributeKey.for_datetime("TriageWaitingSince")
SEARCH_ATTRIBUTES: Final = (
    TRIAGE_STATUS,
    TRIAGE_ROUTE,
    TRIAGE_FAILURE,
    TRIAGE_TENANT,
    TRIAGE_WAITING_SINCE,
)
"""All that a worker registers, or checks, before it polls. None identifies a person."""
