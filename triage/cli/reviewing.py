"""`triage approve` and `triage reject`: show the exact operation, then decide on it."""

from __future__ import annotations

import getpass
import os
import pwd
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from pydantic import JsonValue, ValidationError
from temporalio.client import Client

from triage.cli import refusals, sending
from triage.cli.briefing import Briefing, ShownIssue
from triage.cli.briefing_lines import briefing_lines
from triage.cli.briefing_sources import brief
from triage.cli.clients import NoWorkerError, Run, ask_run, bounded, connect, find_run
from triage.cli.errors import CliError, InputError, RefusedError
from triage.cli.output import Format, put, put_json, say
from triage.cli.running import run as run_coroutine
from triage.cli.sending import Outcome, ended
from triage.cli.stores import ELSEWHERE
from triage.contracts import names
from triage.contracts.approval import RefusalCode, Review, Verdict, parse_review
from triage.contracts.canonical import digest_of
from triage.contracts.state import PendingView, StateView
from triage.settings import load_settings

if TYPE_CHECKING:
    # It takes a tenth of a second to load, and only who signs needs it.
    from triage.signing.keys import SigningKey

REVIEW_SECONDS: Final = 20.0
STOPPED: Final = "writes are stopped, and a write that is approved now is refused: nothing was sent"
UNCOVERED: Final = "the issue shown is not what the operation was proposed on: nothing was sent"
UNSEEN: Final = "the issue cannot be shown here, nor compared with the digest: nothing was sent"
UNCHECKED: Final = (
    "  not checked  by this run: it was started under local trust, which takes any approval"
)
NOTHING_SHOWN: Final = digest_of(None)
ANYWAY: Final = "--anyway approves all the same"


@dataclass(frozen=True, slots=True)
class Given:
    """What the command line says."""

    verdict: Literal["approve", "reject"]
    operation_id: str
    version: int
    approver: str | None
    digest: str | None
    note: str | None
    sign: bool = False
    key: Path | None = None
    dry_run: bool = False
    anyway: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """A run as it was shown to whoever decides."""

    client: Client
    run: Run
    state: StateView
    briefing: Briefing | None

    @property
    def pending(self) -> PendingView | None:
        """What it waits for."""
        return self.state.pending


