"""The built-in rules are the source document's; a run is pinned to them by digest."""

from __future__ import annotations

import pytest
from pydantic import JsonValue, ValidationError

from tests.unit.contracts.source_model import LABELS, ROUTES
from triage.contracts.canonical import canonical_json, digest_of
from triage.contracts.options import BudgetLimits, Mode
from triage.policy.rules import BUILTIN_RULES, LabelEffect, Rules
from triage.policy.tools import BUILTIN_TOOLS

SNAPSHOT_BYTES = 1_200

OWNERS: dict[str, JsonValue] = {
    "backend/api.py": {
        "owner": "backend-team",
        "allowed_labels": ["bug", "component:api"],
        "evidence_id": "owners-api",
    },
    "docs/getting-started.md": {
        "owner": "docs-team",
        "allowed_labels": ["documentation", "component:docs"],
        "evidence_id": "owners-docs",
    },
    "frontend/ui.tsx": {
        "owner": "frontend-team",
        "allowed_labels": ["bug", "component:ui"],
        "evidence_id": "owners-ui",
    },
}
DEFAULT_OWNER: JsonValue = {
    "owner": "triage-team",
    "allowed_labels": ["bug"],
    "evidence_id": "owners-default",
}
TOPICS: dict[str, JsonValue] = {
    "feature": {
        "policy_id": "TRIAGE-FEATURE",
        "route": "feature",
        "owner": "product-team",
        "review_required": False,
        "evidence_id": "policy-feature",
    },
    "security": {
        "policy_id": "TRIAGE-SECURITY",
        "route": "security_review",
        "owner": "security-team",
        "review_required": True,
        "evidence_id": "policy-security",
    },
}
DEFAULT_TOPIC: JsonValue = {
    "route": "security_review",
    "owner": "triage-team",
    "evidence_id": "policy-default",
}


def _changed(**changes: object) -> Rules:
    return BUILTIN_RULES.model_copy(update=changes)


def _plain(rules: Rules) -> dict[str, JsonValue]:
    plain: dict[str, JsonValue] = rules.model_dump(mode="json", exclude_unset=True)
    return plain


def test_builtin_owners_are_the_sources() -> None:
    """Owners, their labels and evidence ids are the source document's, the default included."""
    plain = _plain(BUILTIN_RULES)
    assert (OWNERS, DEFAULT_OWNER) == (plain["owners"], plain["default_owner"])


def test_builtin_topics_are_the_sources() -> None:
    """Topics, their routes and evidence ids are the source document's, the default included."""
    plain = _plain(BUILTIN_RULES)
    assert (TOPICS, DEFAULT_TOPIC) == (plain["topics"], plain["default_topic"])


def test_builtin_routes_and_labels_are_the_sources() -> None:
    """The routes and labels are the source document's, and a model may propose every label."""
    assert set(BUILTIN_RULES.routes) == ROUTES
    assert set(BUILTIN_RULES.proposable_labels()) == LABELS == set(BUILTIN_RULES.labels)
    assert len(BUILTIN_RULES.routes) == len(ROUTES)


def test_builtin_defaults_are_those_of_the_design() -> None:
    """Without options a run has three steps, one model retry, cited grounding, no own writes."""
    assert ("suggest", 3, 1, "cited", None) == (
        BUILTIN_RULES.mode,
        BUILTIN_RULES.max_steps,
        BUILTIN_RULES.max_model_retries,
        BUILTIN_RULES.grounding,
        BUILTIN_RULES.evidence_retention_days,
    )


def test_rules_survive_their_own_json() -> None:
    """Rules that are stored and loaded again are the same and have the same digest."""
    again = Rules.model_validate_json(BUILTIN_RULES.model_dump_json())
    assert (BUILTIN_RULES, BUILTIN_RULES.digest()) == (again, again.digest())


def test_a_digest_ignores_the_order_of_keys() -> None:
    """The same rules written in another order are the same rules."""
    turned = _changed(owners=dict(reversed(BUILTIN_RULES.owners.items())))
    assert list(turned.owners) != list(BUILTIN_RULES.owners)
    assert BUILTIN_RULES.digest() == turned.digest()


@pytest.mark.parametrize("name", Rules.model_fields)
def test_a_digest_covers_every_field(name: str) -> None:
    """No part of the rules can change under a run's digest."""
    rules = BUILTIN_RULES.model_dump(mode="json")
    assert BUILTIN_RULES.digest() == digest_of(rules)
    assert BUILTIN_RULES.digest() != digest_of({**rules, name: "changed"})
    assert name in rules


def test_rules_are_frozen() -> None:
    """Pinned rules cannot change."""
    with pytest.raises(ValidationError, match="frozen"):
        BUILTIN_RULES.mode = "shadow"  # type: ignore[misc,assignment]  # the promise is a failure


