"""Well-known actions that look at labels, and the inputs in which they are told which."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from triage.automation.nodes import Listed, Node, Table, Text
from triage.automation.patterns import pattern
from triage.automation.uses import LabelUse, Match

TOLD: Final = "an action is told to look for it"
BY_DEFAULT: Final = "an action looks for it unless told otherwise"
UNKNOWN_LABELS: Final = "an action is told labels in a way that cannot be made out"


@dataclass(frozen=True, slots=True)
class Action:
    """An action that looks at labels.

    Attributes:
        inputs: under ``with``, each with the labels that it means where it is not given.
        variables: the same under ``env``.
        patterns: inputs that hold a regular expression.
    """

    inputs: Mapping[str, tuple[str, ...]]
    variables: Mapping[str, tuple[str, ...]]
    patterns: frozenset[str] = frozenset()


def _none(*names: str) -> dict[str, tuple[str, ...]]:
    return dict.fromkeys(names, ())


_STALE: Final = _none(
    "exempt-issue-labels",
    "exempt-pr-labels",
    "only-labels",
    "only-issue-labels",
    "only-pr-labels",
    "any-of-labels",
    "any-of-issue-labels",
    "any-of-pr-labels",
)
_LOCK: Final = _none(
    *(
        f"{what}-{how}-{kind}-labels"
        for what in ("exclude", "include")
        for how in ("any", "all")
        for kind in ("issue", "pr", "discussion")
    )
)
_BACKPORT: Final = Action(
    {"label_pattern": ("^backport ([^ ]+)$",)}, {}, patterns=frozenset({"label_pattern"})
)
ACTIONS: Final[Mapping[str, Action]] = {
    "actions/stale": Action(
        {**_STALE, "stale-issue-label": ("Stale",), "stale-pr-label": ("Stale",)}, {}
    ),
    "actions/add-to-project": Action(_none("labeled"), {}),
    "dessant/lock-threads": Action(_LOCK, {}),
    "dessant/support-requests": Action({"support-label": ("support",)}, {}),
    "korthout/backport-action": _BACKPORT,
    "tibdex/backport": _BACKPORT,
    "mheap/github-action-required-labels": Action(_none("labels"), {}),
    "jesusvasquez333/verify-pr-label-action": Action(_none("valid-labels", "invalid-labels"), {}),
    "yogevbd/enforce-label-action": Action(
        _none("REQUIRED_LABELS_ANY", "REQUIRED_LABELS_ALL", "BANNED_LABELS"), {}
    ),
    "pascalgn/automerge-action": Action(
        {}, {"MERGE_LABELS": ("automerge",), "UPDATE_LABELS": ("automerge",)}
    ),
}


def action_uses(file: str, node: Node) -> Iterator[LabelUse]:
    """Yield the labels that known actions anywhere below a node look for."""
    match node:
        case Table(pairs):
            yield from _step(file, node)
            for _, value in pairs:
                yield from action_uses(file, value)
        case Listed(items):
            for item in items:
                yield from action_uses(file, item)
        case Text():
            return


def _step(file: str, step: Table) -> Iterator[LabelUse]:
    uses = step.get("uses")
    if not isinstance(uses, Text):
        return
    action = ACTIONS.get(uses.value.partition("@")[0].strip().lower())
    if action is None:
        return
    for name, known in (("with", action.inputs), ("env", action.variables)):
        given = step.get(name)
        table = given if isinstance(given, Table) else Table((), uses.line)
        for key, defaults in known.items():
            value = table.get(key)
            is_pattern = key in action.patterns
            if value is None:
                found = [(uses.line, label, BY_DEFAULT) for label in defaults]
            else:
                found = [(line, label, TOLD) for line, label in _labels(value, is_pattern)]
            for line, label, why in found:
                yield _use(file, line, label, why, is_pattern=is_pattern)


def _labels(value: Node, is_pattern: bool) -> Iterator[tuple[int, str]]:  # noqa: FBT001 - private
    """Yield each label in a list that is written as one text, with its line."""
    if not isinstance(value, Text):
        return
    for number, line in enumerate(value.value.splitlines()):
        for part in [line] if is_pattern else re.split(r",", line):
            label = part.strip().removeprefix("!").strip()
            if label:
                yield value.line + value.is_block + number, label


def _use(file: str, line: int, label: str, why: str, *, is_pattern: bool) -> LabelUse:
    if "${{" in label:
        return LabelUse(file, line, Match.ANY, "", UNKNOWN_LABELS)
    match, text = pattern(label) if is_pattern else (Match.EXACT, label)
    return LabelUse(file, line, match, text, UNKNOWN_LABELS if match is Match.ANY else why)
