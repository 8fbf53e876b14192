"""What an expression of a workflow asks about labels, and whether it holds for one that it ignores.

An expression is evaluated with three values for the moment when a label is added that no workflow
names. If it is false for certain, it does not run for such labels; anything else may. Every label
that it compares with is noted on the way, and so is whatever cannot be made out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from triage.automation.expressions import (
    Call,
    Expression,
    ExpressionError,
    Literal,
    Operation,
    Part,
    Reference,
    parse_expression,
)
from triage.automation.uses import Match


class _Kind(Enum):
    UNKNOWN = "unknown"
    LABEL = "the name of the label that was added"
    NAMES = "the names of all labels, of which that one is the only one"
    NAMES_AS_JSON = "those names as JSON"
    OPAQUE = "something made of labels"


@dataclass(frozen=True, slots=True)
class OneOf:
    """A text that is one of a few."""

    texts: frozenset[str]


Value = str | float | bool | list[object] | OneOf | _Kind | None
_UNKNOWN: Final = _Kind.UNKNOWN
_ABOUT_LABELS: Final = frozenset(_Kind) - {_UNKNOWN}
_SUBJECTS: Final = frozenset({"issue", "pull_request", "discussion", "*", ""})


@dataclass(slots=True)
class Asked:
    """What an expression asks about labels.

    Attributes:
        found: labels, or parts of their names, that it compares with.
        is_open: whether it asks in a way that cannot be made out.
        passes_on: whether what it gives is made of labels.
        holds: whether it is true for a label that nothing names; None if that cannot be said.
    """

    found: set[tuple[Match, str]] = field(default_factory=set)
    is_open: bool = False
    passes_on: bool = False
    holds: bool | None = None


@dataclass(frozen=True, slots=True)
class Moment:
    """When an expression is evaluated: which events and actions it may be about."""

    events: frozenset[str] = frozenset()
    actions: frozenset[str] = frozenset()


def ask(text: str, moment: Moment) -> Asked:
    """Evaluate an expression for a label that nothing names.

    Raises:
        ExpressionError: it is no expression.
    """
    evaluation = _Evaluation(moment)
    try:
        value = evaluation.of(parse_expression(text))
    except RecursionError:
        raise ExpressionError from None
    evaluation.asked.holds = _truth(value)
    evaluation.asked.passes_on |= _is_about_labels([value])
    return evaluation.asked


class _Evaluation:
    def __init__(self, moment: Moment) -> None:
        self._moment = moment
        self.asked = Asked()

    def of(self, tree: Expression) -> Value:
        match tree:
            case Literal(value):
                return value
            case Reference():
                return self._reference(tree)
            case Call(name, arguments):
                return self._call(name, [self.of(argument) for argument in arguments])
            case Operation(sign, operands):
                return self._operation(sign, [self.of(operand) for operand in operands])
            case Part(of):
                return self._opened(self.of(of))

    def _reference(self, tree: Reference) -> Value:
        for inside in tree.inside:
            self._opened(self.of(inside))
        about_labels = _about_labels(tree.parts)
        if about_labels is not None:
            return about_labels
        if tree.parts == ("github", "event_name") and self._moment.events:
            return OneOf(self._moment.events)
        if tree.parts == ("github", "event", "action") and self._moment.actions:
            return OneOf(self._moment.actions)
        return _UNKNOWN

    def _call(self, name: str, given: list[Value]) -> Value:
        match name, given:
            case "contains", [where, what]:
                return self._contains(where, what)
            case "startswith", [_Kind.LABEL, str(text)]:
                return self._part_of_name(Match.PREFIX, text)
            case "endswith", [_Kind.LABEL, str(text)]:
                return self._part_of_name(Match.SUFFIX, text)
            case "fromjson", [str(text)]:
                return _from_json(text)
            case "tojson", [_Kind.NAMES]:
                return _Kind.NAMES_AS_JSON
            case "tojson" | "format" | "join", _ if _is_about_labels(given):
                return _Kind.OPAQUE
        for value in given:
            self._opened(value)
        return _UNKNOWN

    def _contains(self, where: Value, what: Value) -> Value:
        match where, what:
            case _Kind.NAMES, str(text):
                return self._named(text)
            case _Kind.LABEL, str(text):
                return self._part_of_name(Match.PART, text)
            case _Kind.NAMES_AS_JSON, str(text):
                if re.fullmatch(r'".+"', text):
                    return self._named(text[1:-1])
                return self._part_of_name(Match.PART, text.strip('"'))
            case list(items), _Kind.LABEL:
                for item in items:
                    self._named(item if isinstance(item, str) else "")
                return False
        self._opened(where)
        self._opened(what)
        return _UNKNOWN

    def _operation(self, sign: str, given: list[Value]) -> Value:
        match sign:
            case "!":
                truth = _truth(given[0])
                return _UNKNOWN if truth is None else not truth
            case "&&" | "||":
                result = _all(given) if sign == "&&" else _any(given)
                if result is _UNKNOWN and _is_about_labels(given):
                    self.asked.passes_on = True
                return result
            case "==" | "!=":
                equal = self._equal(given[0], given[1])
                return _UNKNOWN if equal is None else equal == (sign == "==")
        for value in given:
            self._opened(value)
        return _UNKNOWN

    def _equal(self, one: Value, other: Value) -> bool | None:
        if isinstance(other, _Kind | OneOf) and not isinstance(one, _Kind):
            one, other = other, one
        match one, other:
            case _Kind.LABEL, str(text):
                return self._named(text)
            case OneOf(texts), str(text):
                is_one = text.casefold() in texts
                return is_one and (len(texts) == 1 or None)
            case str(text), str(same):
                return text.casefold() == same.casefold()
        if _is_about_labels([one, other]) and (one is None or other is None):
            # There is a label: that asks nothing of its name.
            return False
        self._opened(one)
        self._opened(other)
        return None

    def _named(self, label: str) -> bool:
        """Note a label; the one that was added is another."""
        if label:
            self.asked.found.add((Match.EXACT, label))
        return False

    def _part_of_name(self, match: Match, text: str) -> Value:
        if not text:
            return self._opened(_Kind.OPAQUE)
        self.asked.found.add((match, text))
        return False

    def _opened(self, value: Value) -> Value:
        """Note that a value of labels went where it cannot be followed."""
        if isinstance(value, _Kind) and value in _ABOUT_LABELS:
            self.asked.is_open = True
            return _Kind.OPAQUE
        return _UNKNOWN


def _about_labels(parts: tuple[str, ...]) -> _Kind | None:
    """Return what a place in the event has to do with labels, or None if nothing."""
    match parts:
        case ("github", "event", "label", "name"):
            return _Kind.LABEL
        case ("github", "event", subject, "labels", "*", "name") if subject in _SUBJECTS:
            return _Kind.NAMES
        case ("github", "event", "label", *_):
            return _Kind.OPAQUE
        case ("github", "event", subject, "labels", *_) if subject in _SUBJECTS:
            return _Kind.OPAQUE
    return None


def _is_about_labels(given: Sequence[Value]) -> bool:
    return any(isinstance(value, _Kind) and value in _ABOUT_LABELS for value in given)


def _from_json(text: str) -> Value:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return _UNKNOWN
    return value if isinstance(value, list | str | float | bool) or value is None else _UNKNOWN


def _truth(value: Value) -> bool | None:
    match value:
        case _Kind.UNKNOWN:
            return None
        case _Kind() | OneOf() | list():
            return True
        case _:
            return bool(value)


def _all(given: Iterable[Value]) -> Value:
    """Return what ``&&`` gives: the first that is false, else the last."""
    last: Value = True
    is_sure = True
    for value in given:
        truth = _truth(value)
        if truth is False:
            return value if is_sure else False
        is_sure, last = is_sure and truth is True, value
    return last if is_sure else _UNKNOWN


def _any(given: Iterable[Value]) -> Value:
    """Return what ``||`` gives: the first that is true, else the last."""
    last: Value = False
    is_sure = True
    for value in given:
        truth = _truth(value)
        if truth is True:
            return value if is_sure else True
        is_sure, last = is_sure and truth is False, value
    return last if is_sure else _UNKNOWN
