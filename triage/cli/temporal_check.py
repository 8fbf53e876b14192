"""Checks the Temporal server: reachable, with our search attributes, and polled by workers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.client import Client
from temporalio.service import RPCError

from triage import connection
from triage.cli.clients import LONG_POLL, RPC_TIMEOUT, poller_ages, silence_core
from triage.cli.findings import Finding, Level
from triage.contracts.names import writes_queue
from triage.contracts.search_attributes import SEARCH_ATTRIBUTES
from triage.settings import Settings, SettingsError

NAME: Final = "workers"
WORKER_ADVICE: Final = "start one: 'triage up', or 'python -m worker'"
_LATE: Final = timedelta(seconds=10)
"""By how much a worker on a busy machine may ask later than it could."""


async def check(settings: Settings) -> list[Finding]:
    """Return what there is to say about the server that Temporal's configuration names."""
    silence_core()
    try:
        client = await connection.connect(settings)
    except connection.ServerUnreachable as error:
        problem, _, advice = str(error).rpartition(": ")
        return [Finding("server", Level.FAIL, problem, advice, is_service=True)]
    except SettingsError as error:
        return [Finding("server", Level.FAIL, text, "correct it") for text in error.problems]
    found = await asyncio.gather(_attributes(client), _workers(client, settings))
    return [_server(client, settings), *found[0], *found[1]]


def _server(client: Client, settings: Settings) -> Finding:
    detail = f"{client.service_client.config.target_host}, namespace {client.namespace}"
    try:
        connection.check_storage_is_reachable(settings, client)
    except SettingsError as error:
        return Finding("server", Level.FAIL, f"{detail}: {error}", "set one of the two")
    return Finding("server", Level.OK, detail)


async def _attributes(client: Client) -> list[Finding]:
    name = "attributes"
    request = ListSearchAttributesRequest(namespace=client.namespace)
    try:
        reply = await client.operator_service.list_search_attributes(request, timeout=RPC_TIMEOUT)
    except RPCError as error:
        detail = f"the server does not list its search attributes ({error.status.name})"
        return [Finding(name, Level.WARN, detail, "a worker says at its start what is missing")]
    missing = [key.name for key in SEARCH_ATTRIBUTES if key.name not in reply.custom_attributes]
    if missing:
        detail = f"not registered: {', '.join(missing)}"
        return [Finding(name, Level.WARN, detail, "a worker registers them when it starts")]
    return [Finding(name, Level.OK, f"all {len(SEARCH_ATTRIBUTES)} search attributes")]


async def _workers(client: Client, settings: Settings) -> list[Finding]:
    decide, write = settings.task_queue, writes_queue(settings.task_queue)
    return [
        await _polled(client, decide, TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW),
        await _polled(client, write, TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY),
    ]


async def _polled(client: Client, queue: str, kind: TaskQueueType.ValueType) -> Finding:
    try:
        ages = await poller_ages(client, queue, kind)
    except RPCError as error:
        detail = f"the server does not tell who polls {queue} ({error.status.name})"
        return Finding(NAME, Level.WARN, detail)
    return judged(queue, ages)


def judged(queue: str, ages: Sequence[timedelta]) -> Finding:
    """Say who polls a queue, and how long ago that was seen: nothing newer is known."""
    lately = [age for age in ages if age <= LONG_POLL + _LATE]
    if not ages:
        return Finding(NAME, Level.WARN, f"none on the queue {queue}", WORKER_ADVICE)
    if not lately:
        told = f"none on the queue {queue} for {_seconds(ages[0])}, and a worker asks every minute"
        return Finding(NAME, Level.WARN, told, WORKER_ADVICE)
    seen = _seconds(lately[0])
    if len(lately) > 1:
        seen = f"{seen} to {_seconds(lately[-1])}"
    told = f"{len(lately)} on the queue {queue}, seen {seen} ago"
    return Finding(NAME, Level.OK, f"{told}; a killed one is missed after a minute")


def _seconds(age: timedelta) -> str:
    return f"{age.total_seconds():.0f} s"
