"""Which labels a workflow of GitHub's listens to: what starts it, and what its conditions ask."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from triage.automation.actions import action_uses
from triage.automation.conditions import Asked, Moment, ask
from triage.automation.expressions import ExpressionError, inserted
from triage.automation.nodes import Listed, Node, Table, Text
from triage.automation.uses import LabelUse, Match

RUNS_FOR_ALL: Final = "a job runs whichever label is added"
ASKS: Final = "a condition asks for it"
ASKS_OPEN: Final = "a condition depends on labels in a way that cannot be made out"
PASSES_ON: Final = "labels are passed on to where they cannot be followed"
SCRIPT: Final = "a script reads labels"
UNREADABLE: Final = "an expression about labels cannot be read"

_LABELED: Final = frozenset({"labeled", "unlabeled"})
_ALL_TYPES: Final = frozenset({"issues", "discussion"})
"""Events that come for each of their types where none is named."""

_EVENTS: Final = _ALL_TYPES | {"pull_request", "pull_request_target"}
_MENTIONS: Final = re.compile(r"label", re.IGNORECASE)
_SCRIPT: Final = re.compile(
    r"(?:payload|event)\??\.(?:label\b|(?:issue|pull_request)\??\.labels\b)|(?<!\w)\.label\.name"
)
_STATUS: Final = re.compile(r"\b(?:always|failure|cancelled)\s*\(", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Found:
    """Something in a job: `asked` of it, at a line."""

    line: int
    asked: Asked
    why: str


def workflow_uses(file: str, document: Node) -> Iterator[LabelUse]:
    """Yield each place where a workflow, or a composite action, looks at labels."""
    if not isinstance(document, Table):
        return
    moment = _moment(document.get("on"))
    jobs = document.get("jobs")
    if isinstance(jobs, Table):
        yield from _jobs(file, jobs, moment)
    for name in ("runs", "env"):
        part = document.get(name)
        if part is not None:
            yield from _told(file, _inside(part, moment), is_bounded=False)
    yield from action_uses(file, document)


def _moment(on: Node | None) -> Moment:
    """Return for which events and actions a workflow starts when a label is added or removed."""
    actions: dict[str, frozenset[str]] = {}
    for event, config in _triggers(on):
        name = event.value.lower()
        types = config.get("types") if isinstance(config, Table) else None
        named = _named(types)
        heard = _LABELED & named if types is not None else _LABELED
        if name in _EVENTS and heard and (types is not None or name in _ALL_TYPES):
            actions[name] = heard
    return Moment(frozenset(actions), frozenset().union(*actions.values()))


def _triggers(on: Node | None) -> Iterator[tuple[Text, Node | None]]:
    match on:
        case Text():
            yield on, None
        case Listed(items):
            yield from ((item, None) for item in items if isinstance(item, Text))
        case Table(pairs):
            yield from pairs
        case None:
            return


def _named(types: Node | None) -> frozenset[str]:
    items = types.items if isinstance(types, Listed) else (types,)
    return frozenset(item.value.lower() for item in items if isinstance(item, Text))


def _jobs(file: str, jobs: Table, moment: Moment) -> Iterator[LabelUse]:
    named = {key.value: job for key, job in jobs.pairs if isinstance(job, Table)}
    for key, job in jobs.pairs:
        if not isinstance(job, Table):
            continue
        is_bounded = _is_bounded(key.value, named, moment, frozenset())
        if moment.events and not is_bounded:
            condition = job.get("if")
            line = condition.line if condition is not None else key.line
            yield LabelUse(file, line, Match.ANY, "", RUNS_FOR_ALL)
        yield from _told(file, _inside(job, moment), is_bounded=bool(moment.events) and is_bounded)


def _is_bounded(name: str, jobs: dict[str, Table], moment: Moment, above: frozenset[str]) -> bool:
    """Whether a job does not run for a label that nothing names."""
    job = jobs.get(name)
    if job is None or name in above:
        return False
    condition = job.get("if")
    if isinstance(condition, Text) and _holds(condition, moment) is False:
        return True
    if not (isinstance(condition, Text) and _STATUS.search(condition.value)):
        # A job that waits for one that is skipped is skipped, too.
        waits_for = _needs(job.get("needs"))
        if any(_is_bounded(other, jobs, moment, above | {name}) for other in waits_for):
            return True
    steps = job.get("steps")
    conditions = [step.get("if") for step in _tables(steps)]
    return bool(conditions) and all(
        isinstance(one, Text) and _holds(one, moment) is False for one in conditions
    )


def _needs(node: Node | None) -> list[str]:
    items = node.items if isinstance(node, Listed) else (node,)
    return [item.value for item in items if isinstance(item, Text)]


def _tables(node: Node | None) -> list[Table]:
    items = node.items if isinstance(node, Listed) else ()
    return [item for item in items if isinstance(item, Table)]


def _holds(condition: Text, moment: Moment) -> bool | None:
    try:
        return ask(_bare(condition.value), moment).holds
    except ExpressionError:
        return None


def _bare(condition: str) -> str:
    """Return a condition without the ``${{`` and ``}}`` that may stand around it."""
    stripped = condition.strip()
    found = next(inserted(stripped), None)
    return found.expression if found and found.end - found.start == len(stripped) else condition


def _inside(node: Node, moment: Moment, key: str = "") -> Iterator[_Found]:
    """Yield what every text below a node asks about labels."""
    match node:
        case Text():
            yield from _in_text(node, moment, key)
        case Listed(items):
            for item in items:
                yield from _inside(item, moment, key)
        case Table(pairs):
            for name, value in pairs:
                yield from _inside(value, moment, name.value)


def _in_text(text: Text, moment: Moment, key: str) -> Iterator[_Found]:
    if not _MENTIONS.search(text.value):
        return
    first = text.line + text.is_block
    if key == "if":
        yield _asked(_bare(text.value), moment, text.line, is_condition=True)
        return
    between = text.value
    for found in inserted(text.value):
        line = first + text.value.count("\n", 0, found.start)
        yield _asked(found.expression, moment, line, is_condition=False)
        blank = re.sub(r"[^\n]", " ", text.value[found.start : found.end])
        between = between[: found.start] + blank + between[found.end :]
    if key in {"run", "script"}:
        for read in _SCRIPT.finditer(between):
            line = first + between.count("\n", 0, read.start())
            yield _Found(line, Asked(is_open=True), SCRIPT)


def _asked(expression: str, moment: Moment, line: int, *, is_condition: bool) -> _Found:
    try:
        asked = ask(expression, moment)
    except ExpressionError:
        return _Found(line, Asked(is_open=bool(_MENTIONS.search(expression))), UNREADABLE)
    if asked.is_open:
        return _Found(line, asked, ASKS_OPEN)
    # A condition that only wants any label to be there is said by the job that it lets run.
    asked.is_open = asked.passes_on and not is_condition
    return _Found(line, asked, PASSES_ON)


def _told(file: str, found: Iterator[_Found], *, is_bounded: bool) -> Iterator[LabelUse]:
    """Yield uses; in a job that runs for named labels alone, nothing listens to all of them."""
    for one in found:
        for match, text in sorted(one.asked.found):
            yield LabelUse(file, one.line, match, text, ASKS)
        if one.asked.is_open and not is_bounded:
            yield LabelUse(file, one.line, Match.ANY, "", one.why)
