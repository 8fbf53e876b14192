"""A rules file: what people write becomes rules, or a list of mistakes with their lines."""

from __future__ import annotations

import json
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.contracts.strategies import PROPERTY
from triage.contracts.options import BudgetLimits, Grounding, Mode
from triage.policy import toml_lines
from triage.policy.rules import DailyBudget, LabelEffect, OwnerRule, TopicRule
from triage.policy.rules_file import (
    MAX_FILE_BYTES,
    RulesFile,
    RulesFileError,
    read_rules,
)
from triage.policy.rules_findings import MAX_FINDINGS
from triage.policy.tools import BUILTIN_TOOLS

TOOLS = [spec.name for spec in BUILTIN_TOOLS]
WHOLE = """\
model = "rules"                       # a setting: not of the rules

[policy]
name = "acme"
routes = ["bug", "documentation", "security_review"]
mode = "shadow"
max_steps = 5
max_model_retries = 0
max_corrections = 1
fallback_models = ["openai:gpt-5"]
second_opinion = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
grounding = "entailed"
evidence_retention_days = 7

[approvals]
required = 2
approvers = ["ann", "@bob"]
window_hours = 48
reminder_hours = 12
escalation_hours = 24

[budget]
tokens = 10000

[daily_budget]
author_tokens = 900

[labels]
bug = "descriptive"
"good first issue" = "descriptive"
"safe to test" = "control"

[owners."backend/api.py"]
owner = "backend-team"
labels = ["bug"]
evidence_id = "owners-api"

[owners."docs/**"]
owner = "docs-team"

[owners."*"]
owner = "everybody"

[topics.security]
route = "security_review"
owner = "security-team"
review_required = true
policy_id = "SEC-1"

[repositories]
"acme/api" = "approve"

[tools]
search_triage_policy = false
lookup_component_owner = true
"""


def _read(text: str) -> RulesFile:
    return read_rules(text, TOOLS)


def _mistakes(text: str) -> list[str]:
    with pytest.raises(RulesFileError) as error:
        _read(text)
    return [str(finding) for finding in error.value.findings]


def test_every_table_becomes_rules() -> None:
    """All that can be written is read, and settings beside it are left alone."""
    file = _read(WHOLE)
    rules = file.rules
    assert () == file.warnings
    assert ("acme", Mode.SHADOW, 5, 0, Grounding.ENTAILED, 7) == (
        rules.name,
        rules.mode,
        rules.max_steps,
        rules.max_model_retries,
        rules.grounding,
        rules.evidence_retention_days,
    )
    assert (2, ("ann", "@bob"), 48 * 3600, 12 * 3600, 24 * 3600) == (
        rules.approvals_required,
        rules.approvers,
        rules.approval_window_seconds,
        rules.reminder_seconds,
        rules.escalation_seconds,
    )
    assert (BudgetLimits(tokens=10_000), DailyBudget(author_tokens=900)) == (
        rules.budget,
        rules.daily_budget,
    )
    assert (1, ("openai:gpt-5",)) == (rules.max_corrections, rules.fallback_models)
    assert f"sha256:{'0' * 64}" == rules.second_opinion
    assert ("bug", "good first issue") == rules.proposable_labels()
    assert {"acme/api": Mode.APPROVE} == rules.repositories
    assert ("search_triage_policy",) == rules.tools_off


def test_owners_and_topics_have_ids_that_can_be_cited() -> None:
    """An id that is given stays, a plain key makes a readable one, any other key a digest."""
    rules = _read(WHOLE).rules
    assert (
        OwnerRule(owner="backend-team", allowed_labels=("bug",), evidence_id="owners-api")
        == rules.owners["backend/api.py"]
    )
    assert rules.owners["docs/**"].evidence_id.startswith("owners-")
    assert "owners-default" == rules.default_owner.evidence_id
    assert (
        TopicRule(
            route="security_review",
            owner="security-team",
            evidence_id="policy-security",
            policy_id="SEC-1",
            review_required=True,
        )
        == rules.topics["security"]
    )
    assert "security_review" == rules.default_topic.route


def test_an_empty_file_permits_nothing_to_be_written() -> None:
    """Without labels there is nothing that a model could propose; nothing comes from elsewhere."""
    rules = _read("").rules
    assert ({}, {}, {}) == (rules.labels, rules.owners, rules.topics)
    assert Mode.SUGGEST is rules.mode


