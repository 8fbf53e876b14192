"""Which labels a bot's file tells it to listen to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from triage.automation.bots import Bot, Form
from triage.automation.nodes import Listed, Node, NotYamlError, Table, Text, read_yaml
from triage.automation.patterns import pattern
from triage.automation.uses import LabelUse, Match, Weight
from triage.policy.toml_lines import TomlLines
from triage.policy.toml_text import TomlError, toml_table

_ASTERISK: Final = "*"
_EXTENDS: Final = "_extends"
_CONDITION: Final = re.compile(
    r"\s*-?\s*(?P<count>#)?label\s*(?P<sign>!=|~=|==?|[<>]=?)\s*(?P<text>.*)"
)
_PAIR: Final = re.compile(r"""["']?(?P<key>\w+)["']?\s*:\s*(?:"(?P<one>[^"]*)"|'(?P<two>[^']*)')""")


def bot_uses(file: str, bot: Bot, data: bytes) -> Iterator[LabelUse]:
    """Yield each place where a bot's file names labels.

    Raises:
        NotYamlError: the file cannot be read.
    """
    said: set[str] = set()
    for path, text in _texts(bot, data):
        place = next((one for one in bot.places if _is_at(path, one)), "")
        said.add(place)
        yield from _named(file, bot, path, text, place)
    for place, label in bot.defaults.items():
        if place not in said:
            why = f"{bot.name} listens to it unless {place} says otherwise"
            yield LabelUse(file, 1, Match.EXACT, label, why)


def _texts(bot: Bot, data: bytes) -> Iterator[tuple[tuple[str, ...], Text]]:
    match bot.form:
        case Form.LINES:
            yield from _lines(data)
        case Form.TOML:
            yield from _leaves(_toml(data, bot.places), ())
        case Form.YAML:
            for document in read_yaml(data):
                yield from (found for found in _leaves(document, ()) if found[0])
                if bot.names_are_labels and isinstance(document, Table):
                    yield from (((), key) for key, _ in document.pairs)


def _named(
    file: str, bot: Bot, path: tuple[str, ...], text: Text, place: str
) -> Iterator[LabelUse]:
    """Yield what a text at a path means, where it means anything."""
    label = text.value.strip()
    if not path and bot.names_are_labels:
        name = label.removeprefix("-").strip()
        yield LabelUse(file, text.line, Match.EXACT, name, f"{bot.name}: a rule of its own")
    elif path == (_EXTENDS,) and bot.places:
        yield LabelUse(file, text.line, Match.ANY, "", f"{bot.name}: more is said elsewhere")
    elif bot.conditions and "actions" not in path:
        yield from _condition(file, bot, text)
    elif label and place:
        yield LabelUse(file, text.line, Match.EXACT, label, f"{bot.name}: {place}")
    elif label not in {"", _ASTERISK} and any(_is_at(path, one) for one in bot.sorts):
        why = f"{bot.name}: {'.'.join(path)}"
        yield LabelUse(file, text.line, Match.EXACT, label, why, Weight.SORTS)


def _leaves(node: Node, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Text]]:
    """Yield each text with the keys above it."""
    match node:
        case Text():
            yield path, node
        case Listed(items):
            for item in items:
                yield from _leaves(item, path)
        case Table(pairs):
            for key, value in pairs:
                yield from _leaves(value, (*path, key.value))


def _is_at(path: tuple[str, ...], place: str) -> bool:
    parts = place.split(".")
    return len(parts) == len(path) and all(
        part in {_ASTERISK, name} for part, name in zip(parts, path, strict=True)
    )


def _condition(file: str, bot: Bot, text: Text) -> Iterator[LabelUse]:
    found = _CONDITION.fullmatch(text.value.strip())
    if found is None:
        return
    wanted = found["text"].strip().strip("\"'")
    if found["count"] or found["sign"] not in {"=", "==", "!=", "~="}:
        match, label = Match.ANY, ""
    elif found["sign"] == "~=":
        match, label = pattern(wanted)
    else:
        match, label = (Match.EXACT, wanted) if wanted else (Match.ANY, "")
    yield LabelUse(file, text.line, match, label, f"{bot.name}: a condition")


def _lines(data: bytes) -> Iterator[tuple[tuple[str, ...], Text]]:
    """Yield pairs that stand on one line; the keys above them are not known."""
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), start=1):
        for found in _PAIR.finditer(line):
            value = found["one"] if found["one"] is not None else found["two"]
            yield (found["key"],), Text(value, number)


def _toml(data: bytes, places: Sequence[str]) -> Node:
    try:
        text = data.decode("utf-8")
        return _as_node(toml_table(text), text, (), places)
    except TomlError as error:
        raise NotYamlError("is not TOML", error.line) from None
    except (UnicodeDecodeError, RecursionError):
        raise NotYamlError("is not TOML") from None


def _as_node(value: object, text: str, path: tuple[str, ...], places: Sequence[str]) -> Node:
    """Return a value as a node; only what stands at one of the places gets its line."""
    if isinstance(value, dict):
        pairs = [
            (Text(key, 1), _as_node(item, text, (*path, key), places))
            for key, item in value.items()
        ]
        return Table(tuple(pairs), 1)
    if isinstance(value, list):
        return Listed(tuple(_as_node(item, text, path, places) for item in value), 1)
    line = _line(text, path) if any(_is_at(path, place) for place in places) else 1
    return Text(value if isinstance(value, str) else "", line)


def _line(text: str, path: tuple[str, ...]) -> int:
    return _lines_of(text).of(path) or 1


@lru_cache(maxsize=4)
def _lines_of(text: str) -> TomlLines:
    return TomlLines(text)
