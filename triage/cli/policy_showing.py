"""`triage policy show`: the rules in force, in a form that people can read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from triage.cli.output import Format, beside, put, put_json, put_table
from triage.cli.policy_state import PolicyState, place_of, policy_state
from triage.cli.policy_words import (
    BUILTIN,
    accepted_json,
    short,
    source_in_words,
    waiting_in_words,
    widening_json,
)
from triage.cli.running import run
from triage.policy.rules import OwnerRule, Rules, TopicRule
from triage.policy.rules_file import ANY
from triage.policy.tools import BUILTIN_TOOLS
from triage.settings import load_settings

LABEL_WIDTH: Final = 14
HOUR: Final = 3600


def show(file: Path | None, format_: Format) -> None:
    """Print the rules in force, or those of a file with whether they are.

    Raises:
        RulesFileError: the rules cannot be used.
        StorageError: it cannot be said what was accepted.
    """
    settings = load_settings()
    state = run(policy_state(settings, place_of(settings, file)))
    rules = state.standing.rules if file is None else state.written.rules
    if format_ is Format.JSON:
        put_json(_as_json(state, rules))
        return
    for label, text in (*_where_from(state, rules), *_facts(rules)):
        put(*beside(f"{label:<{LABEL_WIDTH}}", text))
    for headers, rows in _tables(rules):
        put("")
        put_table(headers, rows)


def _where_from(state: PolicyState, rules: Rules) -> Iterator[tuple[str, str]]:
    digest = short(rules.digest())
    written = str(state.written.path or BUILTIN)
    if state.is_looked_at and (state.is_written or rules is state.standing.rules):
        yield "in force", f"{source_in_words(state)}, {digest}"
    else:
        yield "not in force", f"{written}, {digest}"
    if not state.is_written:
        yield "waiting", waiting_in_words(state)


def _facts(rules: Rules) -> Iterator[tuple[str, str]]:
    yield "name", rules.name
    yield "routes", ", ".join(rules.routes)
    yield "mode", rules.mode.value
    yield "steps", f"{rules.max_steps}, and {rules.max_model_retries} retries of the model"
    yield "2nd opinion", rules.second_opinion or "none"
    yield "grounding", rules.grounding.value
    yield "approvals", _approvals(rules)
    yield "wait ends", _waiting(rules)
    yield "budget", _budget(rules)
    yield "content kept", _kept(rules)
    yield "tools on", ", ".join(spec.name for spec in rules.tools(BUILTIN_TOOLS)) or "none"
    yield "tools off", ", ".join(rules.tools_off) or "none"


def _approvals(rules: Rules) -> str:
    people = ", ".join(rules.approvers) or "anybody whose approval is trusted"
    return f"{rules.approvals_required}, by {people}"


def _waiting(rules: Rules) -> str:
    window = rules.approval_window_seconds
    ends = "as long as the mode says" if window is None else f"{window // HOUR} hours"
    reminder, escalation = rules.reminder_seconds // HOUR, rules.escalation_seconds // HOUR
    return f"{ends}; reminded after {reminder} hours, escalated after {escalation}"


def _budget(rules: Rules) -> str:
    bounds = {name: value for name, value in rules.budget.model_dump().items() if value is not None}
    return ", ".join(f"{name} {value:,}" for name, value in bounds.items()) or "no bound"


def _kept(rules: Rules) -> str:
    days = rules.evidence_retention_days
    return "as the setting says" if days is None else f"{days} days, or as the setting says if less"


Rows = Sequence[tuple[str, ...]]


def _tables(rules: Rules) -> Iterator[tuple[tuple[str, ...], Rows]]:
    yield ("LABEL", "EFFECT"), [(name, effect.value) for name, effect in rules.labels.items()]
    owners = {**rules.owners, ANY: rules.default_owner}
    yield ("PATH", "OWNER", "LABELS"), [_owner(path, owner) for path, owner in owners.items()]
    topics = {**rules.topics, ANY: rules.default_topic}
    headers = ("TOPIC", "ROUTE", "OWNER", "REVIEW", "POLICY")
    yield headers, [_topic(name, topic) for name, topic in topics.items()]
    if rules.repositories:
        modes = [(name, mode.value) for name, mode in rules.repositories.items()]
        yield ("REPOSITORY", "MODE"), modes


def _owner(path: str, owner: OwnerRule) -> tuple[str, ...]:
    return (path, owner.owner, ", ".join(owner.allowed_labels) or "-")


def _topic(name: str, topic: TopicRule) -> tuple[str, ...]:
    review = {None: "-", True: "required", False: "not required"}[topic.review_required]
    return (name, topic.route, topic.owner, review, topic.policy_id or "-")


def _as_json(state: PolicyState, rules: Rules) -> dict[str, JsonValue]:
    path = state.written.path
    return {
        "in_force": state.is_looked_at and (state.is_written or rules is state.standing.rules),
        "source": _source(state, rules),
        "file": None if path is None else str(path),
        "digest": rules.digest(),
        "accepted": accepted_json(state.accepted),
        "waiting": [widening_json(widening) for widening in state.standing.waiting],
        "tools_on": [spec.name for spec in rules.tools(BUILTIN_TOOLS)],
        "rules": rules.model_dump(mode="json"),
    }


def _source(state: PolicyState, rules: Rules) -> str:
    if rules is state.written.rules and state.written.path is not None:
        return "file"
    was_accepted = state.accepted.acceptance is not None and rules is state.accepted.rules
    return "accepted" if was_accepted else "builtin"