def test_a_label_of_unknown_effect_counts_as_control() -> None:
    """It is never proposed, and the file's reader is told."""
    file = _read('[labels]\nbug = "descriptive"\ndeploy = "magic"\n')
    assert LabelEffect.CONTROL is file.rules.labels["deploy"]
    assert ("bug",) == file.rules.proposable_labels()
    [warning] = map(str, file.warnings)
    assert warning.startswith("line 3: labels.deploy: has an unknown effect and counts as control")


MISTAKES = {
    "cut off": (
        "a = [",
        ["the file: is not TOML at end of document (a value is missing, or is text without"],
    ),
    "not TOML": (
        '[policy\nname = "x"\n',
        ["line 1: the file: is not TOML (there is no ']' at the end of a table's name); correct"],
    ),
    "a table": ("\n[lables]\nbug = 1\n", ["line 2: lables: is not known; known are approvals"]),
    "a key": ('[policy]\nmod = "shadow"\n', ["line 2: policy.mod: is not known; known are evid"]),
    "a mode": ('[policy]\nmode = "yolo"\n', ["line 2: policy.mode: must be shadow, suggest or"]),
    "a number": ("[policy]\nmax_steps = 101\n", ["line 2: policy.max_steps: must be at most 100"]),
    "a boolean": ("[policy]\nmax_steps = true\n", ["line 2: policy.max_steps: must be a whole"]),
    "a date": ("[budget]\ntokens = 2026-01-01\n", ["line 2: budget.tokens: must be a whole num"]),
    "no list": ('[policy]\nroutes = "bug"\n', ["line 2: policy.routes: must be a list"]),
    "no security route": (
        '[policy]\nroutes = ["bug"]\n',
        ["line 2: policy.routes: lacks security_review; add security_review"],
    ),
    "an owner without name": ('[owners."a"]\nlabels = []\n', ["line 1: owners.a.owner: is miss"]),
    "an unlisted label": (
        '[labels]\nci = "control"\n[owners."a/b"]\nowner = "x"\nlabels = ["ci", "bug"]\n',
        [
            'line 5: owners."a/b".labels: names the label bug, which may not be proposed',
            'line 5: owners."a/b".labels: names the label ci, which may not be proposed',
        ],
    ),
    "two spellings": (
        '[labels]\nbug = "descriptive"\nBUG = "control"\n',
        ["line 3: labels.BUG: is the label bug in other letters; trackers take them for one"],
    ),
    "a long label": (
        f'[labels]\n"{"x" * 51}" = "control"\n',
        [f"line 2: labels.{'x' * 51}: has more than 50 characters"],
    ),
    "an unknown route": (
        '[topics.x]\nroute = "vip"\nowner = "o"\n',
        ["line 2: topics.x.route: is no route of [policy]; known are bug"],
    ),
    "an unknown tool": (
        "[tools]\nrun_shell = true\n",
        ["line 2: tools.run_shell: is no tool; known are apply_labels, lookup_component_owner"],
    ),
    "too few approvers": (
        '[approvals]\nrequired = 2\napprovers = ["ann"]\n',
        ["line 2: approvals.required: is more than there are approvers; name more"],
    ),
    "a repository's mode": (
        '[repositories]\n"acme/api" = "on"\n',
        ['line 2: repositories."acme/api": must be shadow, suggest or approve'],
    ),
    "a repository in other letters": (
        '[repositories]\n"acme/api" = "approve"\n"Acme/API" = "shadow"\n',
        ['line 3: repositories."Acme/API": is the repository "acme/api" in other letters; keep'],
    ),
    "a name to be escaped": (
        '[owners."a\\u001bb"]\nowner = 7\n',
        [
            'line 1: owners."a\\u001bb": holds a character that does not show',
            'line 2: owners."a\\u001bb".owner: must be text',
        ],
    ),
    "a date for a text": ("[policy]\nname = 2026-01-01\n", ["line 2: policy.name: must be text"]),
    "a name with NUL": (
        '[policy]\nname = "a\\u0000b"\n',
        ["line 2: policy.name: holds a character that does not show; take it out"],
    ),
    "a label with a break": (
        '[labels]\n"bug\\u0085" = "descriptive"\n',
        ['line 2: labels."bug\\u0085": holds a character that does not show'],
    ),
    "one approver thrice": (
        '[approvals]\nrequired = 2\napprovers = ["eve", "EVE", "@eve"]\n',
        [
            'line 3: approvals.approvers: names eve again as "@eve"; one person counts once',
            "line 3: approvals.approvers: names eve again as EVE; one person counts once",
        ],
    ),
    "an approver without name": (
        '[approvals]\napprovers = ["@"]\n',
        ["line 2: approvals.approvers: names nobody; write a login"],
    ),
    "5,000 digits": (
        f"[budget]\ntokens = {'9' * 5_000}\n",
        ["line 2: the file: is not TOML (a number has too many digits); correct it"],
    ),
    "a number beyond writing": (
        f"[budget]\ntokens = 0x{'f' * 5_000}\n",
        ["line 2: budget.tokens: must be a whole number"],
    ),
    "5,000 parts": (
        f"\na{'.a' * 5_000} = 1\n",
        ["line 2: the file: is not TOML (a key has more than 64 parts); correct it"],
    ),
    "deep arrays": (
        f"[policy]\nname = {'[' * 5_000}{']' * 5_000}\n",
        ["the file: is not TOML (it is nested too deep); correct it"],
    ),
    "deep tables": (
        f"x = {(('{' + 'a.' * 62 + 'a = ') * 60)}1{'}' * 60}\n",
        ["the file: holds no rules; no rule is as deep, or as large"],
    ),
    "arrays deeper than JSON is read": (
        f"policy = {'[' * 250}{']' * 250}\n",
        ["the file: holds no rules; no rule is as deep, or as large"],
    ),
    "too large": ("#" * (MAX_FILE_BYTES + 1), ["the file: is larger than 1048576 bytes"]),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named_with_its_line(name: str) -> None:
    """Each kind of mistake is found where it stands, with what to do about it."""
    text, expected = MISTAKES[name]
    found = _mistakes(text)
    assert [True] * len(expected) == [
        one.startswith(start) for one, start in zip(found, expected, strict=True)
    ], found


def test_all_mistakes_are_named_at_once() -> None:
    """A person who mends a file need not run the check once a mistake."""
    text = '[policy]\nmode = "x"\n[budget]\ntokens = -1\n[approvals]\nrequired = 0\n'
    assert 3 == len(_mistakes(text))


def test_thousands_of_mistakes_are_told_as_a_few_and_their_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is wrong with a file fits on a page, and its lines are looked through once."""
    looked = Mock(wraps=toml_lines._keys)
    monkeypatch.setattr(toml_lines, "_keys", looked)
    found = _mistakes("".join(f"[x{number}]\n" for number in range(3_000)))
    assert (1, MAX_FINDINGS + 1) == (looked.call_count, len(found))
    assert "line 1: x0: is not known" == found[0].partition(";")[0]
    assert "the file: has 2,950 more; begin with these" == found[-1]


def test_a_usable_file_is_read_in_one_go_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand oddities cost one look at the lines, and as few are told."""
    looked = Mock(wraps=toml_lines._keys)
    monkeypatch.setattr(toml_lines, "_keys", looked)
    file = _read("[labels]\n" + "".join(f'"l{number}" = "x"\n' for number in range(1_000)))
    assert (1, MAX_FINDINGS + 1) == (looked.call_count, len(file.warnings))


WARNED = {
    "escalation": ("reminder_hours = 48\n", "line 1: approvals.escalation_hours: is not after"),
    "window": ("window_hours = 20\n", "line 2: approvals.window_hours: is not after the reminder"),
}


@pytest.mark.parametrize("name", WARNED)
def test_what_may_not_be_meant_is_only_said(name: str) -> None:
    """Hours in an odd order are permitted, and named."""
    keys, start = WARNED[name]
    [warning] = _read(f"[approvals]\n{keys}").warnings
    assert str(warning).startswith(start)


@PROPERTY
@given(st.text(max_size=200) | st.sampled_from([WHOLE]).flatmap(st.sampled_from))
def test_any_text_is_rules_or_mistakes(text: str) -> None:
    """Whatever a file holds, it is read or refused in words; a label never widens by accident."""
    try:
        read: RulesFile | RulesFileError = _read(text)
    except RulesFileError as error:
        read = error
    routes = read.rules.routes if isinstance(read, RulesFile) else ("security_review",)
    assert "security_review" in routes
    assert isinstance(read, RulesFile) or read.findings


@PROPERTY
@given(st.dictionaries(st.text(min_size=1, max_size=20), st.text(max_size=12), max_size=5))
def test_only_the_word_descriptive_makes_a_label_proposable(labels: dict[str, str]) -> None:
    """Any other word, in any case and spelling, leaves a label out of a model's reach."""
    lines = [f"{json.dumps(name)} = {json.dumps(effect)}" for name, effect in labels.items()]
    try:
        rules = _read("[labels]\n" + "\n".join(lines)).rules
    except RulesFileError:
        return
    meant = {name for name, effect in labels.items() if effect == "descriptive"}
    assert meant >= set(rules.proposable_labels())
