"""The trackers that there are, each with people who do what people do there.

Why it exists: whoever writes must be able to rely on the same promises whatever the far end is. So
one suite runs on all of them, and each says here how its people act.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Final, Protocol

from pydantic import SecretStr
from sqlalchemy import delete

from tests.clock import PATIENCE_SECONDS
from tests.fakes.commit_log import Action
from tests.fakes.control import TrackerControl
from tests.fakes.github import GitHub, serving_github
from tests.fakes.github_people import App
from tests.fakes.tracker import serving
from tests.unit.trackers import keys
from triage.storage.engine import Store
from triage.storage.schema import tracker_labels
from triage.trackers.base import TrackedIssue, Tracker
from triage.trackers.github import GitHubTracker
from triage.trackers.github_auth import (
    FILES,
    READS,
    WRITES,
    AppCredential,
    Credentials,
    TokenCredential,
)
from triage.trackers.github_auth import App as OurApp
from triage.trackers.github_wire import Wire
from triage.trackers.local import LocalTracker
from triage.trackers.local_rows import insert_label, label_key

NUMBER: Final = "101"
LABELS: Final = ("bug", "component:api", "good first issue")
TITLE: Final = "Crash"
BODY: Final = "It crashes."
AUTHOR: Final = "ann"
PERSON: Final = "bob"
TOKEN: Final = "triage-bot"
REQUEST_SECONDS: Final = PATIENCE_SECONDS
WRITE_SECONDS: Final = 4 * PATIENCE_SECONDS
"""What a tracker on the fake gives one request, and a write until it is sent."""
_numbers = count(1)


class FarEnd(Protocol):
    """A repository with one issue and three labels, and what a person can do with it."""

    tracker: Tracker
    repository: str

    async def adds(self, label: str) -> None:
        """Put a label on the issue."""

    async def removes(self, label: str) -> None:
        """Take a label off the issue."""

    async def edits(self, **texts: str) -> None:
        """Change ``title``, ``body`` or ``state``."""

    async def locks(self) -> None:
        """Lock the issue."""

    async def defines(self, *labels: str) -> None:
        """Give the repository more labels."""

    async def remakes(self, label: str) -> None:
        """Delete a label that no issue has, and make one of the same name."""


class LocalEnd:
    """The local tracker."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.local = LocalTracker(store)
        self.tracker: Tracker = self.local
        # The store is one for all tests, so each has a repository of its own.
        self.repository = f"acme/shop-{next(_numbers)}"

    async def open(self) -> None:
        """Open the issue."""
        await self.local.admit_issue(
            self.repository, NUMBER, title=TITLE, body=BODY, author=AUTHOR, labels=LABELS
        )

    async def adds(self, label: str) -> None:
        """Put a label on the issue."""
        await self.local.add_label(self.repository, NUMBER, label, by=PERSON)

    async def removes(self, label: str) -> None:
        """Take a label off the issue."""
        await self.local.remove_label(self.repository, NUMBER, label, by=PERSON)

    async def edits(self, **texts: str) -> None:
        """Change the issue."""
        # Each text is one of the parameters.
        await self.local.edit_issue(self.repository, NUMBER, by=PERSON, **texts)  # type: ignore[arg-type] # see above

    async def locks(self) -> None:
        """Lock the issue."""
        await self.local.edit_issue(self.repository, NUMBER, by=PERSON, locked=True)

    async def defines(self, *labels: str) -> None:
        """Give the repository more labels."""
        async with self._store.write() as connection:
            now = await self._store.now(connection)
            # The command that does it refuses names that no repository has today.
            for label in labels:
                await insert_label(connection, self.repository, label, now)

    async def remakes(self, label: str) -> None:
        """Delete the label's row, which no command does, and make it anew."""
        async with self._store.write() as connection:
            mine = tracker_labels.c.label_key == label_key(self.repository, label)
            await connection.execute(delete(tracker_labels).where(mine))
        await self.defines(label)


