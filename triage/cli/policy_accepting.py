"""`triage policy accept`: shows what rules would allow, asks, and records who accepted them."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from triage.cli.errors import InputError, RefusedError, StoppedError
from triage.cli.output import Format, columns, put, put_json, put_table, say
from triage.cli.policy_state import (
    LOOKED_AT_WITH,
    PolicyState,
    needed_setting,
    place_of,
    policy_state,
)
from triage.cli.policy_words import (
    BUILTIN,
    WIDENING_HEADERS,
    accepted_in_words,
    put_narrowings,
    short,
    source_in_words,
    widening_cells,
    widening_json,
)
from triage.cli.running import run
from triage.cli.stores import CREATE, must_exist, open_store
from triage.cli.text import quoted, wrap
from triage.cli.who import who
from triage.policy.rules_findings import RulesFileError
from triage.policy.tools import BUILTIN_TOOLS
from triage.rules_place import RulesPlace
from triage.settings import Settings, load_settings
from triage.storage.acceptances import Acceptance, Acceptances

YES: Final = "yes"
NOT_ACCEPTED: Final = "nothing was accepted"


def accept(
    file: Path | None, by: str | None, format_: Format, *, yes: bool, create: bool = False
) -> None:
    """Show every widening, ask unless told not to, and record the acceptance.

    It is recorded in the workers' database; one that is not there yet is made only to order.

    Raises:
        InputError: the name is blank or too long, or nobody could be asked.
        RulesFileError: the rules cannot be used.
        RefusedError: nothing waits, there is no database, nobody said yes, or the file is another
            by now.
        StorageError: it could not be recorded, or other rules were accepted meanwhile.
    """
    if format_ is Format.JSON and not yes:
        raise InputError("with --format json nobody is asked: say --yes")
    name, settings = who(by), load_settings()
    place = place_of(settings, file)
    state = run(policy_state(settings, place))
    if state.is_written:
        raise _nothing_waits(state, settings, place)
    if not create:
        run(must_exist(CREATE))
    if format_ is Format.TEXT:
        _put_widenings(state)
    if not yes:
        _ask(name, state)
    _see_that_it_is_still(state, place)
    accepted = run(_record(state, name, create=create))
    _put_acceptance(accepted, state, needed_setting(settings, place), format_)


def _nothing_waits(state: PolicyState, settings: Settings, place: RulesPlace) -> RefusedError:
    """Say that nothing waits, and what is in force, which may be something else."""
    nothing = f"nothing waits: {_name(state)} allow nothing new, and"
    setting = needed_setting(settings, place)
    if not setting:
        return RefusedError(f"{nothing} are in force")
    hint = f"they are where a worker has {setting}"
    try:
        in_force = source_in_words(run(policy_state(settings, RulesPlace.of(settings))))
    except (InputError, RulesFileError):
        return RefusedError(f"{nothing} are not in force", hint)
    return RefusedError(f"{nothing} are not in force: {in_force} are", hint)


def _name(state: PolicyState) -> str:
    return BUILTIN if state.written.path is None else f"the rules in {state.written.path}"


def _put_widenings(state: PolicyState) -> None:
    accepted = accepted_in_words(state.accepted)
    sentence = f"{_name(state)}, {short(state.written.rules.digest())}, would allow what {accepted}"
    put(*wrap(f"{sentence}, {short(state.accepted.digest)}, do not:", columns()), "")
    put_table(WIDENING_HEADERS, map(widening_cells, state.standing.waiting))
    put_narrowings(state)


def _ask(name: str, state: PolicyState) -> None:
    """Return only if the answer is yes; the end of the input is a no."""
    say("", f"Accept {short(state.written.rules.digest())} as {quoted(name)}? Type yes:")
    try:
        answer = sys.stdin.readline()
    except KeyboardInterrupt:
        raise StoppedError(signal.SIGINT) from None
    if answer.strip().lower() != YES:
        raise RefusedError(NOT_ACCEPTED)


def _see_that_it_is_still(state: PolicyState, place: RulesPlace) -> None:
    if place.read(BUILTIN_TOOLS).rules.digest() != state.written.rules.digest():
        raise RefusedError(f"the file changed since it was shown: {NOT_ACCEPTED}", "look again")


async def _record(state: PolicyState, name: str, *, create: bool) -> Acceptance:
    async with open_store(create=create, hint=CREATE) as store:
        return await Acceptances(store).accept(
            state.written.rules, replaces=state.accepted, widens=state.standing.waiting, by=name
        )


def _put_acceptance(
    accepted: Acceptance, state: PolicyState, setting: str, format_: Format
) -> None:
    if format_ is Format.JSON:
        widens: list[JsonValue] = [widening_json(one) for one in state.standing.waiting]
        narrows: list[JsonValue] = [widening_json(one) for one in state.narrows]
        put_json(
            {
                "digest": accepted.digest,
                "replaces": accepted.replaces,
                "by": accepted.by,
                "accepted_at": accepted.accepted_at.isoformat(),
                "widens": widens,
                "narrows": narrows,
            }
        )
    else:
        digest = short(accepted.digest)
        begins = "" if setting else ": it holds for every run that begins now"
        put(f"accepted {digest} as {quoted(accepted.by)}{begins}")
        put(*(("", LOOKED_AT_WITH, f"  {setting}") if setting else ()))
