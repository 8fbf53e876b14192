"""Where histories are recorded: a dev server, the production workers, and faults on request.

Why it exists: every ending of a run has to be recorded, also those that only a slow tool, a
tracker that loses its answer or a model that is still thinking can bring about. Which fault a run
meets is told by its own input (a path, a repository), so all recordings share one worker.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final
from unittest import mock

from pydantic import JsonValue

import worker
from activities.reads import READ_HANDLERS, RawRead, ReadHandler, lookup_component_owner
from activities.services import Services
from tests.fixed_rules import rules_with
from tests.workflow.world import World, dev_server
from triage.contracts.canonical import abbreviated, canonical_json, digest_of_bytes
from triage.contracts.names import ACTIVITY_LOOKUP_OWNER, TASK_QUEUE
from triage.policy.rules import Rules
from triage.settings import Settings
from triage.signing.files import KeyringFile
from triage.signing.keys import SigningKey, new_key, signing_key
from triage.storage.engine import Store
from triage.trackers.base import (
    IssueNotFound,
    LabelsAdded,
    TrackedIssue,
    TrackerTimeout,
    TrackerUnavailable,
)
from triage.trackers.local import LocalTracker
from triage.trackers.reading import Overview

IDENTITY: Final = "recorder"
"""Stands in every history where the SDK would write a process id and a host name."""

SECRET: Final = "ghp_" + "0123456789abcdefghijklmnopqrstuvwxyz"
"""What a careless tool returns, and what its error says; no history may hold it."""

SLOW, BROKEN, LEAKY, FORGETFUL = "slow.py", "broken.py", "leaky.py", "forgetful.py"
LOST_ANSWER, LOST_ISSUE = "completed-write-read-back", "review-write-outcome-unknown"


FULL_AT: Final = 100
"""From how many events on a run continues as new here; all but one have fewer."""

SEVERAL, SIGNED = "triage-several", "triage-signed"
"""Queues of workers whose rules want two approvals, and of such that count signed ones only."""


class FaultyTracker(LocalTracker):
    """A local tracker that fails in two repositories, and only there."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._lost: set[str] = set()

    async def add_labels(
        self,
        repository: str,
        number: str,
        labels: Sequence[str],
        *,
        by: str,
        operation_key: str,
        pinned: Mapping[str, str] | None = None,
    ) -> LabelsAdded:
        """Write as ever, and say so, except where the answer or the issue gets lost."""
        if repository == LOST_ISSUE:
            self._lost.add(repository)
            raise TrackerUnavailable("no answer", effect_possible=True)
        added = await super().add_labels(
            repository, number, labels, by=by, operation_key=operation_key, pinned=pinned
        )
        if repository == LOST_ANSWER and added.added:
            raise TrackerTimeout("the answer got lost")
        return added

    async def get_issue(self, repository: str, number: str) -> TrackedIssue | IssueNotFound:
        """Return the issue, unless it cannot be read any more."""
        if repository in self._lost:
            raise TrackerUnavailable("no answer", effect_possible=False)
        return await super().get_issue(repository, number)

    async def overview(
        self, repository: str, number: str, labels: Sequence[str]
    ) -> Overview | IssueNotFound:
        """Return it with all that a write looks at, likewise."""
        if repository in self._lost:
            raise TrackerUnavailable("no answer", effect_possible=False)
        return await super().overview(repository, number, labels)


@dataclass(frozen=True, kw_only=True)
class HeldServices(Services):
    """Services whose recorded model thinks, for some scripts, until it is let go on."""

    holds: dict[str, asyncio.Event] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)

    async def load_script(self, digest: str) -> list[JsonValue] | None:
        """Return the script; the first time is when the run is pinned, and never waits."""
        key = abbreviated(digest)
        self.asked[key] += 1
        if key in self.holds and self.asked[key] > 1:
            await self.holds[key].wait()
        return await super().load_script(digest)

    def hold(self, script: list[JsonValue]) -> asyncio.Event:
        """Make the model that plays `script` think until the returned event is set."""
        key = abbreviated(digest_of_bytes(canonical_json(script)))
        return self.holds.setdefault(key, asyncio.Event())


def faulty_lookup(services: Services) -> ReadHandler:
    """Return a handler of the owner lookup that fails for some paths."""

    async def lookup(arguments: Mapping[str, JsonValue], rules: Rules) -> RawRead:
        path = arguments["path"]
        if path == SLOW:
            await asyncio.sleep(5)
        if path == BROKEN:
            raise RuntimeError(f"401 for token {SECRET}")
        if path == LEAKY:
            value: JsonValue = {"owner": f"team {SECRET}", "evidence_id": "owners-leaky"}
            return RawRead(value, source=rules.name, locator="leaky")
        if path == FORGETFUL:
            await services.documents.purge_expired(now=datetime.now(UTC) + timedelta(days=4_000))
        return await lookup_component_owner(arguments, rules)

    return lookup


@dataclass(frozen=True, kw_only=True)
class Stage(World):
    """A world on which recordings are made, on the queue that production uses.

    Attributes:
        services: with their faults.
        key: of a person whose signed approvals count on the queue `SIGNED`.
        thoughts: for runs whose model thinks, by workflow id, what lets it go on.
    """

    services: HeldServices
    key: SigningKey
    thoughts: dict[str, asyncio.Event] = field(default_factory=dict)


@asynccontextmanager
async def opened_stage(home: Path) -> AsyncIterator[Stage]:
    """Start a server and the workers that `worker.py` builds, with the faults of this module."""
    settings = Settings(
        home=home,
        task_queue=TASK_QUEUE,
        local_trust=True,
        model="rules",
        tracker="local",
        # As long as an attempt takes on a busy machine, and no longer than a lost answer may cost.
        lease_seconds=4,
        quiet_period_seconds=1,
    )
    async with (
        await dev_server(
            "--dynamic-config-value",
            f"limit.historyCount.suggestContinueAsNew={FULL_AT}",
            identity=IDENTITY,
        ) as server,
        worker.open_services(settings) as opened,
    ):
        services = await _with_faults(opened, settings)
        ring = KeyringFile(home / "keyring.json")
        key = _person(ring)
        async with AsyncExitStack() as running:
            for queue, other in _kinds(services, ring).items():
                faults = {ACTIVITY_LOOKUP_OWNER: faulty_lookup(other)}
                with mock.patch.dict(READ_HANDLERS, faults):
                    here = settings.model_copy(update={"task_queue": queue})
                    workers = worker.build_workers(server.client, here, other)
                for one in workers:
                    await running.enter_async_context(one)
            yield Stage(client=server.client, services=services, queue=TASK_QUEUE, key=key)


def _kinds(services: HeldServices, ring: KeyringFile) -> dict[str, HeldServices]:
    """Return what the workers of each queue work with."""
    return {
        TASK_QUEUE: services,
        SEVERAL: replace(services, rules=rules_with(approvals_required=2)),
        SIGNED: replace(services, local_trust=False, keyring=ring),
    }


def _person(ring: KeyringFile) -> SigningKey:
    """Let a person's approvals count, and return the key that they sign with."""
    private, entry = new_key("maintainer", datetime.now(UTC) - timedelta(minutes=1))
    ring.change(lambda keys: keys.with_key(entry))
    return signing_key(private)


async def _with_faults(services: Services, settings: Settings) -> HeldServices:
    values = {part.name: getattr(services, part.name) for part in fields(services)}
    tracker = FaultyTracker(await Store.open(settings.database_url))
    return HeldServices(**{**values, "trackers": {"local": tracker}})
