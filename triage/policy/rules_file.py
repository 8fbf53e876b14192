"""Rules that people write: the tables of a TOML file, checked, become `Rules`.

Why it exists: what a maintainer meant must be what the loop is held to, or nothing. So every table
and key is known, every mistake is named with its line and what to do, and a label whose effect is
not known for sure counts as one that triggers automation. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from triage.contracts.base import MAX_LABEL_CHARS, Contract
from triage.contracts.canonical import digest_of
from triage.contracts.logins import folded
from triage.contracts.options import BudgetLimits
from triage.contracts.repositories import folded_repository
from triage.contracts.wording import in_words
from triage.policy.rules import (
    DailyBudget,
    LabelEffect,
    OwnerRule,
    Rules,
    TopicRule,
)
from triage.policy.rules_findings import RuleFinding as RuleFinding
from triage.policy.rules_findings import RulesFileError as RulesFileError
from triage.policy.rules_findings import bounded
from triage.policy.rules_rest import NO_DOUBT, Doubt, filled, path_of, without
from triage.policy.rules_shape import (
    WrittenApprovals,
    WrittenFile,
    WrittenOwner,
    WrittenPolicy,
    WrittenTopic,
)
from triage.policy.rules_values import Path, alike, as_json, unseen
from triage.policy.security import SECURITY_ROUTE
from triage.policy.toml_lines import TomlLines
from triage.policy.toml_text import TomlError, toml_table

TABLES: Final = frozenset(
    {
        "approvals",
        "budget",
        "daily_budget",
        "labels",
        "owners",
        "policy",
        "repositories",
        "tools",
        "topics",
    }
)
"""The tables that a rules file may hold."""

ANY: Final = "*"
"""The key of the owner, or of the topic, that stands for all that are not named."""

ROUTES: Final = ("policy", "routes")
MAX_FILE_BYTES: Final = 1_048_576


@dataclass(frozen=True, slots=True)
class RulesFile:
    """Rules as a file holds them, and what is odd about it."""

    rules: Rules
    warnings: tuple[RuleFinding, ...]


def read_rules(text: str, tools: Collection[str]) -> RulesFile:
    """Read a rules file.

    Args:
        text: the file.
        tools: the names of the registered tools.

    Raises:
        RulesFileError: with every mistake that was found, each with its line.
    """
    table = _table(text)
    problems = _Problems(text)
    try:
        strange = {problems.at(path, *_UNSEEN) for path in unseen(table)}
        file = _file(table)
    except ValidationError as error:
        raise _all_that_is_wrong(table, problems, error, tools, strange) from None
    except (ValueError, RecursionError):
        raise RulesFileError(_NO_RULES) from None
    odd = sorted(_oddities(file, problems))
    if found := sorted({*strange, *_contradictions(file, problems, tools)}):
        raise RulesFileError(*found, warnings=odd)
    return RulesFile(_rules(file), bounded(odd))


_UNSEEN: Final = ("holds a character that does not show", "take it out")
_NO_RULES: Final = RuleFinding(0, "the file", "holds no rules", "no rule is as deep, or as large")


def _file(table: dict[str, Any]) -> WrittenFile:
    return WrittenFile.model_validate_json(as_json(table))


def _all_that_is_wrong(
    table: dict[str, Any],
    problems: _Problems,
    error: ValidationError,
    tools: Collection[str],
    strange: set[RuleFinding],
) -> RulesFileError:
    """Return the mistakes of shape, and what is wrong and odd beside them."""
    found, wrong = set(strange), list[Path]()
    rest: WrittenFile | None = None
    for mend in (filled, without, without):
        paths = [path_of(one["loc"]) for one in error.errors()]
        if not all(paths):
            # It is nested deeper than is read, so nothing of it was looked at.
            return RulesFileError(_NO_RULES)
        found.update(problems.of(error))
        wrong += paths
        table = mend(table, paths)
        try:
            rest = _file(table)
            break
        except ValidationError as left:
            error = left
    if rest is None:
        return RulesFileError(*sorted(found))
    doubt = Doubt.of(wrong, table, TABLES)
    found.update(_contradictions(rest, problems, tools, doubt))
    return RulesFileError(*sorted(found), warnings=sorted(_oddities(rest, problems, doubt)))


def _table(text: str) -> dict[str, Any]:
    if len(text.encode("utf-8", "replace")) > MAX_FILE_BYTES:
        message, hint = f"is larger than {MAX_FILE_BYTES} bytes", "split the repositories"
        raise RulesFileError(RuleFinding(0, "the file", message, hint))
    try:
        table = toml_table(text)
    except TomlError as error:
        told = error.told(with_line=False)
        finding = RuleFinding(error.line, "the file", told, "correct it")
        raise RulesFileError(finding) from None
    return {name: value for name, value in table.items() if _is_rules(name, value)}


def _is_rules(name: str, value: object) -> bool:
    """Settings may stand in the same file; they are no tables."""
    return name in TABLES or isinstance(value, dict | list)


class _Problems:
    """Findings about one file."""

    def __init__(self, text: str) -> None:
        self._lines = TomlLines(text)

    def at(self, path: tuple[str | int, ...], message: str, hint: str) -> RuleFinding:
        """Return a finding about a key."""
        where = ".".join(map(_shown, path)) or "the file"
        return RuleFinding(self._lines.of(path) or 0, where, message, hint)

    def of(self, error: ValidationError) -> Iterator[RuleFinding]:
        """Yield what is wrong with the file's shape."""
        for problem in error.errors(include_url=False, include_input=False):
            yield self._of(dict(problem))

    def _of(self, problem: dict[str, Any]) -> RuleFinding:
        path = path_of(problem["loc"])
        if problem["type"] == "extra_forbidden":
            known = TABLES if len(path) == 1 else _known_keys(path[0])
            return self.at(path, "is not known", f"known are {', '.join(sorted(known))}")
        return self.at(path, in_words(problem), "correct the value")


