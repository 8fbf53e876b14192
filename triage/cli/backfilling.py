"""`triage backfill`: tries old issues, says how far it is, and reports what came of them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from triage.cli.clients import bounded, connect, has_worker
from triage.cli.errors import InputError, RefusedError, StoppedError, UnreachableError
from triage.cli.output import Format, put, put_json, put_table, say
from triage.cli.running import run
from triage.cli.stores import open_store, place
from triage.contracts.options import Mode
from triage.ingest.backfill import Backfill, Outcome, Pace, Wanted
from triage.ingest.backfill_report import Report, report_of
from triage.policy.rules import Rules
from triage.settings import load_settings
from triage.storage.backfills import LEASE, BackfillHeldError
from triage.storage.documents import SHARED, Document, DocumentKind, DocumentStore
from triage.storage.engine import Store
from triage.trackers.base import TrackerError, TrackerRefused
from triage.trackers.factory import open_trackers
from triage.trackers.listing import ListsIssues
from triage.trackers.local import LocalTracker

LABELS: Final = ("LABEL", "BOTH", "ONLY PROPOSED", "ONLY PEOPLE")
CONFUSION: Final = ("PEOPLE", "PROPOSED", "ISSUES")
SAID_EVERY: Final = 25
SILENCE_SECONDS: Final = 30.0
GOES_ON: Final = "the same command goes on where it stopped"
HELD_HINT: Final = (
    "two would start runs at twice the pace: wait for its end. One that was killed counts as ended"
    f" after {LEASE.total_seconds():.0f} s"
)
MOST_NAMED: Final = 10
"""So many repositories are named where another one is not there."""
SAYS_MORE: Final = f"'triage doctor' says more; {GOES_ON}"
MICROS: Final = 1_000_000


def wanted_of(
    repository: str, since: datetime | None, until: datetime | None, limit: int, mode: str
) -> Wanted:
    """Return what was asked for; times without a zone are UTC.

    Raises:
        InputError: there is no such mode, or no time between the two.
    """
    if mode not in set(Mode):
        raise InputError("--mode names no mode", f"there are {', '.join(Mode)}")
    begin = None if since is None else since.replace(tzinfo=UTC)
    end = None if until is None else until.replace(tzinfo=UTC)
    if begin is not None and end is not None and begin >= end:
        raise InputError("--since is not before --until", "no issue is opened between them")
    return Wanted(repository=repository, since=begin, until=end, limit=limit, mode=Mode(mode))


def backfill(wanted: Wanted, parallel: int, per_minute: int, format_: Format) -> None:
    """Carry a backfill to its end and report; one that is ended before goes on the next time.

    Raises:
        InputError: the tracker cannot list issues.
        RefusedError: it has no such repository, or another process carries a backfill of it.
        CliError: Temporal or the tracker cannot be reached, or no worker is there.
        StorageError: the database cannot be used.
    """
    pace, counted = Pace(parallel=parallel, per_minute=per_minute), Counted()
    try:
        outcome, report = run(_carried(wanted, pace, counted))
    except* TrackerError as group:
        why = f"the tracker cannot be read: {group.exceptions[0]}"
        raise UnreachableError(why, SAYS_MORE) from None
    except* BackfillHeldError:
        problem = f"a backfill of {wanted.repository} is under way; nothing was begun"
        raise RefusedError(problem, HELD_HINT) from None
    except* StoppedError as group:
        if counted.done is not None:
            say(f"stopped after {counted.done} issues; {GOES_ON}")
        raise group.exceptions[0] from None
    if format_ is Format.JSON:
        put_json(_json(wanted, outcome, report))
    else:
        put_report(wanted, report)


async def _carried(wanted: Wanted, pace: Pace, counted: Counted) -> tuple[Outcome, Report]:
    async with AsyncExitStack() as opened:
        store = await opened.enter_async_context(open_store())
        settings = load_settings()
        tracker: object = open_trackers(settings, store).get(settings.tracker)
        if not isinstance(tracker, ListsIssues):
            raise InputError(f"the tracker {settings.tracker} cannot list issues")
        name = await _name_of(tracker, settings.tracker, wanted.repository)
        async with bounded():
            client, settings = await connect()
            if not await has_worker(client, settings.task_queue):
                say("no worker is there yet: the runs wait for one")
        counted.show = opened.enter_context(telling(wanted.limit))
        backfill = Backfill(
            client=client,
            task_queue=settings.task_queue,
            tracker=tracker,
            tracker_name=settings.tracker,
            store=store,
            pace=pace,
            told=counted,
            resumed=_say_that_it_goes_on,
        )
        outcome = await backfill.run(replace(wanted, repository=name))
        return outcome, report_of(outcome.results.values(), await _known(store, outcome))


def _say_that_it_goes_on() -> None:
    say("it was begun before and goes on")


async def _name_of(tracker: ListsIssues, name: str, repository: str) -> str:
    """Return a repository's name as its tracker has it; one that is misspelt is no empty one.

    Raises:
        RefusedError: it has not, or does not show it to us.
        TrackerUnavailable: it cannot say.
    """
    try:
        return (await tracker.repository(repository)).name
    except TrackerRefused as error:
        problem = f"the tracker {name} shows no repository {repository}: {error} ({error.code})"
        raise RefusedError(problem, await _other(tracker)) from None


async def _other(tracker: ListsIssues) -> str:
    """Return what to look at where a repository is not there."""
    if not isinstance(tracker, LocalTracker):
        return "check its name; a private one is there only for a token or an App that may read it"
    if not (known := await tracker.repositories(MOST_NAMED)):
        return f"there is none in {place()}; 'triage issues add' opens an issue"
    return f"it knows {', '.join(known)}" + (", and others" if len(known) == MOST_NAMED else "")


async def _known(store: Store, outcome: Outcome) -> tuple[str, ...]:
    """Return the labels that could be proposed, by the rules that the runs were held to."""
    digests = {str(row["policy"]) for row in outcome.results.values() if row["policy"]}
    known: set[str] = set()
    for digest in digests:
        found = await DocumentStore(store).get(SHARED, DocumentKind.POLICY, digest)
        if isinstance(found, Document):
            known.update(Rules.model_validate_json(found.body).proposable_labels())
    return tuple(sorted(known))


class Counted:
    """Remembers how many issues are done, and shows it."""

    def __init__(self) -> None:
        self.done: int | None = None
        self.show: Callable[[int], None] = lambda _: None

    def __call__(self, done: int) -> None:
        """Take note of `done`."""
        self.done = done
        self.show(done)


class Lines:
    """Says how far it is by a line at first, after so many issues, and after a silence."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._said_at: float | None = None

    def __call__(self, done: int) -> None:
        """Say it, or keep still."""
        now = self._clock()
        is_silent = self._said_at is None or now - self._said_at >= SILENCE_SECONDS
        if is_silent or done % SAID_EVERY == 0:
            say(f"{done} issues")
            self._said_at = now