class RemoteEnd:
    """A tracker over HTTP, with a fake behind it."""

    repository = "acme/shop"

    def __init__(self, control: TrackerControl, tracker: Tracker) -> None:
        self.control = control
        self.tracker = tracker

    async def open(self) -> None:
        """Open the issue."""
        await self.control.define_labels(self.repository, LABELS)
        await self.control.open_issue(
            self.repository, NUMBER, title=TITLE, body=BODY, author=AUTHOR
        )

    async def adds(self, label: str) -> None:
        """Put a label on the issue."""
        await self.control.act(Action.LABELED, self.repository, NUMBER, label=label, by=PERSON)

    async def removes(self, label: str) -> None:
        """Take a label off the issue."""
        await self.control.act(Action.UNLABELED, self.repository, NUMBER, label=label, by=PERSON)

    async def edits(self, **texts: str) -> None:
        """Change the issue."""
        await self.control.edit(self.repository, NUMBER, **texts)

    async def locks(self) -> None:
        """Lock the issue."""
        await self.control.lock(self.repository, NUMBER)

    async def defines(self, *labels: str) -> None:
        """Give the repository more labels."""
        await self.control.define_labels(self.repository, labels)

    async def remakes(self, label: str) -> None:
        """Delete the label, and make it anew."""
        await self.control.drop_label(self.repository, label)
        await self.defines(label)


class GitHubEnd(RemoteEnd):
    """GitHub, and its fake's insides."""

    def __init__(self, github: GitHub, tracker: GitHubTracker) -> None:
        super().__init__(github.control, tracker)
        self.github = github
        self.over_github = tracker


@asynccontextmanager
async def local_end(store: Store) -> AsyncIterator[FarEnd]:
    """Open the local tracker."""
    end = LocalEnd(store)
    await end.open()
    yield end


@asynccontextmanager
async def http_end(folder: Path) -> AsyncIterator[FarEnd]:
    """Open the tracker over HTTP that crash tests write to."""
    async with serving(folder / "commits.jsonl") as running:
        control = TrackerControl(running.api.address, running.control.address)
        end = RemoteEnd(control, control.client())
        await end.open()
        yield end


@asynccontextmanager
async def github_end(folder: Path, *, app: App | None = None) -> AsyncIterator[GitHubEnd]:
    """Open GitHub, as an account with a token or as an App."""
    async with serving_github(folder / "commits.jsonl", app=app) as github:
        end = GitHubEnd(github, github_tracker(github, app=app))
        await end.open()
        yield end


def github_tracker(
    github: GitHub,
    *,
    app: App | None = None,
    token: str = TOKEN,
    request_seconds: float = REQUEST_SECONDS,
    write_seconds: float = WRITE_SECONDS,
    max_bytes: int = 4_000_000,
    write_spacing_seconds: float = 0.0,
) -> GitHubTracker:
    """Return a tracker that talks to a fake."""
    wire = Wire(
        address=github.control.api + github.api.prefix,
        request_seconds=request_seconds,
        write_seconds=write_seconds,
        max_bytes=max_bytes,
    )
    return GitHubTracker(
        wire,
        rights_of(wire, app, token),
        app_id=str(app.id) if app else None,
        write_spacing_seconds=write_spacing_seconds,
    )


def rights_of(wire: Wire, app: App | None, token: str) -> Credentials:
    """Return one token for everything, or the App's own for each use."""
    if app is None:
        one = TokenCredential(SecretStr(token))
        return Credentials(reads=one, files=one, writes=one)
    ours = OurApp(app_id=str(app.id), private_key=SecretStr(keys.private_pem()))
    made = [AppCredential(wire=wire, app=ours, permissions=p) for p in (READS, FILES, WRITES)]
    return Credentials(reads=made[0], files=made[1], writes=made[2])


def an_app() -> App:
    """Return an App that is installed where these tests are."""
    return App(
        id=4711, slug="acme-triage", public_key=keys.public_pem(), repositories={"acme/shop"}
    )


async def issue_of(end: FarEnd) -> TrackedIssue:
    """Return the issue as it is now."""
    found = await end.tracker.get_issue(end.repository, NUMBER)
    assert isinstance(found, TrackedIssue)
    return found
