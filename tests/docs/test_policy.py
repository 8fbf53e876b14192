"""Holds docs/policy.md to the code: its example, its tables and what they say of defaults."""

from __future__ import annotations

from typing import Final

import pytest

from tests.docs.pages import page
from triage.automation.bots import BOTS
from triage.contracts.options import MAX_STEPS_LIMIT, BudgetLimits
from triage.policy.rules import (
    BUILTIN_RULES,
    MAX_APPROVERS,
    DailyBudget,
    LabelEffect,
    Rules,
)
from triage.policy.rules_file import TABLES, RulesFile, read_rules, written_keys
from triage.policy.tools import BUILTIN_TOOLS
from triage.policy.widening import Widens, widenings
from triage.resources import fixtures_path

PAGE: Final = page("docs/policy.md")
KEYS: Final = {row[0]: row[1:] for row in PAGE.table("key", "values", "without it")}
TOOLS: Final = [spec.name for spec in BUILTIN_TOOLS]


def _read(text: str) -> RulesFile:
    return read_rules(text, TOOLS)


def _example() -> str:
    return fixtures_path("policy", "example.toml").read_text(encoding="utf-8")


def test_the_example_is_the_shipped_file() -> None:
    """What is shown is what is in the wheel, to the letter."""
    [block] = PAGE.blocks("toml")
    assert _example() == block.body


def test_the_example_can_be_used() -> None:
    """Read without a warning, it uses every table, waits for its mode, and has no new labels."""
    file = _read(_example())
    assert () == file.warnings
    assert [] == [table for table in sorted(TABLES) if f"\n[{table}" not in _example()]
    found = widenings(BUILTIN_RULES, file.rules)
    assert {Widens.MODE} == {widening.kind for widening in found}
    assert ("bug", "component:api", "documentation") == file.rules.proposable_labels()


def test_the_table_names_every_key() -> None:
    """Each key that can be written stands there once, and none that cannot."""
    assert sorted(written_keys()) == sorted(KEYS)


@pytest.mark.parametrize("key", KEYS)
def test_what_is_not_written_is_as_the_table_says(key: str) -> None:
    """Values in the last column are those of an empty file."""
    expected = _defaults(_read("").rules).get(key)
    if expected is not None:
        assert expected == KEYS[key][1]


def _defaults(rules: Rules) -> dict[str, str]:
    assert (None, None, ()) == (
        rules.evidence_retention_days,
        rules.approval_window_seconds,
        rules.approvers,
    )
    return {
        "policy.name": f"`{rules.name}`",
        "policy.routes": ", ".join(f"`{route}`" for route in rules.routes),
        "policy.mode": f"`{rules.mode}`",
        "policy.max_steps": str(rules.max_steps),
        "policy.max_model_retries": str(rules.max_model_retries),
        "policy.max_corrections": str(rules.max_corrections),
        "policy.fallback_models": "none" if rules.fallback_models == () else "",
        "policy.grounding": f"`{rules.grounding}`",
        "policy.evidence_retention_days": "as the setting says",
        "approvals.required": str(rules.approvals_required),
        "approvals.approvers": "anybody whose approval is trusted",
        "approvals.window_hours": "as the mode says",
        "approvals.reminder_hours": str(rules.reminder_seconds // 3600),
        "approvals.escalation_hours": str(rules.escalation_seconds // 3600),
        **dict.fromkeys((f"budget.{name}" for name in BudgetLimits.model_fields), "no bound"),
        **dict.fromkeys((f"daily_budget.{name}" for name in DailyBudget.model_fields), "no bound"),
    }


def test_bounds_are_the_code_s() -> None:
    """What the table gives as a bound is so."""
    for key in ("policy.max_steps", "policy.max_model_retries"):
        assert f"0 to {MAX_STEPS_LIMIT}" == KEYS[key][0]
    assert f"at most {MAX_APPROVERS} logins" in KEYS["approvals.approvers"][0]
    assert [True] * len(LabelEffect) == [
        f'`"{effect}"`' in KEYS["labels.NAME"][0] for effect in LabelEffect
    ]
    hours = ("window_hours", "reminder_hours", "escalation_hours")
    assert {"1 to 2,160"} == {KEYS[f"approvals.{name}"][0].partition(":")[0] for name in hours}
    _read("[approvals]\nreminder_hours = 2159\nescalation_hours = 2160\n")


def test_what_widens_is_the_code_s() -> None:
    """The table of what has to be accepted names each kind."""
    rows = PAGE.table("it allows", "what counts")
    assert [kind.value for kind in Widens] == [row[0] for row in rows]


def test_the_bots_are_the_code_s() -> None:
    """Each bot whose files are read is named, with these."""
    coded = [[bot.name, ", ".join(f"`{file}`" for file in bot.files)] for bot in BOTS]
    assert coded == PAGE.table("bot", "files")