def review(name: str, given: Given, format_: Format) -> None:
    """Show an operation, and decide on it.

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
    run_coroutine(_review(name, checked, given, key, format_))


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


async def _review(
    name: str, review: Review, given: Given, key: SigningKey | None, format_: Format
) -> None:
    async with bounded(REVIEW_SECONDS):
        seen = await _look(name, review)
        problem = _obstacle(review, seen, given)
        is_answer = given.dry_run and format_ is Format.TEXT
        _show(seen, put if is_answer else say)
        if given.dry_run or problem is not None:
            outcome, reason = _unsent(review, seen), problem
        else:
            outcome = await _decide(review, seen, key)
            reason = await _reason(outcome, review, seen, is_signed=key is not None)
    if format_ is Format.JSON:
        put_json(_document(seen, outcome, reason))
    if reason is not None:
        raise reason
    if not outcome.sent:
        say("nothing was sent")
    elif format_ is Format.TEXT:
        done = "approved" if review.verdict is Verdict.APPROVE else "rejected"
        put(f"{done} {review.operation_id} at version {review.version} as {review.approver}")
        say(*_still_needed(review, seen.pending))
        say(f"'triage show {shlex.quote(seen.run.id)}' shows what becomes of it")


def _still_needed(review: Review, shown: PendingView | None) -> list[str]:
    """Say how many more people have to approve, if one was not enough."""
    if shown is None or review.verdict is not Verdict.APPROVE:
        return []
    more = shown.approvals_required - len(shown.approved_by) - 1
    return [f"{more} more must approve it before it is written"] if more > 0 else []


def _document(seen: Seen, outcome: Outcome, reason: RefusedError | None) -> dict[str, JsonValue]:
    sentence = "" if reason is None else str(reason).removeprefix(f"{outcome.code}: ")
    return {
        **outcome.to_json(),
        "reason": sentence,
        "workflow_id": seen.run.id,
        "review": seen.briefing.to_json() if seen.briefing else None,
    }


async def _look(name: str, review: Review) -> Seen:
    """Find what is to be decided on, with all that can be shown of it."""
    client, settings = await connect()
    run = await find_run(client, name)
    if run.description.workflow_type != names.ISSUE_TRIAGE:
        raise RefusedError(f"{run.id} is no triage: there is nothing to decide")
    try:
        state = await _state(client, run)
    except CliError:
        if run.is_open:
            raise
        raise ended(run) from None
    if not run.is_open:
        raise ended(run, refusals.first_outcome(review, state))
    shown = None
    if state.pending is not None:
        shown = await brief(client, settings, run, state, state.pending)
    return Seen(client, run, state, shown)


async def _state(client: Client, run: Run) -> StateView:
    try:
        return StateView.model_validate_json(await ask_run(client, run, names.QUERY_STATE))
    except NoWorkerError as error:
        raise NoWorkerError(f"{error}; nothing was sent", error.hint) from None
    except ValidationError:
        raise RefusedError("the worker runs another version of this program") from None


def _show(seen: Seen, show: Callable[..., None]) -> None:
    if seen.briefing is None:
        say(f"{seen.run.id} waits for no decision")
    else:
        show(f"{seen.run.id} waits for a person", *briefing_lines(seen.briefing))


def _obstacle(review: Review, seen: Seen, given: Given) -> RefusedError | None:
    """Return why nothing is sent although the run would take it, unless the user insists."""
    code = refusals.mismatch(review, seen.pending)
    if given.dry_run and code is not None:
        return refusals.refused(code, "", review, seen.state, is_signed=given.sign)
    briefing = seen.briefing
    approves = review.verdict is Verdict.APPROVE and code is None
    if briefing is None or not approves or given.anyway or given.dry_run:
        return None
    return _against(briefing)


def _against(briefing: Briefing) -> RefusedError | None:
    """Return what speaks against approving what is shown, if anything does."""
    if isinstance(briefing.stops, tuple) and briefing.stops:
        return RefusedError(STOPPED, f"'triage writes allow' allows them again; {ANYWAY}")
    if not isinstance(briefing.issue, ShownIssue):
        return RefusedError(f"{UNSEEN} ({briefing.issue.why})", f"{ELSEWHERE}; {ANYWAY}")
    if not briefing.issue.is_covered:
        return RefusedError(UNCOVERED, f"reject it, or look where the workers look; {ANYWAY}")
    return None


def _unsent(review: Review, seen: Seen) -> Outcome:
    code = refusals.mismatch(review, seen.pending)
    return Outcome(code and code.value, seen.state.version, sent=False)


async def _decide(review: Review, seen: Seen, key: SigningKey | None) -> Outcome:
    if key is None:
        return await sending.send(seen.run, _bound(review, seen.pending), seen.state.version)
    return await _sign_and_send(review, seen, key)


async def _sign_and_send(review: Review, seen: Seen, key: SigningKey) -> Outcome:
    """Sign what was shown, if the review is about just that; else nothing is signed or sent."""
    from triage.cli import signing  # noqa: PLC0415 - only who signs needs it

    code, pending = refusals.mismatch(review, seen.pending), seen.pending
    if code is not None or pending is None:
        code = code or RefusalCode.NOT_PENDING
        return Outcome(code.value, seen.state.version, sent=False)
    signed = await signing.signed(seen.client, seen.run, review, pending, key)
    say(f"  signed      by {key.approver} with the key {key.kid}")
    if seen.briefing is not None and not seen.briefing.signs:
        say(UNCHECKED)
    return await sending.send(seen.run, signed, seen.state.version)


def _bound(review: Review, pending: PendingView | None) -> Review:
    """Bind the review to what was just shown, so that nothing else can be decided by it.

    Where nothing was shown it is bound to that: what comes to be pending meanwhile is something
    else.
    """
    if review.digest is not None:
        return review
    return review.model_copy(update={"digest": pending.digest if pending else NOTHING_SHOWN})


def _known(briefing: Briefing | None) -> refusals.Known | None:
    """Return what was seen of who may decide, if anything was shown."""
    if briefing is None:
        return None
    issue = briefing.issue
    author = issue.issue.author if isinstance(issue, ShownIssue) else None
    return refusals.Known(author=author, signs=briefing.signs)


async def _reason(
    outcome: Outcome, review: Review, seen: Seen, *, is_signed: bool
) -> RefusedError | None:
    """Return what to tell if the review did not count, and whether the run changed meanwhile."""
    if outcome.accepted or outcome.code is None:
        return None
    code = RefusalCode(outcome.code)
    told = refusals.refused(
        code, outcome.reason, review, seen.state, is_signed=is_signed, known=_known(seen.briefing)
    )
    if code not in refusals.ABOUT_WHAT_WAS_SHOWN or not outcome.sent:
        return told
    try:
        now = (await _state(seen.client, seen.run)).pending
    except CliError:
        return told
    change = refusals.changed(seen.pending, now)
    return RefusedError(f"{told}; {change}", told.hint) if change else told
