"""Equal rules of different runs are one object, that no run can change."""

from __future__ import annotations

import pytest

from triage.contracts.options import Mode, RunOptions
from triage.contracts.payloads import NOT_PINNED, PolicySnapshot, Provenance, RunContext
from triage.converter import data_converter
from triage.policy.rules import BUILTIN_RULES
from triage.policy.tools import BUILTIN_TOOLS
from workflows.start import settle

POLICY = BUILTIN_RULES.snapshot(BUILTIN_TOOLS)
PROVENANCE = Provenance(**{**NOT_PINNED.model_dump(), "policy": "sha256:1"})


def _pinned(policy: PolicySnapshot, digest: str = "sha256:1") -> RunContext:
    """Return a context as it comes out of a history."""
    context = RunContext(policy=policy, provenance=PROVENANCE, request_digest=digest)
    converter = data_converter.payload_converter
    return converter.from_payload(converter.to_payload(context), RunContext)


def test_two_runs_share_their_rules() -> None:
    """Runs with the same rules have one copy of them, and each its own request."""
    one, other = _pinned(POLICY), _pinned(POLICY, "sha256:2")
    assert one.policy is other.policy
    assert one.provenance is other.provenance
    assert ("sha256:1", "sha256:2") == (one.request_digest, other.request_digest)


def test_runs_under_the_same_rules_share_what_they_may_do() -> None:
    """The routes, labels and effects that a run may use are sets that all such runs have."""
    one, other = (settle(RunOptions(mode=Mode.APPROVE), POLICY) for _ in range(2))
    assert one.routes is other.routes
    assert one.labels is other.labels
    assert one.permitted_effects is other.permitted_effects


@pytest.mark.parametrize("change", [{"max_steps": 9}, {"mode": "shadow"}, {"max_corrections": 0}])
def test_other_rules_stay_other_rules(change: dict[str, object]) -> None:
    """Rules that differ in anything, be it that a default was said, come out as they went in."""
    changed = POLICY.model_copy(update=change)
    one, other = _pinned(POLICY), _pinned(changed)
    assert [POLICY, changed] == [one.policy, other.policy]
    assert one.policy is not other.policy


def test_sharing_changes_nothing_that_is_written() -> None:
    """What was decoded is written again to the letter, as a run does that continues as new."""
    context = RunContext(policy=POLICY, request_digest="sha256:1")
    decoded = data_converter.payload_converter.from_payload(
        data_converter.payload_converter.to_payload(context), RunContext
    )
    written = context.model_dump_json(exclude_unset=True)
    assert written == decoded.model_dump_json(exclude_unset=True)


def test_what_is_shared_cannot_be_changed() -> None:
    """No run can add a label or an argument to the rules of another."""
    policy = _pinned(POLICY).policy
    assert policy is not None
    with pytest.raises(TypeError, match="cannot be changed"):
        policy.labels["descriptive"] = ("anything",)
    with pytest.raises(TypeError, match="cannot be changed"):
        policy.tools[0].arguments.clear()
