"""Settling: an explicit option wins over its mode, and that over the pinned rules."""

from __future__ import annotations

import pytest
from pydantic import JsonValue

from tests.unit.contracts.source_model import LABELS, ROUTES
from triage.contracts.options import BudgetLimits, Grounding, Mode, parse_options
from triage.contracts.payloads import PolicySnapshot
from triage.policy.rules import BUILTIN_RULES, LabelEffect
from triage.policy.tools import BUILTIN_TOOLS
from workflows.start import Limits, settle

POLICY = BUILTIN_RULES.snapshot(BUILTIN_TOOLS)
# The design's table: permitted effects, approval window in hours, propose on final.
TABLE: dict[str, tuple[set[str], int, bool]] = {
    "shadow": (set(), 0, False),
    "suggest": ({"apply_labels"}, 0, False),
    "approve": ({"apply_labels"}, 72, True),
}


def _policy(**changes: object) -> PolicySnapshot:
    return BUILTIN_RULES.model_copy(update=changes).snapshot(BUILTIN_TOOLS)


def _settle(policy: PolicySnapshot = POLICY, **options: JsonValue) -> Limits:
    return settle(parse_options(options), policy)


def _mode_values(limits: Limits) -> tuple[set[str], float, bool]:
    hours = limits.approval_window_seconds / 3600
    return set(limits.permitted_effects), hours, limits.propose_on_final


def test_without_options_the_rules_decide() -> None:
    """The defaults of the built-in rules are those of the design and of the source."""
    limits = _settle()
    assert (3, 1, Grounding.CITED) == (
        limits.max_steps,
        limits.max_model_retries,
        limits.grounding,
    )
    assert BudgetLimits() == limits.budget
    assert TABLE["suggest"] == _mode_values(limits)


@pytest.mark.parametrize("mode", TABLE)
def test_a_mode_stands_for_three_values(mode: str) -> None:
    """Each mode settles as the design's table says, chosen by the caller or by the rules."""
    assert TABLE[mode] == _mode_values(_settle(mode=mode))
    assert TABLE[mode] == _mode_values(_settle(_policy(mode=Mode(mode))))


@pytest.mark.parametrize("ruled", TABLE)
@pytest.mark.parametrize("asked", TABLE)
def test_the_callers_mode_wins_over_the_rules(ruled: str, asked: str) -> None:
    """A run's own mode replaces the policy's as a whole, whichever reaches further."""
    assert TABLE[asked] == _mode_values(_settle(_policy(mode=Mode(ruled)), mode=asked))


@pytest.mark.parametrize("mode", TABLE)
@pytest.mark.parametrize("effects", [[], ["apply_labels"], ["other"], ["a", "a"]])
def test_explicit_effects_win_over_the_mode(mode: str, effects: list[JsonValue]) -> None:
    """Explicit effects, an empty list too, replace those of the mode and nothing else."""
    limits = _settle(mode=mode, permitted_effects=effects)
    assert (set(effects), *TABLE[mode][1:]) == _mode_values(limits)


@pytest.mark.parametrize("mode", TABLE)
@pytest.mark.parametrize("hours", [0, 1, 100])
def test_an_explicit_window_wins_over_the_mode(mode: str, hours: int) -> None:
    """An explicit window, zero too, replaces that of the mode and nothing else."""
    effects, _, propose = TABLE[mode]
    limits = _settle(mode=mode, approval_window_seconds=hours * 3600)
    assert (effects, hours, propose) == _mode_values(limits)


@pytest.mark.parametrize("name", ["max_steps", "max_model_retries"])
@pytest.mark.parametrize("value", [0, 1, 100])
def test_explicit_counts_win_over_the_rules(name: str, value: int) -> None:
    """An explicit count, zero too, wins over the rules; null leaves them in force."""
    policy = _policy(max_steps=7, max_model_retries=5)
    assert value == getattr(_settle(policy, **{name: value}), name)
    assert {"max_steps": 7, "max_model_retries": 5}[name] == getattr(
        _settle(policy, **{name: None}), name
    )


@pytest.mark.parametrize("ruled", Grounding)
@pytest.mark.parametrize("asked", [None, *Grounding])
def test_explicit_grounding_wins_over_the_rules(ruled: Grounding, asked: Grounding | None) -> None:
    """A run may ask for another grounding than its policy's."""
    asked_text = None if asked is None else asked.value
    assert (asked or ruled) is _settle(_policy(grounding=ruled), grounding=asked_text).grounding


def test_a_budget_is_the_callers() -> None:
    """The limits that a caller sets are those that the run is held to."""
    limits = _settle(budget={"tokens": 0, "seconds": 60})
    assert BudgetLimits(tokens=0, seconds=60) == limits.budget


def test_routes_labels_and_tools_come_from_the_rules() -> None:
    """What a model may name is pinned: no option adds a route, a label or a tool."""
    rules = _policy(labels={**BUILTIN_RULES.labels, "automerge": LabelEffect.CONTROL})
    limits = _settle(rules, mode="approve")
    assert (ROUTES, LABELS) == (limits.routes, limits.labels)
    assert {spec.name: spec.snapshot() for spec in BUILTIN_TOOLS} == limits.tools


def test_rules_without_descriptive_labels_permit_none() -> None:
    """Where every label triggers automation, a model may propose none."""
    rules = _policy(labels={"automerge": LabelEffect.CONTROL})
    assert frozenset() == _settle(rules).labels


@pytest.mark.parametrize(
    ("mode", "option", "expected"),
    [("approve", None, 3600), ("approve", 60, 60), ("suggest", None, 0), ("shadow", None, 0)],
)
def test_the_rules_may_set_how_long_a_wait_lasts(
    mode: str, option: int | None, expected: int
) -> None:
    """In modes that wait the rules' window holds, unless an option says otherwise."""
    policy = BUILTIN_RULES.model_copy(update={"approval_window_seconds": 3600})
    options = parse_options({"mode": mode, "approval_window_seconds": option})
    limits = settle(options, policy.snapshot(BUILTIN_TOOLS))
    assert expected == limits.approval_window_seconds


def test_no_option_lifts_the_rules_budget() -> None:
    """Of two limits the lower one holds, and a limit that only one side sets holds, too."""
    rules = BUILTIN_RULES.model_copy(update={"budget": BudgetLimits(tokens=100, seconds=60)})
    options = parse_options({"budget": {"tokens": 500, "seconds": 5, "cost_micros": 7}})
    budget = settle(options, rules.snapshot(BUILTIN_TOOLS)).budget
    assert BudgetLimits(tokens=100, seconds=5, cost_micros=7, evidence_bytes=None) == budget
