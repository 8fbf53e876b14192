"""`triage resume`: continues an ended run as a new one that is linked to it.

The ended run stays as it is. Its continuation counts on from its version, may cite its evidence,
and waits for an approval of its own. It has one continuation: that one's id follows from the ended
run's, so the server takes it once, and who wants another continues the newest of the chain.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import JsonValue
from temporalio.client import Client

from triage.cli import following, orders
from triage.cli.clients import Run, bounded, connect, has_worker
from triage.cli.continuations import newest_elsewhere
from triage.cli.errors import InputError, RefusedError
from triage.cli.inputs import checked_workflow_id
from triage.cli.output import Format, put, put_json, say
from triage.cli.predecessors import Predecessor, never_began, predecessor
from triage.cli.running import run
from triage.cli.starting import begin
from triage.continuing import (
    FIRST_CONTINUATION,
    MAX_IDS_TRIED,
    describe,
    first_run_id,
    read_link,
    series,
)
from triage.contracts.options import ContinuedFrom, parse_options

RESUME_SECONDS: Final = 30.0
"""The ended run's history may come in many pages."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line says."""

    name: str
    request: Path | None
    mode: str
    max_steps: int | None
    workflow_id: str | None


def resume(asked: Asked, *, wait: bool, format_: Format) -> None:
    """Continue a run, and follow the new one if its response is waited for.

    Raises:
        CliError: it cannot be continued, an id is taken, or Temporal cannot be reached.
        ContractError: a document or an option is not what it should be.
    """
    parse_options(_limits(asked))
    if asked.workflow_id is not None:
        checked_workflow_id(asked.workflow_id, orders.ID_HINT)
    changed = None
    if asked.request is not None:
        changed = orders.check(
            orders.Order(asked.request, asked.mode, None, None, asked.workflow_id)
        )
    run(_resume(asked, changed, wait=wait, format_=format_))


def _limits(asked: Asked) -> dict[str, JsonValue]:
    given: dict[str, JsonValue] = {"mode": asked.mode, "max_steps": asked.max_steps}
    return {name: value for name, value in given.items() if value is not None}


async def _resume(
    asked: Asked, changed: orders.Checked | None, *, wait: bool, format_: Format
) -> None:
    async with bounded(RESUME_SECONDS):
        client, settings = await connect()
        ended = await predecessor(client, asked.name)
        checked = await _checked(client, asked, ended, changed)
        handle = await begin(
            client, settings, checked, hint=orders.ID_HINT if asked.workflow_id else ""
        )
        link = ended.link
        say(f"continues {link.workflow_id} ({ended.status}) from version {link.version}")
        if not wait:
            _tell_started(checked, handle.first_execution_run_id, link, format_)
            if not await has_worker(client, settings.task_queue):
                say(following.waiting_for_worker(settings))
            return
    say(f"started {handle.id}")
    response = await following.follow(client, settings, handle)
    following.put_response(response, handle.id, format_)


async def _checked(
    client: Client, asked: Asked, ended: Predecessor, changed: orders.Checked | None
) -> orders.Checked:
    request: JsonValue = ended.request.model_dump(mode="json")
    if changed is not None:
        if changed.request_id != ended.request.request_id:
            raise InputError(
                f"{asked.request}: is another request than {ended.request.request_id}",
                "a continuation is about the same request; 'triage start' starts another",
            )
        request = changed.inputs[0]
    options = {
        **ended.options,
        **_limits(asked),
        "continued_from": ended.link.model_dump(mode="json"),
    }
    # Looked for in any case: a name of one's own makes no second continuation.
    own_id = await _own_id(client, ended)
    workflow_id = asked.workflow_id or own_id
    return orders.Checked(workflow_id, ended.request.request_id, [request, options])


async def _own_id(client: Client, ended: Predecessor) -> str:
    """Return the id of the one continuation: the first of the series that no run of it has.

    Raises:
        InputError: it would be too long.
        RefusedError: the run was continued already, or very many ids are taken.
    """
    chain, newest = {(ended.link.workflow_id, ended.link.run_id)}, None
    for candidate in ids_after(ended):
        checked_workflow_id(candidate, orders.ID_HINT)
        handle = client.get_workflow_handle(candidate)
        found = await describe(handle)
        if found is None:
            newest = await newest_elsewhere(client, ended.ended_at, chain) or newest
            if newest is not None and not await never_began(newest):
                raise continued_already(ended.link.workflow_id, newest)
            return candidate
        link = await read_link(handle)
        if link is not None and (link.workflow_id, link.run_id) in chain:
            chain.add((candidate, first_run_id(found)))
            newest = Run(handle, found)
    raise RefusedError(f"{MAX_IDS_TRIED} ids are taken; nothing was started", orders.ID_HINT)


def continued_already(workflow_id: str, newest: Run) -> RefusedError:
    """Return what to tell whoever continues a run a second time."""
    name = shlex.quote(newest.id)
    if newest.is_open:
        what, hint = "which goes on", f"'triage show {name}' shows what it waits for"
    else:
        what, hint = "which has ended", f"'triage resume {name}' continues that one"
    return RefusedError(
        f"{workflow_id} was continued already, by now as {newest.id}, {what}; nothing was started",
        hint,
    )


def ids_after(ended: Predecessor) -> Iterator[str]:
    """Return the ids for the ended run's continuation; a continuation's series goes on."""
    base, first = ended.link.workflow_id, FIRST_CONTINUATION
    stem, _, number = base.rpartition(".")
    is_of_a_series = ended.follows is not None and f"{ended.follows}.".startswith(f"{stem}.")
    if stem and is_of_a_series and number.isascii() and number.isdecimal():
        base, first = stem, int(number) + 1
    return series(base, first)


def _tell_started(
    checked: orders.Checked, run_id: str | None, link: ContinuedFrom, format_: Format
) -> None:
    if format_ is Format.JSON:
        document = {"workflow_id": checked.workflow_id, "request_id": checked.request_id}
        put_json({**document, "run_id": run_id, "continued_from": link.model_dump(mode="json")})
    else:
        put(checked.workflow_id)
    say(
        "started; what it wants to write needs an approval of its own:",
        f"'triage show {shlex.quote(checked.workflow_id)}' shows it, and how to approve it",
    )