_MODELS: Final[dict[str | int, type[Contract]]] = {
    "policy": WrittenPolicy,
    "approvals": WrittenApprovals,
    "budget": BudgetLimits,
    "daily_budget": DailyBudget,
    "owners": WrittenOwner,
    "topics": WrittenTopic,
}
_NAMED_BY: Final = {"owners": "PATH"}


def written_keys() -> Iterator[str]:
    """Yield each key that a file may hold, such as ``policy.mode`` and ``owners.PATH.owner``."""
    for table, field in WrittenFile.model_fields.items():
        inside = "" if isinstance(field.default, Contract) else f".{_NAMED_BY.get(table, 'NAME')}"
        keys = [f".{key}" for key in _known_keys(table)] or [""]
        yield from (f"{table}{inside}{key}" for key in keys)


def _known_keys(table: str | int) -> Collection[str]:
    return _MODELS[table].model_fields if table in _MODELS else ()


def _shown(part: str | int) -> str:
    """Show a name as TOML writes it; one with strange characters, escaped."""
    name = str(part)
    return name if re.fullmatch(r"[A-Za-z0-9_-]{1,100}", name) else json.dumps(name[:100])


def _contradictions(
    file: WrittenFile, problems: _Problems, tools: Collection[str], doubt: Doubt = NO_DOUBT
) -> Iterator[RuleFinding]:
    """Yield what no set of rules may say, as far as what was meant is not in doubt."""
    if SECURITY_ROUTE not in file.policy.routes and not doubt.about(ROUTES):
        hint = f"add {SECURITY_ROUTE}: security reports always have a place to go"
        yield problems.at(ROUTES, f"lacks {SECURITY_ROUTE}", hint)
    yield from _bad_labels(file, problems)
    yield from _bad_owners(file, problems, doubt)
    yield from _bad_topics(file, problems, doubt)
    for name, first in alike(file.repositories, folded_repository):
        message = f"is the repository {_shown(first)} in other letters"
        yield problems.at(("repositories", name), message, "keep one")
    for name in file.tools:
        if name not in tools:
            yield problems.at(
                ("tools", name), "is no tool", f"known are {', '.join(sorted(tools))}"
            )
    yield from _bad_approvers(file.approvals, problems, doubt)


def _bad_approvers(
    approvals: WrittenApprovals, problems: _Problems, doubt: Doubt
) -> Iterator[RuleFinding]:
    """Yield whoever would count as two people, and a number that they cannot reach."""
    path, required = ("approvals", "approvers"), ("approvals", "required")
    if doubt.about(path):
        return
    for name, first in alike(approvals.approvers, folded):
        message = f"names {_shown(first)} again as {_shown(name)}"
        yield problems.at(path, message, "one person counts once: keep one")
    if not all(map(folded, approvals.approvers)):
        yield problems.at(path, "names nobody", "write a login")
    if 0 < len(approvals.approvers) < approvals.required and not doubt.about(required):
        hint = "name more approvers or require fewer"
        yield problems.at(required, "is more than there are approvers", hint)


def _bad_owners(file: WrittenFile, problems: _Problems, doubt: Doubt) -> Iterator[RuleFinding]:
    """Yield owners that name a label which does not exist or may not be proposed."""
    for path, owner in file.owners.items():
        for label in owner.labels:
            is_known = _effect(file.labels.get(label)) is LabelEffect.DESCRIPTIVE
            if not is_known and not doubt.about(("labels", label)):
                hint = f'list it under [labels] as "{LabelEffect.DESCRIPTIVE}", or take it out here'
                message = f"names the label {_shown(label)}, which may not be proposed"
                yield problems.at(("owners", path, "labels"), message, hint)


