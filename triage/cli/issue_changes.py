"""What a person changes at an issue of the local tracker: its labels, and whether it is open."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final, Literal

from triage.cli.errors import InputError, RefusedError
from triage.cli.issues import as_json
from triage.cli.output import Format, put, put_json
from triage.cli.references import named
from triage.cli.running import run
from triage.cli.stores import open_store
from triage.cli.who import who
from triage.policy.tools import BUILTIN_TOOLS
from triage.rules_place import RulesPlace
from triage.settings import load_settings
from triage.trackers.base import TrackedIssue, has_labels, label_key
from triage.trackers.local import LocalTracker

State = Literal["open", "closed"]
LOCAL: Final = "local"


def label(name: str, labels: Sequence[str], by: str | None, format_: Format) -> None:
    """Put labels on an issue, as a person does: all of them, or none.

    Raises:
        InputError: this is not how an issue is named, or the issues are another tracker's.
        RefusedError: there is no such issue or no such label, or no database.
    """
    _put(run(_label(*named(name), labels, who(by))), format_)


def unlabel(name: str, labels: Sequence[str], by: str | None, format_: Format) -> None:
    """Take labels off an issue, as a person does: all of them, or none.

    Raises:
        InputError: this is not how an issue is named, or the issues are another tracker's.
        RefusedError: there is no such issue, a label is not on it, or there is no database.
    """
    _put(run(_unlabel(*named(name), labels, who(by))), format_)


def set_state(name: str, state: State, by: str | None, format_: Format) -> None:
    """Close an issue, or open it again.

    Raises:
        InputError: this is not how an issue is named, or the issues are another tracker's.
        RefusedError: there is no such issue, or no database.
    """
    _put(run(_set_state(*named(name), state, who(by))), format_)


def _put(issue: TrackedIssue, format_: Format) -> None:
    if format_ is Format.JSON:
        put_json(as_json(issue))
    else:
        labels = ", ".join(issue.labels) or "-"
        put(f"{issue.repository}#{issue.number}  {issue.state}  {labels}")


async def _label(repository: str, number: str, labels: Sequence[str], by: str) -> TrackedIssue:
    async with _open() as tracker:
        await _issue(tracker, repository, number)
        known = await _known(tracker, repository)
        _require(labels, known, f"there is no label {{}} in {repository}", "it has")
        for one in labels:
            await tracker.add_label(repository, number, one, by=by)
        return await _issue(tracker, repository, number)


async def _unlabel(repository: str, number: str, labels: Sequence[str], by: str) -> TrackedIssue:
    async with _open() as tracker:
        on = (await _issue(tracker, repository, number)).labels
        _require(labels, on, f"{repository}#{number} does not have the label {{}}", "it has")
        for one in {label_key(one): one for one in labels}.values():
            await tracker.remove_label(repository, number, one, by=by)
        return await _issue(tracker, repository, number)


async def _set_state(repository: str, number: str, state: State, by: str) -> TrackedIssue:
    async with _open() as tracker:
        issue = await _issue(tracker, repository, number)
        if issue.state == state:
            raise RefusedError(f"{repository}#{number} is {state} already")
        return await tracker.edit_issue(repository, number, by=by, state=state)


@asynccontextmanager
async def _open() -> AsyncIterator[LocalTracker]:
    if (tracker := load_settings().tracker) != LOCAL:
        raise InputError(
            f"TRIAGE_TRACKER is {tracker}: this changes issues of the local tracker alone",
            "change it where the issue lives",
        )
    async with open_store(create=False) as store:
        yield LocalTracker(store)


async def _issue(tracker: LocalTracker, repository: str, number: str) -> TrackedIssue:
    found = await tracker.get_issue(repository, number)
    if not isinstance(found, TrackedIssue):
        raise RefusedError(
            f"there is no issue {number} in {repository}",
            f"'triage issues list --repository {repository}' shows them",
        )
    return found


async def _known(tracker: LocalTracker, repository: str) -> tuple[str, ...]:
    """Return the labels of a repository; one that has none gets the rules', as by a first run."""
    if known := await tracker.label_inventory(repository):
        return known
    rules = RulesPlace.of(load_settings()).read(BUILTIN_TOOLS).rules
    await tracker.seed_labels(repository, rules.labels)
    return await tracker.label_inventory(repository)


def _require(wanted: Sequence[str], there: Sequence[str], problem: str, hint: str) -> None:
    for one in wanted:
        if not has_labels(there, [one]):
            raise RefusedError(problem.format(one), f"{hint} {', '.join(there) or 'none'}")
