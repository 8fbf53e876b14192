"""What new rules would allow that the old ones do not.

Why it exists: whoever can change a file in a repository could otherwise give a model more to write,
or themselves a vote. Rules that widen anything wait until a person has accepted them; rules that
only narrow need nobody. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from triage.contracts.logins import exact
from triage.contracts.options import MODES, Mode
from triage.policy.rules import DailyBudget, LabelEffect, Rules


class Widens(StrEnum):
    """What kind of thing becomes possible."""

    TOOL = "tool"
    LABEL = "label"
    EFFECT = "effect"
    APPROVER = "approver"
    MODE = "mode"
    MODEL = "model"
    BUDGET = "budget"


@dataclass(frozen=True, slots=True, order=True)
class Widening:
    """One thing that becomes possible.

    Attributes:
        kind: what kind of thing.
        name: which tool, label, approver, repository, model or budget; empty for all of them.
        before: what the old rules say.
        after: what the new rules say.
    """

    kind: Widens
    name: str
    before: str
    after: str


_ORDER: Final[Mapping[Mode, int]] = {mode: rank for rank, mode in enumerate(MODES)}


def widenings(old: Rules, new: Rules) -> tuple[Widening, ...]:
    """Return everything that `new` allows and `old` does not, sorted; empty if there is nothing."""
    return tuple(
        sorted(
            [
                *_tools(old, new),
                *_labels(old, new),
                *_approvers(old, new),
                *_modes(old, new),
                *_models(old, new),
                *_budgets(old, new),
            ]
        )
    )


def _tools(old: Rules, new: Rules) -> Iterator[Widening]:
    for name in {*old.tools_off} - {*new.tools_off}:
        yield Widening(Widens.TOOL, name, "off", "on")


def _labels(old: Rules, new: Rules) -> Iterator[Widening]:
    for name, effect in new.labels.items():
        before = old.labels.get(name)
        if effect is not LabelEffect.DESCRIPTIVE or before is LabelEffect.DESCRIPTIVE:
            continue
        if before is None:
            yield Widening(Widens.LABEL, name, "none", effect.value)
        else:
            yield Widening(Widens.EFFECT, name, before.value, effect.value)


def _approvers(old: Rules, new: Rules) -> Iterator[Widening]:
    if old.approvers and not new.approvers:
        yield Widening(Widens.APPROVER, "", f"{len(old.approvers)} people", "anybody trusted")
    known = {exact(name) for name in old.approvers}
    if old.approvers:
        for name in new.approvers:
            if exact(name) not in known:
                yield Widening(Widens.APPROVER, name, "may not approve", "may approve")
    for right in new.comment_rights:
        if right not in old.comment_rights:
            name = f"whoever has the right {right}"
            yield Widening(Widens.APPROVER, name, "may not approve", "may approve by a comment")
    if new.approvals_required < old.approvals_required:
        before, after = old.approvals_required, new.approvals_required
        yield Widening(Widens.APPROVER, "", f"{before} people required", f"{after} required")


def _modes(old: Rules, new: Rules) -> Iterator[Widening]:
    if _ORDER[new.mode] > _ORDER[old.mode]:
        yield Widening(Widens.MODE, "", old.mode.value, new.mode.value)
    for name in {*old.repositories, *new.repositories}:
        before, after = old.mode_in(name), new.mode_in(name)
        if _ORDER[after] > _ORDER[before]:
            yield Widening(Widens.MODE, name, before.value, after.value)


def _models(old: Rules, new: Rules) -> Iterator[Widening]:
    """Yield the models that would be shown issues, and a second opinion that would be gone."""
    for name in new.fallback_models:
        if name not in old.fallback_models:
            yield Widening(Widens.MODEL, name, "is not asked", "is asked next")
    if old.second_opinion not in {None, new.second_opinion}:
        after = "none" if new.second_opinion is None else "another one"
        yield Widening(Widens.MODEL, "second opinion", "may disagree", after)


def _budgets(old: Rules, new: Rules) -> Iterator[Widening]:
    for name in DailyBudget.model_fields:
        before: int | None = getattr(old.daily_budget, name)
        after: int | None = getattr(new.daily_budget, name)
        if before is not None and (after is None or after > before):
            shown = "no bound" if after is None else f"{after} a day"
            yield Widening(Widens.BUDGET, name, f"{before} a day", shown)
