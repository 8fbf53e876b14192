"""What new rules would allow that the old ones do not: only that needs a person."""

from __future__ import annotations

import pytest

from triage.contracts.options import BudgetLimits, Mode
from triage.policy.rules import BUILTIN_RULES, DailyBudget, LabelEffect
from triage.policy.widening import Widening, Widens, widenings

CONTROL, DESCRIPTIVE = LabelEffect.CONTROL, LabelEffect.DESCRIPTIVE
OLD = BUILTIN_RULES.model_copy(
    update={
        "labels": {"bug": DESCRIPTIVE, "deploy": CONTROL},
        "approvers": ("ann", "bob"),
        "approvals_required": 2,
        "tools_off": ("apply_labels",),
        "repositories": {"acme/api": Mode.APPROVE, "acme/quiet": Mode.SHADOW},
        "fallback_models": ("openai:gpt-5", "rules"),
        "second_opinion": f"sha256:{'0' * 64}",
        "daily_budget": DailyBudget(tokens=1_000, author_cost_micros=50),
    }
)

CASES: dict[str, tuple[dict[str, object], list[Widening]]] = {
    "nothing": ({}, []),
    "a tool on": ({"tools_off": ()}, [Widening(Widens.TOOL, "apply_labels", "off", "on")]),
    "a tool off": ({"tools_off": ("apply_labels", "lookup_component_owner")}, []),
    "a new label": (
        {"labels": {**OLD.labels, "docs": DESCRIPTIVE}},
        [Widening(Widens.LABEL, "docs", "none", "descriptive")],
    ),
    "a new control label": ({"labels": {**OLD.labels, "merge": CONTROL}}, []),
    "another effect": (
        {"labels": {"bug": DESCRIPTIVE, "deploy": DESCRIPTIVE}},
        [Widening(Widens.EFFECT, "deploy", "control", "descriptive")],
    ),
    "a label less": ({"labels": {"deploy": CONTROL}}, []),
    "another spelling of a label": (
        {"labels": {"BUG": DESCRIPTIVE}},
        [Widening(Widens.LABEL, "BUG", "none", "descriptive")],
    ),
    "one approver more": (
        {"approvers": ("ann", "bob", "eve")},
        [Widening(Widens.APPROVER, "eve", "may not approve", "may approve")],
    ),
    "the same approvers": ({"approvers": ("@Bob", "ANN")}, []),
    "one approver less": ({"approvers": ("ann",)}, []),
    "no approvers named": (
        {"approvers": ()},
        [Widening(Widens.APPROVER, "", "2 people", "anybody trusted")],
    ),
    "fewer required": (
        {"approvals_required": 1},
        [Widening(Widens.APPROVER, "", "2 people required", "1 required")],
    ),
    "a mode up": (
        {"mode": Mode.APPROVE},
        [Widening(Widens.MODE, "", "suggest", "approve")],
    ),
    "a mode down": ({"mode": Mode.SHADOW}, []),
    "a repository up": (
        {"repositories": {"acme/api": Mode.APPROVE, "acme/quiet": Mode.SUGGEST}},
        [Widening(Widens.MODE, "acme/quiet", "shadow", "suggest")],
    ),
    "a repository that loses its own mode": (
        {"repositories": {"acme/api": Mode.APPROVE}},
        [Widening(Widens.MODE, "acme/quiet", "shadow", "suggest")],
    ),
    "a repository down": ({"repositories": {**OLD.repositories, "acme/api": Mode.SHADOW}}, []),
    "a repository in other letters": (
        {"repositories": {"acme/api": Mode.APPROVE, "Acme/Quiet": Mode.SHADOW}},
        [],
    ),
    "a repository up in other letters": (
        {"repositories": {**OLD.repositories, "Acme/Quiet": Mode.APPROVE}},
        [],
    ),
    "more to spend": ({"budget": BudgetLimits(tokens=1)}, []),
    "another model": (
        {"fallback_models": ("rules", "anthropic:claude", "openai:gpt-5")},
        [Widening(Widens.MODEL, "anthropic:claude", "is not asked", "is asked next")],
    ),
    "a model less": ({"fallback_models": ()}, []),
    "no second opinion": (
        {"second_opinion": None},
        [Widening(Widens.MODEL, "second opinion", "may disagree", "none")],
    ),
    "another second opinion": (
        {"second_opinion": f"sha256:{'1' * 64}"},
        [Widening(Widens.MODEL, "second opinion", "may disagree", "another one")],
    ),
    "more in a day": (
        {"daily_budget": DailyBudget(tokens=1_001, author_cost_micros=50)},
        [Widening(Widens.BUDGET, "tokens", "1000 a day", "1001 a day")],
    ),
    "no bound in a day": (
        {"daily_budget": DailyBudget(tokens=1_000)},
        [Widening(Widens.BUDGET, "author_cost_micros", "50 a day", "no bound")],
    ),
    "less in a day": (
        {"daily_budget": DailyBudget(tokens=0, author_cost_micros=50, cost_micros=1)},
        [],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_widens(name: str) -> None:
    """Tools, labels, effects, approvers, modes, models and daily budgets widen; nothing else."""
    changes, expected = CASES[name]
    assert expected == [*widenings(OLD, OLD.model_copy(update=changes))]


def test_all_of_it_is_named() -> None:
    """A change that widens several things names each of them, in a fixed order."""
    new = OLD.model_copy(update={"tools_off": (), "approvers": (), "mode": Mode.APPROVE})
    kinds = [widening.kind for widening in widenings(OLD, new)]
    assert ["approver", "mode", "tool"] == kinds


@pytest.mark.parametrize("name", CASES)
def test_nothing_widens_itself(name: str) -> None:
    """Rules that were accepted are in force as soon as they are written, whatever they allow."""
    rules = OLD.model_copy(update=CASES[name][0])
    assert () == widenings(rules, rules.model_copy())


def test_going_back_widens_again() -> None:
    """Rules that were narrowed are wider than the narrow ones when they come back."""
    narrow = OLD.model_copy(update={"labels": {}})
    assert () == widenings(OLD, narrow)
    assert ["label"] == [widening.kind for widening in widenings(narrow, OLD)]
