"""`triage poll`: looks once through repositories for what no delivery brought."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from triage.cli.errors import InputError, UnreachableError
from triage.cli.output import Format, put_json, put_table, say
from triage.cli.running import run
from triage.cli.stores import open_store
from triage.contracts.moments import EARLIEST
from triage.ingest.companions import poller
from triage.ingest.polling import Look
from triage.settings import Settings, load_settings
from triage.storage.admission import Admission
from triage.trackers.factory import open_trackers

HEADERS = ("REPOSITORY", "LOOKED AT", "NEW", "STATE")


def poll(repositories: tuple[str, ...], since: datetime | None, format_: Format) -> None:
    """Look through repositories, and say what was found.

    Raises:
        InputError: no repository is named.
        SettingsError: the settings do not suffice.
        StorageError: the database cannot be used.
        UnreachableError: a repository could not be read to its end.
    """
    settings = load_settings()
    chosen = repositories or settings.poll_repositories
    if not chosen:
        raise InputError("no repository is named", "name one, or set TRIAGE_POLL_REPOSITORIES")
    looks = run(_looks(settings, chosen, since))
    if format_ is Format.JSON:
        put_json([_json(look) for look in looks])
    else:
        put_table(HEADERS, [_cells(look) for look in looks])
    if any(look.admitted for look in looks):
        say("'triage serve', or a worker with the role write, starts what is new")
    if broken := [look.repository for look in looks if look.problem]:
        raise UnreachableError(f"could not be read to the end: {', '.join(broken)}")


async def _looks(
    settings: Settings, repositories: tuple[str, ...], since: datetime | None
) -> list[Look]:
    async with open_store() as store:
        retention = timedelta(days=settings.evidence_retention_days)
        tracker = open_trackers(settings, store).get(settings.tracker)
        polling = poller(settings, store, Admission(store, retention), tracker)
        begin = None if since is None else max(since.replace(tzinfo=UTC), EARLIEST)
        return [await polling.look(repository, begin) for repository in repositories]


def _cells(look: Look) -> tuple[str, ...]:
    state = look.problem or ("done" if look.is_whole else "more is left; ask again")
    return look.repository, str(look.seen), str(look.admitted), state


def _json(look: Look) -> dict[str, object]:
    return {
        "repository": look.repository,
        "seen": look.seen,
        "admitted": look.admitted,
        "whole": look.is_whole,
        "problem": look.problem,
    }