@contextmanager
def telling(limit: int) -> Iterator[Callable[[int], None]]:
    """Show how far it is: by a bar on a terminal, else by a line now and then."""
    if not sys.stderr.isatty():
        yield Lines()
        return
    from rich.console import Console  # noqa: PLC0415 - slow to load, and help needs none of it
    from rich.progress import Progress  # noqa: PLC0415 - likewise

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("issues", total=limit)
        yield lambda done: progress.update(task, completed=done)


def put_report(wanted: Wanted, report: Report) -> None:
    """Print what came of a backfill."""
    put(
        f"{wanted.repository}, mode {wanted.mode.value}: {report.issues} issues,"
        f" {report.answered} answered, {report.abstained} handed to a person,"
        f" {report.failed} failed",
        f"cost: {report.tokens} tokens, {report.cost_micros / MICROS:.6f}",
    )
    if report.failures:
        named = ", ".join(f"{name} {count}" for name, count in report.failures.items())
        put(f"why: {named}")
    rows = [(x.label, str(x.both), str(x.only_proposed), str(x.only_people)) for x in report.labels]
    put("")
    put_table(LABELS, rows)
    if report.confusion:
        put("")
        pairs = sorted(report.confusion.items(), key=lambda item: (-item[1], item[0]))
        put_table(CONFUSION, [(a, b, str(count)) for (a, b), count in pairs])


def _json(wanted: Wanted, outcome: Outcome, report: Report) -> dict[str, object]:
    items = [{"number": number, **result} for number, result in outcome.results.items()]
    asked = wanted.to_json()
    return {"backfill": outcome.backfill_id, **asked, **report.to_json(), "items": items}
