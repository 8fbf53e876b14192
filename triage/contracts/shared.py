"""Rules that many runs are held to, kept once.

Why it exists: every run pins its rules, and a run that waits for a person is kept for days. Read
from the history of each, the same rules took a twelfth of what such a run holds. So equal ones are
one object, which nobody can change: what is decoded is the same whatever was decoded before.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final, NoReturn

from triage.contracts.payloads import PolicySnapshot, Provenance, RunContext

KEPT: Final = 32
"""How many are known again: those of the latest changes to the rules, and of some repositories."""


def shared(context: RunContext) -> RunContext:
    """Return an equal context, whose rules and provenance are those of all runs that have them."""
    if context.policy is None:
        return context
    alike: dict[str, object] = {"policy": _policy(_written(context.policy))}
    if "provenance" in context.model_fields_set:
        alike["provenance"] = _provenance(_written(context.provenance))
    return context.model_copy(update=alike)


def shared_names(names: Iterable[str]) -> frozenset[str]:
    """Return the set of these names, the one that all runs have."""
    return _names(frozenset(names))


@lru_cache(4 * KEPT)
def _names(names: frozenset[str]) -> frozenset[str]:
    return names


def _written(part: PolicySnapshot | Provenance) -> str:
    """Return all that there is to a part: what it says, and which of it was said."""
    return part.model_dump_json(exclude_unset=True)


@lru_cache(KEPT)
def _policy(written: str) -> PolicySnapshot:
    policy = PolicySnapshot.model_validate_json(written)
    tools = (tool.model_copy(update={"arguments": _Fixed(tool.arguments)}) for tool in policy.tools)
    return policy.model_copy(update={"labels": _Fixed(policy.labels), "tools": tuple(tools)})


@lru_cache(KEPT)
def _provenance(written: str) -> Provenance:
    return Provenance.model_validate_json(written)


def _refuse(*_: object, **__: object) -> NoReturn:
    raise TypeError("what runs share cannot be changed")


# Built by its names: a subclass that takes methods away is one that no type checker lets pass.
_Fixed: Any = type(
    "_Fixed",
    (dict,),
    dict.fromkeys(
        (
            *("__setitem__", "__delitem__", "__ior__"),
            *("clear", "pop", "popitem", "setdefault", "update"),
        ),
        _refuse,
    ),
)
