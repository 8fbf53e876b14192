"""The rules that a run is held to: routes, labels with their effect, owners and topics.

Why it exists: rules are data that deterministic code reads, never prose in a prompt. A run pins
them by digest; activities load that digest, and the workflow reads only the bounded snapshot.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import Field

from triage.contracts.approval import Digest
from triage.contracts.base import Contract, Name, NonEmpty
from triage.contracts.canonical import canonical_json, digest_of_bytes
from triage.contracts.options import (
    MAX_WINDOW_SECONDS,
    MODES,
    Amount,
    BudgetLimits,
    Count,
    Grounding,
    Mode,
    ModelName,
)
from triage.contracts.payloads import PolicySnapshot
from triage.contracts.repositories import folded_repository
from triage.policy.tools import ToolRegistry, ToolSpec

MAX_APPROVERS: Final = 100
MAX_SECURITY_TERMS: Final = 100

CommentRight = Literal["triage", "write", "maintain", "admin"]
"""What somebody may do in a repository, as its tracker says."""
COMMENT_RIGHTS: Final[tuple[CommentRight, ...]] = ("write", "maintain", "admin")


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


class DailyBudget(Contract):
    """Upper bounds of what runs may spend together in a day (UTC) on models that cost something.

    Attributes:
        tokens: all runs of a tenant.
        cost_micros: likewise, in millionths.
        repository_tokens: those in one repository.
        repository_cost_micros: likewise.
        author_tokens: those on issues of one author.
        author_cost_micros: likewise.
    """

    tokens: Amount | None = None
    cost_micros: Amount | None = None
    repository_tokens: Amount | None = None
    repository_cost_micros: Amount | None = None
    author_tokens: Amount | None = None
    author_cost_micros: Amount | None = None


class Rules(Contract):
    """A complete set of rules; its digest names it in every run that used it.

    Attributes:
        approval_window_seconds: how long a wait for a person lasts, in modes that wait; None leaves
            it to the mode.
        approvals_required: how many different people have to approve a write.
        approvers: the only people who may decide; empty for anybody whose approval is trusted.
        comment_rights: who may decide by a comment, by what they may do in the repository; empty
            for nobody.
        security_terms: words and phrases that make an issue one for a security review, beside
            those that are built in.
        repositories: the mode of a repository, where it is not `mode`; see `mode_in`.
        tools_off: registered tools that no run may use.
        budget: what a run may spend at most, whatever its options say.
        daily_budget: what runs may spend together in a day.
        max_corrections: how often a run may ask a model to correct an answer that is no decision;
            0 is never.
        fallback_models: whom to ask, in this order, when the run's own model gives no answer.
        second_opinion: the digest of the weights of a classifier: where it disagrees with a model's
            answer, a person decides; None is no second opinion.
        evidence_retention_days: how long a run's request and what its tools read are kept, where
            that is shorter than the worker's own setting; None leaves it to the setting.
    """

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
    approval_window_seconds: Annotated[int, Field(ge=60, le=MAX_WINDOW_SECONDS)] | None = None
    approvals_required: Annotated[int, Field(ge=1, le=10)] = 1
    approvers: Annotated[tuple[Name, ...], Field(max_length=MAX_APPROVERS)] = ()
    comment_rights: tuple[CommentRight, ...] = COMMENT_RIGHTS
    security_terms: Annotated[tuple[Name, ...], Field(max_length=MAX_SECURITY_TERMS)] = ()
    repositories: dict[Name, Mode] = Field(default_factory=dict)
    tools_off: tuple[Name, ...] = ()
    budget: BudgetLimits = BudgetLimits()
    daily_budget: DailyBudget = DailyBudget()
    max_corrections: Annotated[int, Field(ge=0, le=1)] = 0
    fallback_models: Annotated[tuple[ModelName, ...], Field(max_length=5)] = ()
    second_opinion: Digest | None = None
    evidence_retention_days: Annotated[int, Field(ge=1, le=3_650)] | None = None

    def body(self) -> bytes:
        """Return these rules in the form in which they are stored."""
        return canonical_json(self.model_dump(mode="json"))

    def digest(self) -> str:
        """Return the digest of these rules: that of their stored form."""
        return digest_of_bytes(self.body())

    def proposable_labels(self) -> tuple[str, ...]:
        """Return the labels that a model may propose: never one that triggers automation.

        They are sorted: rules out of the store have another order than those of a file.
        """
        descriptive = (n for n, effect in self.labels.items() if effect is LabelEffect.DESCRIPTIVE)
        return tuple(sorted(descriptive))

    def tools(self, registry: ToolRegistry) -> tuple[ToolSpec, ...]:
        """Return the registered tools that a run may use."""
        return tuple(spec for spec in registry if spec.name not in self.tools_off)

    def mode_in(self, repository: str) -> Mode:
        """Return the mode of a repository: the strictest that is said of it in any spelling.

        So a mode that allows more than `mode` is taken from the name as it is written alone.
        """
        known = folded_repository(repository)
        said = [
            mode for name, mode in self.repositories.items() if folded_repository(name) == known
        ]
        return min([*said, self.repositories.get(repository, self.mode)], key=_STRICTEST.index)

    def snapshot(
        self, registry: ToolRegistry, repository: str = "", *, remote: bool = False
    ) -> PolicySnapshot:
        """Return the bounded part of these rules and tools that a run in a repository reads.

        Args:
            registry: the tools that there are.
            repository: the run's.
            remote: whether its tracker is a remote one, which has the repository's files.
        """
        by_effect: dict[str, tuple[str, ...]] = {}
        for name, effect in self.labels.items():
            by_effect[effect.value] = (*by_effect.get(effect.value, ()), name)
        snapshot = PolicySnapshot(
            routes=self.routes,
            labels=by_effect,
            tools=tuple(spec.snapshot(remote=remote) for spec in self.tools(registry)),
            mode=self.mode_in(repository).value,
            max_steps=self.max_steps,
            max_model_retries=self.max_model_retries,
            grounding=self.grounding.value,
            reminder_seconds=self.reminder_seconds,
            escalation_seconds=self.escalation_seconds,
        )
        return snapshot.model_copy(update=self._unusual())

    def _unusual(self) -> dict[str, object]:
        """Return what is not as usual: only that is written into every run's history."""
        values = {name: getattr(self, name) for name in _ONLY_IF_SET}
        return {name: value for name, value in values.items() if value != _USUAL[name]}


_STRICTEST: Final = (*MODES,)
_ONLY_IF_SET: Final = (
    "approval_window_seconds",
    "approvals_required",
    "approvers",
    "budget",
    "max_corrections",
    "fallback_models",
)
_USUAL: Final = {name: Rules.model_fields[name].get_default() for name in _ONLY_IF_SET}

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
