"""`triage approve` and `triage reject`: show the exact operation, then decide on it."""

from __future__ import annotations

import getpass
import os
import pwd
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import JsonValue, ValidationError
from temporalio.client import (
    Client,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from triage.cli.clients import NoWorkerError, Run, ask_run, bounded, connect, find_run
from triage.cli.errors import InputError, RefusedError, UnreachableError
from triage.cli.following import pending_lines
from triage.cli.output import Format, put, put_json, say
from triage.cli.running import run as run_coroutine
from triage.contracts import names
from triage.contracts.approval import (
    REFUSAL_MEANING,
    RefusalCode,
    Review,
    ReviewAnswer,
    Verdict,
    parse_review,
)
from triage.contracts.state import PendingView, StateView
from triage.settings import load_settings

if TYPE_CHECKING:
    # It takes a tenth of a second to load, and only who signs needs it.
    from triage.signing.keys import SigningKey

REVIEW_SECONDS: Final = 15.0

_UNSIGNED_HINT: Final = (
    "without local trust only signed approvals count: make a key with 'triage keys new NAME' and "
    "add --sign; an issue's author and bots never decide"
)
_SIGNED_HINTS: Final = {
    RefusalCode.UNAUTHORISED: (
        "the worker's log names the check: a key that its keyring does not have or that is "
        "retired, a clock that is ahead; an issue's author and bots never decide"
    ),
    RefusalCode.EXPIRED: "if the run still waits, this machine's clock is behind the database's",
}


@dataclass(frozen=True, slots=True)
class Given:
    """What the command line says."""

    verdict: str
    operation_id: str
    version: int
    approver: str | None
    digest: str | None
    note: str | None
    sign: bool = False
    key: Path | None = None


def review(name: str, given: Given, format_: Format) -> None:
    """Decide on an operation.

    Raises:
        CliError: the review did not count, or it is not known whether it did.
    """
    key = _key(given)
    document: dict[str, JsonValue] = {
        "operation_id": given.operation_id,
        "version": given.version,
        "approver": key.approver if key else _named(given),
        "digest": given.digest,
        "note": given.note,
        "verdict": given.verdict,
    }
    checked = parse_review(_without_nulls(document), None)
    answer = run_coroutine(_review(name, checked, key))
    _put_answer(checked, answer, format_, is_signed=key is not None)


def _named(given: Given) -> str:
    return user_name() if given.approver is None else given.approver


def _without_nulls(document: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return {name: value for name, value in document.items() if value is not None}


def _key(given: Given) -> SigningKey | None:
    """Read the key to sign with, if it is to be signed.

    Raises:
        InputError: it cannot be used, or is not the key of who is to decide.
    """
    if not given.sign:
        if given.key is not None:
            raise InputError("--key names a key to sign with", "add --sign, or leave --key out")
        return None
    from triage.cli import key_files  # noqa: PLC0415 - only who signs needs it

    key = key_files.own_key(key_files.own_key_path(load_settings(), given.key))
    if given.approver not in {None, key.approver}:
        raise InputError(f"this is the key of {key.approver}", "leave --as out, or name the owner")
    return key


def user_name() -> str:
    """Return the name of whoever runs this process.

    Raises:
        InputError: the system does not know one.
    """
    try:
        return pwd.getpwuid(os.getuid()).pw_name or getpass.getuser()
    except (KeyError, OSError):
        raise InputError("the system has no name for you", "say who decides with --as") from None


async def _review(name: str, review: Review, key: SigningKey | None) -> ReviewAnswer:
    async with bounded(REVIEW_SECONDS):
        client, _ = await connect()
        run = await find_run(client, name)
        if run.description.workflow_type != names.ISSUE_TRIAGE:
            raise RefusedError(f"{run.id} is no triage: there is nothing to decide")
        if not run.is_open:
            raise _ended(run)
        state = await _state(client, run)
        if key is None:
            return await _send(run, _bound(review, state.pending), state.version)
        return await _sign_and_send(client, run, review, state, key)


async def _sign_and_send(
    client: Client, run: Run, review: Review, state: StateView, key: SigningKey
) -> ReviewAnswer:
    """Sign what was shown, if the review is about just that; else nothing is signed or sent."""
    from triage.cli import signing  # noqa: PLC0415 - only who signs needs it

    code = signing.mismatch(review, state.pending)
    if code is not None or state.pending is None:
        code = code or RefusalCode.NOT_PENDING
        return ReviewAnswer(accepted=False, code=code.value, version=state.version)
    signed = await signing.signed(client, run, review, state.pending, key)
    say(f"  signed      by {key.approver} with the key {key.kid}")
    return await _send(run, signed, state.version)


async def _state(client: Client, run: Run) -> StateView:
    """Return the run's state, once its pending operation has been shown."""
    try:
        state = StateView.model_validate_json(await ask_run(client, run, names.QUERY_STATE))
    except NoWorkerError as error:
        raise NoWorkerError(f"{error}; nothing was sent") from None
    except ValidationError:
        raise RefusedError("the worker runs another version of this program") from None
    if state.pending is None:
        say(f"{run.id} waits for no decision")
    else:
        say(run.id, *pending_lines(state.pending))
    return state


def _bound(review: Review, pending: PendingView | None) -> Review:
    """Bind the review to what was just shown, so that nothing else can be approved by it."""
    is_shown = pending is not None and (
        (pending.operation_id, pending.version) == (review.operation_id, review.version)
    )
    if pending is None or not is_shown or review.digest is not None:
        return review
    return review.model_copy(update={"digest": pending.digest})


async def _send(run: Run, review: Review, version: int) -> ReviewAnswer:
    try:
        answer: ReviewAnswer = await run.handle.execute_update(
            names.UPDATE_REVIEW, review, result_type=ReviewAnswer
        )
    except WorkflowUpdateFailedError as error:
        cause = error.cause
        if not isinstance(cause, ApplicationError) or cause.type not in set(RefusalCode):
            raise RefusedError(f"the run did not take the review: {cause}") from None
        return ReviewAnswer(accepted=False, code=cause.type, version=version)
    except (WorkflowUpdateRPCTimeoutOrCancelledError, TimeoutError):
        raise _unknown(run) from None
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            raise _ended(run) from None
        raise
    return answer


def _ended(run: Run) -> RefusedError:
    return RefusedError(
        f"{run.id} has ended: no decision counts any more",
        f"'triage show {shlex.quote(run.id)}' shows how",
    )


def _unknown(run: Run) -> UnreachableError:
    return UnreachableError(
        "no answer came, so it is not known whether the decision counted",
        f"'triage show {shlex.quote(run.id)}' shows it",
    )


def _put_answer(review: Review, answer: ReviewAnswer, format_: Format, *, is_signed: bool) -> None:
    if format_ is Format.JSON:
        put_json(answer.model_dump(mode="json"))
    if not answer.accepted:
        code = RefusalCode(answer.code)
        raise RefusedError(f"{code.value}: {REFUSAL_MEANING[code]}", _hint(code, is_signed))
    if format_ is Format.TEXT:
        done = "approved" if review.verdict is Verdict.APPROVE else "rejected"
        put(f"{done} {review.operation_id} at version {review.version} as {review.approver}")


def _hint(code: RefusalCode, is_signed: bool) -> str:
    if is_signed:
        return _SIGNED_HINTS.get(code, "")
    return _UNSIGNED_HINT if code is RefusalCode.UNAUTHORISED else ""