def _bad_topics(file: WrittenFile, problems: _Problems, doubt: Doubt) -> Iterator[RuleFinding]:
    """Yield topics that name a route which does not exist."""
    for name, topic in file.topics.items():
        path = ("topics", name, "route")
        if topic.route not in file.policy.routes and not doubt.about(ROUTES, path):
            hint = f"known are {', '.join(file.policy.routes)}"
            yield problems.at(path, "is no route of [policy]", hint)


def _bad_labels(file: WrittenFile, problems: _Problems) -> Iterator[RuleFinding]:
    for label in file.labels:
        if len(label) > MAX_LABEL_CHARS:
            message = f"has more than {MAX_LABEL_CHARS} characters"
            yield problems.at(("labels", label), message, "no tracker has such a label")
    for label, first in alike(file.labels, str.casefold):
        message = f"is the label {_shown(first)} in other letters"
        yield problems.at(("labels", label), message, "trackers take them for one: keep one")


def _oddities(
    file: WrittenFile, problems: _Problems, doubt: Doubt = NO_DOUBT
) -> Iterator[RuleFinding]:
    """Yield what is permitted and may not be meant."""
    for label, effect in file.labels.items():
        if effect not in set(LabelEffect):
            known = " or ".join(f'"{effect}"' for effect in LabelEffect)
            yield problems.at(
                ("labels", label), "has an unknown effect and counts as control", f"write {known}"
            )
    hours = file.approvals
    reminder, escalation, window = (
        ("approvals", f"{name}_hours") for name in ("reminder", "escalation", "window")
    )
    is_late = not hours.reminder_hours < hours.escalation_hours
    if is_late and not doubt.about(reminder, escalation):
        yield problems.at(escalation, "is not after the reminder", "escalate after the reminder")
    is_short = hours.window_hours is not None and hours.window_hours <= hours.reminder_hours
    if is_short and not doubt.about(reminder, window):
        hint = "the wait ends before anybody is reminded"
        yield problems.at(window, "is not after the reminder", hint)


def _effect(written: str | None) -> LabelEffect:
    """Return a label's effect; what is unknown may trigger anything."""
    known = {effect.value: effect for effect in LabelEffect}
    return known.get(written or "", LabelEffect.CONTROL)


def _rules(file: WrittenFile) -> Rules:
    policy, approvals = file.policy, file.approvals
    hours = approvals.window_hours
    return Rules(
        **policy.model_dump(include=set(WrittenPolicy.model_fields)),
        labels={name: _effect(effect) for name, effect in file.labels.items()},
        owners={path: _owner(path, o) for path, o in file.owners.items() if path != ANY},
        default_owner=_owner(ANY, file.owners.get(ANY, WrittenOwner(owner="triage-team"))),
        topics={name: _topic(name, t) for name, t in file.topics.items() if name != ANY},
        default_topic=_topic(
            ANY, file.topics.get(ANY, WrittenTopic(route=SECURITY_ROUTE, owner="triage-team"))
        ),
        reminder_seconds=approvals.reminder_hours * 3600,
        escalation_seconds=approvals.escalation_hours * 3600,
        approval_window_seconds=None if hours is None else hours * 3600,
        approvals_required=approvals.required,
        approvers=approvals.approvers,
        comment_rights=approvals.comment_rights,
        repositories=file.repositories,
        tools_off=tuple(name for name, is_on in file.tools.items() if not is_on),
        budget=file.budget,
        daily_budget=file.daily_budget,
    )


def _owner(path: str, given: WrittenOwner) -> OwnerRule:
    return OwnerRule(
        owner=given.owner,
        allowed_labels=given.labels,
        evidence_id=given.evidence_id or _evidence_id("owners", path),
    )


def _topic(name: str, given: WrittenTopic) -> TopicRule:
    return TopicRule(
        route=given.route,
        owner=given.owner,
        evidence_id=given.evidence_id or _evidence_id("policy", name),
        policy_id=given.policy_id,
        review_required=given.review_required,
    )


def _evidence_id(kind: str, key: str) -> str:
    """Return the id of an entry: readable where the key is a plain word, else by digest."""
    if key == ANY:
        return f"{kind}-default"
    if re.fullmatch(r"[a-z0-9][a-z0-9-]{0,40}", key) and key != "default":
        return f"{kind}-{key}"
    return f"{kind}-{digest_of(key).removeprefix('sha256:')[:12]}"
