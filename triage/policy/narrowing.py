"""What new rules take away that the old ones have.

Why it exists: a file replaces the rules before it, so what it does not repeat is gone. Nobody has
to accept that; but whoever forgot a label or an owner should see it before runs do. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from triage.policy.rules import LabelEffect, OwnerRule, Rules, TopicRule
from triage.policy.rules_file import ANY
from triage.policy.widening import Widens, widenings

NOT_LISTED: Final = "not listed"
LISTED: Final = "listed"


class Narrows(StrEnum):
    """What kind of thing is taken away or becomes another one, beside what may widen."""

    ROUTE = "route"
    OWNER = "owner"
    TOPIC = "topic"
    TERM = "security term"


@dataclass(frozen=True, slots=True, order=True)
class Narrowing:
    """One thing that is taken away, or that is another one.

    Attributes:
        kind: what kind of thing.
        name: which one; empty for all of them.
        before: what the old rules say.
        after: what the new rules say.
    """

    kind: Widens | Narrows
    name: str
    before: str
    after: str


def narrowings(old: Rules, new: Rules) -> tuple[Narrowing, ...]:
    """Return everything that `old` has and `new` takes away or changes, sorted.

    What `new` allows beyond `old` is not among it: that are the widenings.
    """
    found = [*_allowed(old, new), *_control(old, new), *_gone(old, new)]
    found += _changed(Narrows.OWNER, _owners(old), _owners(new))
    found += _changed(Narrows.TOPIC, _topics(old), _topics(new))
    return tuple(sorted(found))


def _allowed(old: Rules, new: Rules) -> Iterator[Narrowing]:
    """Yield what going back would widen; a second opinion that is another one widens both ways."""
    models = {one.name for one in widenings(old, new) if one.kind is Widens.MODEL}
    for one in widenings(new, old):
        if one.kind is not Widens.MODEL or one.name not in models:
            yield Narrowing(one.kind, one.name, before=one.after, after=one.before)


def _control(old: Rules, new: Rules) -> Iterator[Narrowing]:
    for name, effect in old.labels.items():
        if effect is LabelEffect.CONTROL and name not in new.labels:
            yield Narrowing(Widens.LABEL, name, effect.value, NOT_LISTED)


def _gone(old: Rules, new: Rules) -> Iterator[Narrowing]:
    lists: tuple[tuple[Narrows, Collection[str], Collection[str]], ...] = (
        (Narrows.ROUTE, old.routes, new.routes),
        (Narrows.TERM, old.security_terms, new.security_terms),
    )
    for kind, before, after in lists:
        yield from (Narrowing(kind, n, LISTED, NOT_LISTED) for n in before if n not in after)


def _changed(kind: Narrows, old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[Narrowing]:
    """Yield the entries that are gone or others; one that is new takes nothing away."""
    for name, before in old.items():
        after = new.get(name, NOT_LISTED)
        if after != before:
            yield Narrowing(kind, name, before, after)


def _owners(rules: Rules) -> dict[str, str]:
    every = {ANY: rules.default_owner, **rules.owners}
    return {name: _owner(rule) for name, rule in every.items()}


def _topics(rules: Rules) -> dict[str, str]:
    every = {ANY: rules.default_topic, **rules.topics}
    return {name: _topic(rule) for name, rule in every.items()}


def _owner(rule: OwnerRule) -> str:
    labels = f": {', '.join(sorted(rule.allowed_labels))}" if rule.allowed_labels else ""
    return f"{rule.owner}{labels}"


def _topic(rule: TopicRule) -> str:
    review = ", with review" if rule.review_required else ""
    return f"{rule.route}, {rule.owner}{review}"
