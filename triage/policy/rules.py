"""The rules that a run is held to: routes, labels with their effect, owners and topics.

Why it exists: rules are data that deterministic code reads, never prose in a prompt. A run pins
them by digest; activities load that digest, and the workflow reads only the bounded snapshot.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from triage.contracts.base import Contract, Name, NonEmpty
from triage.contracts.canonical import digest_of
from triage.contracts.options import MAX_WINDOW_SECONDS, Count, Grounding, Mode
from triage.contracts.payloads import PolicySnapshot
from triage.policy.tools import ToolRegistry


class LabelEffect(StrEnum):
    """What putting a label on an issue does; anything unknown is treated as control."""

    DESCRIPTIVE = "descriptive"
    CONTROL = "control"


class OwnerRule(Contract):
    """Who owns a path, and the labels that may be proposed for it."""

    owner: Name
    allowed_labels: tuple[Name, ...]
    evidence_id: Name


class TopicRule(Contract):
    """What the triage policy says about a topic."""

    route: Name
    owner: Name
    evidence_id: Name
    policy_id: Name | None = None
    review_required: bool | None = None


class Rules(Contract):
    """A complete set of rules; its digest names it in every run that used it."""

    name: Name
    routes: tuple[Name, ...]
    labels: dict[Name, LabelEffect]
    owners: dict[NonEmpty, OwnerRule]
    default_owner: OwnerRule
    topics: dict[NonEmpty, TopicRule]
    default_topic: TopicRule
    mode: Mode = Mode.SUGGEST
    max_steps: Count = 3
    max_model_retries: Count = 1
    grounding: Grounding = Grounding.CITED
    reminder_seconds: Annotated[int, Field(ge=1, le=MAX_WINDOW_SECONDS)] = 24 * 3600
    escalation_seconds: Annotated[int, Field(ge=1, le=MAX_WINDOW_SECONDS)] = 48 * 3600
    approvals_required: Annotated[int, Field(ge=1, le=10)] = 1
    evidence_retention_days: Annotated[int, Field(ge=1, le=3_650)] = 30

    def digest(self) -> str:
        """Return the digest of these rules."""
        return digest_of(self.model_dump(mode="json"))

    def proposable_labels(self) -> tuple[str, ...]:
        """Return the labels that a model may propose: never one that triggers automation."""
        return tuple(n for n, effect in self.labels.items() if effect is LabelEffect.DESCRIPTIVE)

    def snapshot(self, tools: ToolRegistry) -> PolicySnapshot:
        """Return the bounded part of these rules and `tools` that a workflow reads."""
        by_effect: dict[str, tuple[str, ...]] = {}
        for name, effect in self.labels.items():
            by_effect[effect.value] = (*by_effect.get(effect.value, ()), name)
        snapshot = PolicySnapshot(
            routes=self.routes,
            labels=by_effect,
            tools=tools.snapshot(),
            mode=self.mode.value,
            max_steps=self.max_steps,
            max_model_retries=self.max_model_retries,
            grounding=self.grounding.value,
            reminder_seconds=self.reminder_seconds,
            escalation_seconds=self.escalation_seconds,
        )
        # What is as usual is left out of every run's history.
        several = {"approvals_required": self.approvals_required}
        return snapshot.model_copy(update=several) if self.approvals_required > 1 else snapshot


BUILTIN_RULES = Rules(
    name="builtin",
    routes=("bug", "documentation", "feature", "security_review"),
    labels=dict.fromkeys(
        ("bug", "documentation", "feature", "component:api", "component:docs", "component:ui"),
        LabelEffect.DESCRIPTIVE,
    ),
    owners={
        "backend/api.py": OwnerRule(
            owner="backend-team", allowed_labels=("bug", "component:api"), evidence_id="owners-api"
        ),
        "docs/getting-started.md": OwnerRule(
            owner="docs-team",
            allowed_labels=("documentation", "component:docs"),
            evidence_id="owners-docs",
        ),
        "frontend/ui.tsx": OwnerRule(
            owner="frontend-team", allowed_labels=("bug", "component:ui"), evidence_id="owners-ui"
        ),
    },
    default_owner=OwnerRule(
        owner="triage-team", allowed_labels=("bug",), evidence_id="owners-default"
    ),
    topics={
        "feature": TopicRule(
            policy_id="TRIAGE-FEATURE",
            route="feature",
            owner="product-team",
            review_required=False,
            evidence_id="policy-feature",
        ),
        "security": TopicRule(
            policy_id="TRIAGE-SECURITY",
            route="security_review",
            owner="security-team",
            review_required=True,
            evidence_id="policy-security",
        ),
    },
    default_topic=TopicRule(
        route="security_review", owner="triage-team", evidence_id="policy-default"
    ),
)
"""The rules in force when no rules file is named. Source: the production agent's fixtures."""
