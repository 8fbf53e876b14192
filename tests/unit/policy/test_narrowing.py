"""What new rules take away of the old ones: shown, and never in need of a person."""

from __future__ import annotations

import pytest

from tests.unit.policy.test_widening import OLD
from triage.contracts.options import Mode
from triage.policy.narrowing import Narrowing, Narrows, narrowings
from triage.policy.rules import LabelEffect, OwnerRule, Rules
from triage.policy.widening import Widens

OWNER = OwnerRule(owner="ann", allowed_labels=("bug", "api"), evidence_id="owners-api")
HAS = OLD.model_copy(update={"owners": {"api.py": OWNER}, "security_terms": ("leak",)})
FEWER_LABELS = OWNER.model_copy(update={"allowed_labels": ("api",)})
TOPIC = HAS.topics["security"]


def _less(**changes: object) -> Rules:
    return HAS.model_copy(update=changes)


@pytest.mark.parametrize(
    ("new", "gone"),
    [
        (_less(), []),
        (
            _less(labels={}),
            [
                Narrowing(Widens.LABEL, "bug", "descriptive", "none"),
                Narrowing(Widens.LABEL, "deploy", "control", "not listed"),
            ],
        ),
        (
            _less(labels={**HAS.labels, "bug": LabelEffect.CONTROL}),
            [Narrowing(Widens.EFFECT, "bug", "descriptive", "control")],
        ),
        (_less(owners={}), [Narrowing(Narrows.OWNER, "api.py", "ann: api, bug", "not listed")]),
        (
            _less(owners={"api.py": FEWER_LABELS, "new.py": OWNER}),
            [Narrowing(Narrows.OWNER, "api.py", "ann: api, bug", "ann: api")],
        ),
        (
            _less(topics={n: t for n, t in HAS.topics.items() if n != "security"}),
            [
                Narrowing(
                    Narrows.TOPIC,
                    "security",
                    f"{TOPIC.route}, {TOPIC.owner}, with review",
                    "not listed",
                )
            ],
        ),
        (
            _less(tools_off=(*HAS.tools_off, "read_issue")),
            [Narrowing(Widens.TOOL, "read_issue", "on", "off")],
        ),
        (
            _less(approvers=("ann", "eve"), approvals_required=1),
            [Narrowing(Widens.APPROVER, "bob", "may approve", "may not approve")],
        ),
        (_less(mode=Mode.SHADOW), [Narrowing(Widens.MODE, "", "suggest", "shadow")]),
        (_less(routes=HAS.routes[1:]), [Narrowing(Narrows.ROUTE, "bug", "listed", "not listed")]),
        (_less(security_terms=()), [Narrowing(Narrows.TERM, "leak", "listed", "not listed")]),
        (_less(second_opinion=f"sha256:{'1' * 64}"), []),
    ],
    ids=lambda value: "" if isinstance(value, Rules) else str([one.kind.value for one in value]),
)
def test_what_is_taken_away(new: Rules, gone: list[Narrowing]) -> None:
    """Each label, owner, topic, tool and approver that is gone or less is named; no other thing."""
    assert gone == [*narrowings(HAS, new)]
