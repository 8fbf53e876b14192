"""Reads the expressions of GitHub's workflows into a tree; what they mean is decided elsewhere."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

MAX_CHARS: Final = 21_000
"""GitHub's own bound."""

MAX_DEPTH: Final = 50

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*')"
    r"|(?P<number>[-+]?(?:0x[0-9a-fA-F]+|0o[0-7]+|\d+(?:\.\d+)?(?:[eE][-+]?\d+)?))"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_-]*)"
    r"|(?P<sign>\|\||&&|==|!=|<=|>=|[!<>().,*\[\]]))"
)
_REST: Final = re.compile(r"(?:[^'}]|'[^']*'|\}(?!\}))*")
_WORDS: Final = {"true": True, "false": False, "null": None}


class ExpressionError(Exception):
    """A text that is no expression."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A value that stands in the expression."""

    value: str | float | bool | None


@dataclass(frozen=True, slots=True)
class Reference:
    """A place in a context, in small letters; ``*`` stands for all, an empty part for unknown."""

    parts: tuple[str, ...]
    inside: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """A function's call; its name in small letters."""

    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Operation:
    """One operator between operands: ``! && || == != < <= > >=``."""

    sign: str
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """A place in what another expression gives, such as ``fromJSON(x).y``."""

    of: Expression


Expression = Literal | Reference | Call | Operation | Part


@dataclass(frozen=True, slots=True)
class Inserted:
    """An expression between ``${{`` and ``}}``, and where these begin and end in the text."""

    expression: str
    start: int
    end: int


def inserted(text: str) -> Iterator[Inserted]:
    """Yield the expressions in a text; one that does not end goes to the end of the text."""
    start = text.find("${{")
    while start >= 0:
        found = _REST.match(text, start + 3)
        end = found.end() if found else start + 3
        closed = text.startswith("}}", end)
        stop = end if closed else len(text)
        yield Inserted(text[start + 3 : stop], start, stop + 2 if closed else stop)
        start = text.find("${{", stop)


def parse_expression(text: str) -> Expression:
    """Return the tree of an expression, without the ``${{`` and ``}}`` around it.

    Raises:
        ExpressionError: it is none, or larger or deeper than GitHub takes.
    """
    if len(text) > MAX_CHARS:
        raise ExpressionError
    parser = _Parser(_tokens(text))
    tree = parser.choice()
    if parser.next is not None:
        raise ExpressionError
    return tree


def _tokens(text: str) -> list[tuple[str, str]]:
    found, at, end = [], 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise ExpressionError
        found.append((match.lastgroup, match[match.lastgroup]))
        at = match.end()
    return found


class _Parser:
    """A parser by descent, one method for each rank of operators."""

    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    @property
    def next(self) -> str | None:
        """The next token's text, or None at the end."""
        return self._tokens[self._at][1] if self._at < len(self._tokens) else None

    def choice(self) -> Expression:
        """Read operands between ``||``, the operator that binds least."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ExpressionError
        tree = self._joined({"||"}, self._both)
        self._depth -= 1
        return tree

    def _both(self) -> Expression:
        return self._joined({"&&"}, self._equal)

    def _equal(self) -> Expression:
        return self._joined({"==", "!="}, self._ordered)

    def _ordered(self) -> Expression:
        return self._joined({"<", "<=", ">", ">="}, self._turned)

    def _joined(self, signs: set[str], operand: Callable[[], Expression]) -> Expression:
        """Read operands between signs of one rank; a run of ``||`` or ``&&`` is one operation."""
        tree = operand()
        for _ in range(MAX_DEPTH):
            if self._kind() != "sign" or self.next not in signs:
                return tree
            sign, operands = self._take(), [tree, operand()]
            while self._kind() == "sign" and self.next == sign and sign in {"||", "&&"}:
                self._take()
                operands.append(operand())
            tree = Operation(sign, tuple(operands))
        raise ExpressionError

    def _turned(self) -> Expression:
        count = 0
        while self._kind() == "sign" and self.next == "!":
            self._take()
            count += 1
        tree = self._value()
        return Operation("!", (tree,)) if count % 2 else tree

    def _value(self) -> Expression:
        kind, text = self._kind(), self._take()
        match kind:
            case "text":
                return Literal(text[1:-1].replace("''", "'"))
            case "number":
                return Literal(_number(text))
            case "name" if text.lower() in _WORDS and self.next not in {"(", "."}:
                return Literal(_WORDS[text.lower()])
            case "name" if self.next == "(":
                self._take()
                return self._dotted(Call(text.lower(), self._arguments()))
            case "name":
                return self._dotted(Reference((text.lower(),)))
        if text != "(":
            raise ExpressionError
        tree = self.choice()
        self._expect(")")
        return self._dotted(tree)

    def _arguments(self) -> tuple[Expression, ...]:
        if self.next == ")":
            self._take()
            return ()
        found = [self.choice()]
        while self.next == ",":
            self._take()
            found.append(self.choice())
        self._expect(")")
        return tuple(found)

    def _dotted(self, tree: Expression) -> Expression:
        while self._kind() == "sign" and self.next in {".", "["}:
            part, inside = self._part()
            if isinstance(tree, Reference):
                tree = Reference((*tree.parts, part), (*tree.inside, *inside))
            elif not isinstance(tree, Part):
                tree = Part(tree)
        return tree

    def _part(self) -> tuple[str, tuple[Expression, ...]]:
        if self._take() == ".":
            if self._kind() == "name" or self.next == "*":
                return self._take().lower(), ()
            raise ExpressionError
        if self.next == "*":
            self._take()
            self._expect("]")
            return "*", ()
        index = self.choice()
        self._expect("]")
        if isinstance(index, Literal) and isinstance(index.value, str):
            return index.value.lower(), ()
        return "", (index,)

    def _kind(self) -> str | None:
        return self._tokens[self._at][0] if self._at < len(self._tokens) else None

    def _take(self) -> str:
        if self._at >= len(self._tokens):
            raise ExpressionError
        self._at += 1
        return self._tokens[self._at - 1][1]

    def _expect(self, sign: str) -> None:
        if self._kind() != "sign" or self._take() != sign:
            raise ExpressionError


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        whole = int(text, 0)
    try:
        return float(whole)
    except OverflowError:
        return math.inf if whole > 0 else -math.inf
