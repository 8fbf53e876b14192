"""`triage writes`: stops every write at the last moment, and allows them again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from pydantic import JsonValue

from triage.cli.briefing_lines import stop_sentence
from triage.cli.output import Format, put, put_json
from triage.cli.running import run
from triage.cli.stores import CREATE, ELSEWHERE, open_store, place
from triage.cli.who import checked_words, who
from triage.storage.switches import Switch, Switches


def stop(reason: str, tenant: str | None, by: str | None, format_: Format, *, create: bool) -> None:
    """Stop writes, and say so and in which database.

    Raises:
        RefusedError: there is no database, and none is to be made.
        InputError: the reason is blank or too long.
        StorageError: the database cannot be used; it is not known whether writes are stopped.
    """
    why, name, whose = checked_words("reason", reason), who(by), _tenant(tenant)
    _put(
        _turned(
            lambda switches: switches.stop(name, why, tenant=whose), create=create, hint=CREATE
        ),
        format_,
    )


def allow(tenant: str | None, by: str | None, format_: Format) -> None:
    """Allow writes again, and say so; raises what `stop` raises."""
    name, whose = who(by), _tenant(tenant)
    _put(_turned(lambda switches: switches.allow(name, tenant=whose)), format_)


def status(format_: Format) -> None:
    """Print how every switch stands that was ever touched.

    Raises:
        RefusedError: there is no database.
        StorageError: the database cannot be used.
    """
    found = run(_list())
    stopped = any(switch.stopped and switch.tenant is None for switch in found)
    if format_ is Format.JSON:
        put_json(
            {
                "database": place(),
                "stopped": stopped,
                "switches": [_as_json(switch) for switch in found],
            }
        )
        return
    if not any(switch.stopped for switch in found):
        put("writes are allowed")
    put(*(stop_sentence(switch) for switch in found if switch.stopped), _where())


def _turned(
    turn: Callable[[Switches], Awaitable[Switch]], *, create: bool = False, hint: str = ELSEWHERE
) -> Switch:
    async def main() -> Switch:
        async with open_store(create=create, hint=hint) as store:
            return await turn(Switches(store))

    return run(main())


async def _list() -> tuple[Switch, ...]:
    async with open_store(create=False) as store:
        return await Switches(store).list()


def _put(switch: Switch, format_: Format) -> None:
    if format_ is Format.JSON:
        put_json({"database": place(), **_as_json(switch)})
    else:
        put(stop_sentence(switch), _where())


def _where() -> str:
    """Return which database it is about: workers with another one know nothing of it."""
    return f"in {place()}"


def _as_json(switch: Switch) -> dict[str, JsonValue]:
    return {
        "tenant": switch.tenant,
        "stopped": switch.stopped,
        "by": switch.by,
        "reason": switch.reason,
        "changed_at": switch.changed_at.isoformat(),
    }


def _tenant(tenant: str | None) -> str | None:
    return None if tenant is None else checked_words("tenant", tenant)
