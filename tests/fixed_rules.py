"""Rules that are in force whatever is written or accepted: for tests of something else."""

from __future__ import annotations

from dataclasses import dataclass

from triage.policy.rules import BUILTIN_RULES, Rules


@dataclass(frozen=True)
class FixedRules:
    """These rules, always."""

    rules: Rules = BUILTIN_RULES

    async def in_force(self) -> Rules:
        """Return them."""
        return self.rules


def rules_with(**changes: object) -> FixedRules:
    """The built-in rules but for some changes."""
    return FixedRules(BUILTIN_RULES.model_copy(update=changes))
