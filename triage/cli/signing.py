"""Signs a review with a person's own key, over exactly what that person was shown.

Why it exists: a token is worth as much as the decision, until it is used. It is made right before
it is sent, and nothing here prints it, logs it or puts it into an error.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from temporalio.client import Client

from triage.cli.clients import RPC_TIMEOUT, Run
from triage.cli.errors import InputError, RefusedError
from triage.continuing import first_run_id
from triage.contracts.approval import Review
from triage.contracts.canonical import short_hash
from triage.contracts.search_attributes import TRIAGE_TENANT
from triage.contracts.state import PendingView
from triage.signing.keys import SigningError, SigningKey
from triage.signing.tokens import Statement, audience, new_claims, sign

LIFETIME: Final = timedelta(minutes=5)
"""How long a token may be presented: clocks differ by less, and a lost token is soon worthless."""


async def signed(
    client: Client, run: Run, review: Review, pending: PendingView, key: SigningKey
) -> Review:
    """Return `review` with the digest of what was shown and a token for just that.

    Raises:
        RefusedError: the run is another one by now, or does not tell whose it is.
        InputError: the key does not fit what is to be signed.
    """
    statement = Statement(
        audience=audience(client.namespace),
        workflow_id=run.id,
        operation_id=pending.operation_id,
        version=pending.version,
        digest=pending.digest,
        verdict=review.verdict,
        approver=review.approver,
        scope=await _scope(run),
    )
    try:
        token = sign(new_claims(statement, key, datetime.now(UTC), lifetime=LIFETIME), key)
    except SigningError as error:
        raise InputError(f"cannot be signed: {error}") from None
    return review.model_copy(update={"digest": pending.digest, "token": token})


async def _scope(run: Run) -> str:
    """Return the scope of the run that was found, which must still be the one that was shown.

    A waiting run names its tenant, but may have begun to wait only after it was found.
    """
    now = await run.handle.describe(rpc_timeout=RPC_TIMEOUT)
    first, found = first_run_id(now), first_run_id(run.description)
    tenant = now.typed_search_attributes.get(TRIAGE_TENANT)
    if not first or first != found:
        raise RefusedError(f"{run.id} is not the run any more that was shown", "look at it again")
    if tenant is None:
        raise RefusedError(f"{run.id} does not say whose it is: nothing was signed")
    return short_hash(tenant, run.id, first)