@pytest.mark.parametrize(
    "changes",
    [
        {"extra": 1},
        {"max_steps": True},
        {"max_steps": -1},
        {"mode": "yolo"},
        {"grounding": "none"},
        {"routes": "bug"},
        {"labels": {"bug": "harmless"}},
        {"owners": {"": DEFAULT_OWNER}},
        {"default_owner": None},
        {"evidence_retention_days": 0},
    ],
)
def test_wrong_rules_are_refused(changes: dict[str, JsonValue]) -> None:
    """A rules document with a wrong or unknown part is refused as a whole."""
    document = canonical_json({**_plain(BUILTIN_RULES), **changes})
    with pytest.raises(ValidationError):
        Rules.model_validate_json(document)


def test_control_labels_are_never_proposed() -> None:
    """A label that triggers automation is known, but no model may propose it."""
    rules = _changed(labels={**BUILTIN_RULES.labels, "automerge": LabelEffect.CONTROL})
    assert "automerge" not in rules.proposable_labels()
    snapshot = rules.snapshot(BUILTIN_TOOLS)
    assert ("automerge",) == snapshot.labels["control"]
    assert LABELS == set(snapshot.labels["descriptive"])


def test_a_snapshot_holds_what_the_loop_reads() -> None:
    """The snapshot carries routes, labels, tools and limits, each as the rules have them."""
    snapshot = BUILTIN_RULES.snapshot(BUILTIN_TOOLS)
    assert BUILTIN_RULES.routes == snapshot.routes
    assert tuple(spec.snapshot() for spec in BUILTIN_TOOLS) == snapshot.tools
    assert ("suggest", 3, 1, "cited") == (
        snapshot.mode,
        snapshot.max_steps,
        snapshot.max_model_retries,
        snapshot.grounding,
    )


def test_a_snapshot_is_small() -> None:
    """The snapshot enters every history, so the built-in one stays near a kilobyte of JSON."""
    snapshot = BUILTIN_RULES.snapshot(BUILTIN_TOOLS)
    assert len(snapshot.model_dump_json(exclude_unset=True)) <= SNAPSHOT_BYTES


def test_a_snapshot_holds_no_owners_or_topics() -> None:
    """However many paths have owners, the snapshot does not grow."""
    many = {f"src/{number}.py": BUILTIN_RULES.default_owner for number in range(1_000)}
    assert BUILTIN_RULES.snapshot(BUILTIN_TOOLS) == _changed(owners=many).snapshot(BUILTIN_TOOLS)


def test_a_repository_may_have_a_mode_of_its_own() -> None:
    """The mode of a repository wins over that of the rules, in that repository only."""
    rules = _changed(repositories={"acme/api": Mode.APPROVE})
    modes = {
        name: rules.snapshot(BUILTIN_TOOLS, name).mode for name in ("acme/api", "acme/API", "")
    }
    assert {"acme/api": "approve", "acme/API": "suggest", "": "suggest"} == modes


def test_a_tool_that_is_off_does_not_exist_for_a_run() -> None:
    """What the rules turn off is neither offered nor looked up."""
    rules = _changed(tools_off=("apply_labels",))
    names = ["lookup_component_owner", "search_triage_policy", "read_issue"]
    assert names == [tool.name for tool in rules.snapshot(BUILTIN_TOOLS).tools]
    assert names == [spec.name for spec in rules.tools(BUILTIN_TOOLS)]


def test_only_what_is_unusual_is_written_into_histories() -> None:
    """Approvers, their number, the window and the budget are in a snapshot only if they are set."""
    usual = BUILTIN_RULES.snapshot(BUILTIN_TOOLS).model_dump(mode="json", exclude_unset=True)
    rules = _changed(approvers=("ann",), approvals_required=2, budget=BudgetLimits(tokens=5))
    snapshot = rules.snapshot(BUILTIN_TOOLS).model_dump(mode="json", exclude_unset=True)
    more = {"approvers": ["ann"], "approvals_required": 2, "budget": {"tokens": 5}}
    assert usual | more == snapshot
    assert set(usual).isdisjoint(more)


@pytest.mark.parametrize(
    ("mode", "repositories", "asked", "expected"),
    [
        ("approve", {"acme/shop": "shadow"}, "Acme/Shop", "shadow"),
        ("suggest", {"acme/shop": "approve"}, "acme/shop", "approve"),
        ("suggest", {"acme/shop": "approve"}, "Acme/Shop", "suggest"),
        ("suggest", {"acme/shop": "approve", "Acme/Shop": "shadow"}, "acme/shop", "shadow"),
        ("approve", {"acme/shop": "shadow"}, "acme/shop2", "approve"),
    ],
)
def test_a_repository_is_held_to_its_mode_in_any_letters(
    mode: str, repositories: dict[str, str], asked: str, expected: str
) -> None:
    """Another spelling gets nothing that is kept from the repository, nor what it alone has."""
    rules = _changed(mode=Mode(mode), repositories={n: Mode(m) for n, m in repositories.items()})
    assert expected == rules.snapshot(BUILTIN_TOOLS, asked).mode


def test_labels_are_proposed_in_one_order() -> None:
    """Rules that were stored and read again offer a model what those of the file do, alike."""
    stored = Rules.model_validate_json(BUILTIN_RULES.body())
    assert BUILTIN_RULES.proposable_labels() == stored.proposable_labels()
