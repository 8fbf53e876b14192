"""Reads that ask the run's tracker: who owns a path by CODEOWNERS, and the issue as it is now.

Why it exists: what a tracker does not show is never filled in. An owner that is not known stays
unknown, and a list that may not be whole is no list.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from typing import Final, TypeVar

from pydantic import JsonValue

from activities.raw_reads import Far, RawRead, TrackerReadHandler, TransientReadError
from triage.contracts.canonical import canonical_json, digest_of
from triage.contracts.names import ACTIVITY_LOOKUP_OWNER, ACTIVITY_READ_ISSUE
from triage.policy.codeowners import BadPathError, Ownership, OwnershipStatus
from triage.policy.rules import OwnerRule, Rules
from triage.policy.tools import MAX_LIST_ITEMS, MAX_RESULT_BYTES, ToolResultError
from triage.trackers.abilities import FetchedOwners, HasFiles
from triage.trackers.base import (
    IssueNotFound,
    TrackedIssue,
    TrackerRefused,
    TrackerTimeout,
    TrackerUnavailable,
)

Found = TypeVar("Found")

CODEOWNERS: Final = "codeowners"
BAD_PATH: Final = "bad_path"
_ROOM_BYTES: Final = 512
"""Left for what stands around an issue's text."""


async def lookup_in_codeowners(
    arguments: Mapping[str, JsonValue], rules: Rules, far: Far
) -> RawRead:
    """Read who owns a path from CODEOWNERS; the rules answer where no line of it does."""
    path = str(arguments["path"])
    if not isinstance(far.tracker, HasFiles):
        raise ToolResultError("the tracker has no files")
    try:
        fetched = await _asked(far.tracker.codeowners(far.target.repository))
    except TrackerRefused as error:
        return _by_file(far, _unknown(path, error.code), "CODEOWNERS")
    try:
        answer = await asyncio.to_thread(fetched.owners.lookup, path)
    except BadPathError:
        return _by_file(far, _unknown(path, BAD_PATH), f"CODEOWNERS@{fetched.sha}")
    rule = rules.owners.get(path, rules.default_owner)
    if answer.status is OwnershipStatus.UNOWNED and answer.line is None:
        return _by_rules(rules, rule, fetched)
    return _by_file(far, _told(answer, rule, fetched), answer.locator(fetched.sha))


def _told(answer: Ownership, rule: OwnerRule, fetched: FetchedOwners) -> dict[str, JsonValue]:
    """Return what the file says of a path; only an owned one has an owner."""
    value: dict[str, JsonValue] = {
        "path": answer.path,
        "status": answer.status.value,
        "file": fetched.path,
        "commit": fetched.sha,
        "line": answer.line,
    }
    if answer.reason is not None:
        value["reason"] = answer.reason.value
    if answer.owners:
        value |= _owners(answer, fetched)
        value["allowed_labels"] = list(rule.allowed_labels)
    return value


def _owners(answer: Ownership, fetched: FetchedOwners) -> dict[str, JsonValue]:
    """Return who owns a path: its owner is the first one that the tracker does not disown."""
    owners = answer.owners[:MAX_LIST_ITEMS]
    lost = [owner for owner in owners if fetched.is_unresolved(answer.line, owner)]
    value: dict[str, JsonValue] = {
        "owners": list(owners),
        "unresolved": list(lost),
        "owners_checked": fetched.unresolved is not None,
    }
    known = [owner for owner in owners if owner not in lost]
    return value | {"owner": known[0]} if known else value


def _unknown(path: str, reason: str) -> dict[str, JsonValue]:
    return {"path": path, "status": OwnershipStatus.UNKNOWN.value, "reason": reason}


def _by_file(far: Far, value: dict[str, JsonValue], locator: str) -> RawRead:
    name = f"{CODEOWNERS}-{digest_of(value).removeprefix('sha256:')[:16]}"
    return RawRead({**value, "evidence_id": name}, source=far.source, locator=locator)


def _by_rules(rules: Rules, rule: OwnerRule, fetched: FetchedOwners) -> RawRead:
    """Return the rules' owner of a path that no line of the file is about."""
    asked: dict[str, JsonValue] = {"file": fetched.path, "commit": fetched.sha, "line": None}
    value = {**rule.model_dump(mode="json"), CODEOWNERS: asked}
    revision = rules.digest().removeprefix("sha256:")[:12]
    return RawRead(value, rules.name, f"{rules.name}@{revision}#{rule.evidence_id}")


async def read_issue(arguments: Mapping[str, JsonValue], _rules: Rules, far: Far) -> RawRead:
    """Read the run's own issue as it is now; any other one is refused."""
    target = far.target
    if arguments["issue_id"] != target.issue:
        raise ToolResultError("a read may only be about the run's issue")
    issue = await _asked(far.tracker.get_issue(target.repository, target.issue))
    if isinstance(issue, IssueNotFound):
        raise ToolResultError("the tracker has no such issue")
    revision = issue.content_digest.removeprefix("sha256:")[:12]
    return RawRead(_shown(issue), far.source, f"{target.repository}#{target.issue}@{revision}")


def _shown(issue: TrackedIssue) -> dict[str, JsonValue]:
    value: dict[str, JsonValue] = {
        "issue_id": issue.number,
        "title": issue.title,
        "state": issue.state,
        "locked": issue.locked,
        "content_digest": issue.content_digest,
        "labels_known": issue.labels_known,
    }
    if issue.labels_known:
        pairs = zip(issue.labels, issue.label_ids, strict=True)
        value["labels"] = [{"name": name, "id": id_} for name, id_ in pairs]
    room = MAX_RESULT_BYTES - len(canonical_json(value)) - _ROOM_BYTES
    body = _that_fits(issue.body, room)
    return {**value, "body": body, "body_complete": body == issue.body}


def _that_fits(text: str, room: int) -> str:
    """Return the beginning of a text whose JSON has no more bytes than there is room for."""
    cut = text[: max(room, 0)]
    while cut and len(canonical_json(cut)) > room:
        cut = cut[: len(cut) // 2]
    return cut


async def _asked(asking: Awaitable[Found]) -> Found:
    """Return a tracker's answer.

    Raises:
        TransientReadError: there was none, and asking again may help.
        TrackerRefused: it will not say.
    """
    try:
        return await asking
    except TrackerTimeout:
        raise TransientReadError from None
    except TrackerUnavailable as error:
        raise TransientReadError(error.retry_after_seconds) from None


TRACKER_READ_HANDLERS: Final[dict[str, TrackerReadHandler]] = {
    ACTIVITY_LOOKUP_OWNER: lookup_in_codeowners,
    ACTIVITY_READ_ISSUE: read_issue,
}
