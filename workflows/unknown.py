"""What runs when somebody starts a workflow type that does not exist: a clean failure.

Without it the server would retry the workflow's first task for ever.
"""

from __future__ import annotations

from collections.abc import Sequence

from temporalio import workflow
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError

with workflow.unsafe.imports_passed_through():
    from triage.contracts.failures import FailureClass
    from triage.contracts.names import EVIDENCE_LOOP, ISSUE_TRIAGE


@workflow.defn(dynamic=True)
class UnknownWorkflow:
    """Fails every execution of an unknown type, and takes any message meanwhile."""

    @workflow.run
    async def run(self, args: Sequence[RawValue]) -> None:  # noqa: ARG002 - the SDK passes it
        """Fail.

        Raises:
            ApplicationError: always, of type ``invalid_input``.
        """
        raise ApplicationError(
            f"there is no such workflow type; there are {ISSUE_TRIAGE} and {EVIDENCE_LOOP}",
            type=FailureClass.INVALID_INPUT.value,
            non_retryable=True,
        )
