"""The shape of a rules file: its tables, and the keys that each may hold. Pure."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from triage.contracts.approval import Digest
from triage.contracts.base import Contract, Name, NonEmpty
from triage.contracts.options import BudgetLimits, Count, Grounding, Mode, ModelName
from triage.policy.rules import (
    BUILTIN_RULES,
    COMMENT_RIGHTS,
    MAX_APPROVERS,
    MAX_SECURITY_TERMS,
    CommentRight,
    DailyBudget,
)

MAX_LABELS: Final = 1_000

Hours = Annotated[int, Field(ge=1, le=90 * 24)]


class WrittenPolicy(Contract):
    """The table `policy`."""

    name: Name = "rules"
    routes: Annotated[tuple[Name, ...], Field(min_length=1, max_length=100)] = BUILTIN_RULES.routes
    mode: Mode = Mode.SUGGEST
    max_steps: Count = BUILTIN_RULES.max_steps
    max_model_retries: Count = BUILTIN_RULES.max_model_retries
    max_corrections: Annotated[int, Field(ge=0, le=1)] = BUILTIN_RULES.max_corrections
    fallback_models: Annotated[tuple[ModelName, ...], Field(max_length=5)] = ()
    second_opinion: Digest | None = None
    grounding: Grounding = Grounding.CITED
    evidence_retention_days: Annotated[int, Field(ge=1, le=3_650)] | None = None
    security_terms: Annotated[tuple[Name, ...], Field(max_length=MAX_SECURITY_TERMS)] = ()


class WrittenApprovals(Contract):
    """The table `approvals`."""

    required: Annotated[int, Field(ge=1, le=10)] = 1
    approvers: Annotated[tuple[Name, ...], Field(max_length=MAX_APPROVERS)] = ()
    comment_rights: tuple[CommentRight, ...] = COMMENT_RIGHTS
    window_hours: Hours | None = None
    reminder_hours: Hours = 24
    escalation_hours: Hours = 48


class WrittenOwner(Contract):
    """One entry of `owners`."""

    owner: Name
    labels: tuple[Name, ...] = ()
    evidence_id: Name | None = None


class WrittenTopic(Contract):
    """One entry of `topics`."""

    route: Name
    owner: Name
    review_required: bool | None = None
    policy_id: Name | None = None
    evidence_id: Name | None = None


class WrittenFile(Contract):
    """All tables of a rules file."""

    policy: WrittenPolicy = WrittenPolicy()
    approvals: WrittenApprovals = WrittenApprovals()
    budget: BudgetLimits = BudgetLimits()
    daily_budget: DailyBudget = DailyBudget()
    labels: Annotated[dict[Name, str], Field(max_length=MAX_LABELS)] = Field(default_factory=dict)
    owners: Annotated[dict[NonEmpty, WrittenOwner], Field(max_length=10_000)] = Field(
        default_factory=dict
    )
    topics: Annotated[dict[NonEmpty, WrittenTopic], Field(max_length=1_000)] = Field(
        default_factory=dict
    )
    repositories: Annotated[dict[Name, Mode], Field(max_length=10_000)] = Field(
        default_factory=dict
    )
    tools: dict[Name, bool] = Field(default_factory=dict)
