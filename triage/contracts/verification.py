"""The argument and the result of the activity that verifies a signed approval."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from triage.contracts.approval import Digest, Verdict
from triage.contracts.base import Contract


class VerifyRequest(Contract):
    """Argument of `verify_approval`: the review that came, and what the run waits for.

    The run and its namespace are those of the activity. `use_by` is from when on the decision, once
    it is recorded, allows no write any more (ISO 8601); None means never. `decides` says whether it
    is the decision: one approval of several is not, until there are enough of them. `subjects` are
    those who have approved it already, and `barred` the names of those who may not decide.
    """

    model_config = ConfigDict(hide_input_in_errors=True)

    scope: str
    tenant: str
    operation_id: str
    version: int
    operation_digest: Digest
    approval_digest: Digest
    verdict: Verdict
    approver: str
    token: Annotated[str, Field(repr=False)]
    use_by: str | None = None
    decides: bool = True
    subjects: tuple[str, ...] = ()
    barred: tuple[str, ...] = ()


class VerifyResult(Contract):
    """Result of `verify_approval`.

    `code` is ``accepted`` or a refusal's code; `detail` says which check failed. `token_id` is a
    digest that stands for the token, and `expires_at` when the decision ends, if it does. `subject`
    is the signer's stable id.
    """

    accepted: bool
    code: str
    detail: str = ""
    approver: str | None = None
    token_id: str | None = None
    expires_at: str | None = None
    subject: str | None = None
