"""Weighing an issue: which class its words and paths speak for, and whether security is touched.

Pure and deterministic. Security is looked for first and can only raise an issue to a person;
a class is claimed only with a clear lead, and otherwise the issue is left to a person.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from triage.models import rules_keywords as table
from triage.models.rules_text import IssueText, is_doc_path, read_issue, usable_paths

_MAX_SIGNALS = 5
ISSUES_KEPT: Final = 32
"""Each step of a run asks about the same issue."""


@dataclass(frozen=True, slots=True)
class Assessment:
    """What an issue's own words and paths say.

    Attributes:
        security: what made security likely; empty when nothing did.
        leading: the class with the highest score, or None when no word spoke for any.
        doubt: why `leading` is not to be trusted, or None when it is.
        signals: the terms of our own tables that spoke for `leading`.
        paths: the paths that an owner may be looked up for.
    """

    security: tuple[str, ...]
    leading: str | None
    doubt: str | None
    signals: tuple[str, ...]
    paths: tuple[str, ...]


@lru_cache(maxsize=ISSUES_KEPT)
def assess(title: str, body: str, changed_paths: tuple[str, ...]) -> Assessment:
    """Weigh one issue; texts of any size and content are accepted."""
    text = read_issue(title, body)
    changed = usable_paths(changed_paths)
    hits = {name: _longest(dict(_hits(text, needles))) for name, needles in _NEEDLES.items()}
    spoken = {name: sum(found.values()) for name, found in hits.items()}
    _add_form(spoken, text)
    scores = _with_paths(spoken, changed, text.paths)
    leading = max(scores, key=lambda name: (spoken[name] > 0, scores[name]))
    known = spoken[leading] > 0
    return Assessment(
        security=tuple(_security(text))[:_MAX_SIGNALS],
        leading=leading if known else None,
        doubt=_doubt(text, spoken, scores, leading),
        signals=tuple(hits[leading])[:_MAX_SIGNALS],
        paths=_for_class(leading, changed or text.paths),
    )


def assess_as(
    route: str | None, doubt: str | None, title: str, body: str, changed_paths: tuple[str, ...]
) -> Assessment:
    """Weigh an issue whose class something else has chosen; security is looked for all the same."""
    text = read_issue(title, body)
    return Assessment(
        security=tuple(_security(text))[:_MAX_SIGNALS],
        leading=route,
        doubt=doubt,
        signals=(),
        paths=_for_class(route or "", usable_paths(changed_paths) or text.paths),
    )


def _needle(term: str) -> str:
    return f" {term[:-1]}" if term.endswith("*") else f" {term} "


_NEEDLES: Final = {
    name: tuple(
        (term.rstrip("*"), _needle(term), weight)
        for weight, terms in weights.items()
        for term in terms
    )
    for name, weights in table.TERMS.items()
}
_NAMES: Final = tuple((term.rstrip("*"), _needle(term)) for term in table.SECURITY_NAMES)
_HINTS: Final = tuple((term.rstrip("*"), _needle(term)) for term in table.SECURITY_HINTS)


def _either(terms: tuple[str, ...]) -> str:
    return f"(?:{'|'.join(terms)})"


_NEAR = r"(?:\w+ ){0,6}"
_SECRET, _EXPOSED = _either(table.SECRETS), _either(table.EXPOSURES)
_EXPOSED_SECRET = re.compile(f" {_SECRET} {_NEAR}{_EXPOSED} | {_EXPOSED} {_NEAR}{_SECRET} ")
_PEOPLE = f"{_either(table.OTHERS)} {_either(table.PEOPLE)}"
_THEIRS = _either(table.BELONGINGS)
_OTHERS_DATA = re.compile(
    f" {_PEOPLE} (?:\\w+ )?{_THEIRS} | {_THEIRS} (?:from|of|belonging to) {_PEOPLE} "
)


def _hits(text: IssueText, needles: tuple[tuple[str, str, int], ...]) -> Iterator[tuple[str, int]]:
    for term, needle, weight in needles:
        in_title = table.TITLE_FACTOR * weight if needle in text.title else 0
        total = in_title + (weight if needle in text.prose else 0)
        if total:
            yield term, total


def _longest(found: dict[str, int]) -> dict[str, int]:
    """Drop terms that are part of a longer one, so that no word counts twice."""
    return {
        term: weight
        for term, weight in found.items()
        if not any(term != other and f" {term} " in f" {other} " for other in found)
    }


def _add_form(scores: dict[str, int], text: IssueText) -> None:
    """Count how a title begins, and a pasted log."""
    for name, starts in table.TITLE_STARTS.items():
        if any(text.title.startswith(f" {start} ") for start in starts):
            scores[name] += table.TITLE_START_WEIGHT
    if any(_needle(term) in text.code for term in table.LOG_TERMS):
        scores[table.BUG] += table.LOG_WEIGHT


def _with_paths(
    spoken: Mapping[str, int], changed: tuple[str, ...], mentioned: tuple[str, ...]
) -> dict[str, int]:
    scores = dict(spoken)
    paths = changed or mentioned
    if paths and all(is_doc_path(path) for path in paths):
        weight = table.ONLY_DOC_PATHS_WEIGHT if changed else table.DOC_PATH_WEIGHT
        scores[table.DOCUMENTATION] += weight
    elif paths:
        scores[table.BUG] += table.CODE_PATH_WEIGHT
    return scores


def _doubt(
    text: IssueText, spoken: Mapping[str, int], scores: Mapping[str, int], leading: str
) -> str | None:
    if _is_foreign(text):
        return "the text does not read as English"
    if spoken[leading] == 0 or scores[leading] < table.MIN_SCORE:
        return "no words say clearly what this is"
    second = max(score for name, score in scores.items() if name != leading)
    lead = scores[leading] - second
    if lead < max(table.MIN_MARGIN, scores[leading] // table.MARGIN_DIVISOR):
        return "its words speak for more than one class"
    return None


def _is_foreign(text: IssueText) -> bool:
    all_words = (text.title + text.prose).split()
    letters = sum(len(word) for word in all_words)
    if 3 * sum(len(word) for word in all_words if not word.isascii()) > letters:
        return True
    english = sum(word in table.ENGLISH for word in all_words)
    if sum(word in table.OTHER_LANGUAGES for word in all_words) > english:
        return True
    return english == 0 and len(all_words) >= table.MIN_WORDS_TO_JUDGE_LANGUAGE


def _for_class(leading: str, paths: tuple[str, ...]) -> tuple[str, ...]:
    """Prefer paths of the leading class's kind; the others count only when there are none."""
    wanted = leading == table.DOCUMENTATION
    return tuple(path for path in paths if is_doc_path(path) == wanted) or paths


def _security(text: IssueText) -> Iterator[str]:
    yield from (term for term, needle in _NAMES if needle in text.everything)
    said = text.title + text.prose + text.aside
    for status in table.NOT_SECURITY:
        said = said.replace(f" {status} ", "  ")
    yield from (term for term, needle in _HINTS if needle in said)
    if _EXPOSED_SECRET.search(said):
        yield "exposed secret"
    if _OTHERS_DATA.search(said):
        yield "data of others"
