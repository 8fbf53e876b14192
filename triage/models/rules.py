"""The model that needs no key: deterministic keywords and paths, with a person for the rest.

It reads before it answers, never asks for a write, and ends within three steps. Whatever it is
unsure of goes to a person with the best route it has. Its reasons are made of our own words
only, so text from an issue never travels through them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

from pydantic import JsonValue

from triage.contracts.base import MAX_NAME_CHARS
from triage.contracts.canonical import digest_of
from triage.contracts.names import ACTIVITY_LOOKUP_OWNER, ACTIVITY_SEARCH_POLICY
from triage.contracts.payloads import DecideOutcome, DecideResult
from triage.models import rules_keywords as table
from triage.models.base import ModelRequest, Observation
from triage.models.rules_score import Assessment, assess
from triage.policy.security import SECURITY_ROUTE

VERSION: Final = "1"
LAST_STEP: Final = 3
"""At this step it answers with what it has, since the default bound on steps ends here."""

MAX_LOOKUPS: Final = 2
MAX_LABELS: Final = 20
MAX_CITED: Final = 20
DEFAULT_SUFFIX: Final = "-default"
"""Ends the evidence ids of what a lookup returns when nothing matched: no reason to be sure."""
NO_TOPIC: Final = "the rules have no topic for features"
NO_POLICY: Final = "the feature policy could not be read"
UNNAMED: Final = "nobody is named as the owner of a path"
UNREAD: Final = "no ownership record could be read for a path"


def _tables() -> dict[str, JsonValue]:
    """Return all tables as JSON, for the revision."""
    return {name: _plain(value) for name, value in sorted(vars(table).items()) if name.isupper()}


@cache
def _revision() -> str:
    return f"{VERSION}+{digest_of(_tables())}"


def _plain(value: object) -> JsonValue:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, frozenset):
        return [str(item) for item in sorted(value)]
    return value if isinstance(value, int) else str(value)


class RulesModel:
    """Triages any issue text by keywords and paths; equal requests get equal answers."""

    def __init__(self) -> None:
        self.name = "rules"
        self.revision = _revision()

    async def decide(self, request: ModelRequest) -> DecideResult:
        """Return a read, a review or a grounded final; without routes there is no legal answer."""
        if not request.routes:
            return DecideResult(outcome=DecideOutcome.INVALID, detail="the rules name no routes")
        issue = request.request
        found = assess(issue.title, issue.body, issue.changed_paths)
        decision = answer(request, found, f"its words ({', '.join(found.signals)})")
        return DecideResult(outcome=DecideOutcome.DECISION, decision=decision)


def answer(request: ModelRequest, found: Assessment, grounds: str) -> JsonValue:
    """Return what follows from an assessment: a read, a review or a grounded final.

    Args:
        request: what is asked; it names at least one route.
        found: what the issue is, and whether that is to be trusted.
        grounds: what the class was found by, in words of ours, for the reason of a final.
    """
    if found.security:
        return _security(request, found)
    if found.leading is None or found.doubt is not None:
        return _review(request, found.leading, found.doubt or "nothing speaks for any class")
    if found.leading == table.FEATURE:
        return _feature(request, grounds)
    return _by_owner(request, found, grounds)


def _security(request: ModelRequest, found: Assessment) -> JsonValue:
    """Read the policy, then hand over: nothing that the policy says could lower this."""
    call = _lookup(request, ACTIVITY_SEARCH_POLICY, "topic", "security")
    if call is not None:
        return call
    reason = f"may concern security ({', '.join(found.security)}), so a person decides"
    return _review(request, SECURITY_ROUTE, reason)


def _feature(request: ModelRequest, grounds: str) -> JsonValue:
    call = _lookup(request, ACTIVITY_SEARCH_POLICY, "topic", "feature")
    if call is not None:
        return call
    seen = _observed(request, ACTIVITY_SEARCH_POLICY, "topic", "feature")
    record = _record(seen)
    if seen is None or record is None:
        return _review(request, table.FEATURE, NO_TOPIC if _is_default(seen) else NO_POLICY)
    if record.get("route") != table.FEATURE or record.get("review_required") is True:
        return _review(request, table.FEATURE, "the feature policy wants a person to decide")
    labels = [name for name in request.labels if name in table.CLASS_LABELS[table.FEATURE]]
    return _final(request, table.FEATURE, grounds, labels, [(seen, record)])


def _by_owner(request: ModelRequest, found: Assessment, grounds: str) -> JsonValue:
    """Look the owner up, of a second path too when the paths lie in different folders."""
    route = found.leading or ""
    paths = tuple(_one_per_folder(found.paths))[:MAX_LOOKUPS]
    if not paths:
        return _review(request, route, "no path says whose it is")
    for path in paths:
        call = _lookup(request, ACTIVITY_LOOKUP_OWNER, "path", path)
        if call is not None:
            return call
    pairs = []
    for path in paths:
        seen = _observed(request, ACTIVITY_LOOKUP_OWNER, "path", path)
        record = _record(seen)
        if seen is None or record is None:
            return _review(request, route, UNNAMED if _is_default(seen) else UNREAD)
        pairs.append((seen, record))
    if len({record["owner"] for _, record in pairs}) > 1:
        return _review(request, route, "its paths belong to different owners")
    labels = _fitting_labels(request, route, [record for _, record in pairs])
    if labels is None:
        return _review(request, route, "the owner's labels do not fit what the words say")
    return _final(request, route, grounds, labels, pairs)


def _one_per_folder(paths: Sequence[str]) -> Iterator[str]:
    folders = set()
    for path in paths:
        folder = path.partition("/")[0]
        if folder not in folders:
            folders.add(folder)
            yield path


def _lookup(request: ModelRequest, tool: str, argument: str, value: str) -> JsonValue:
    """Return the call that is still to be made, or None: made already, too late or no such tool."""
    known = any(
        item.name == tool and not item.side_effect and set(item.arguments) == {argument}
        for item in request.tools
    )
    made = _observed(request, tool, argument, value) is not None
    if made or not known or request.step >= LAST_STEP:
        return None
    return {
        "kind": "call_tool",
        "tool": {
            "call_id": f"call-{request.step}",
            "name": tool,
            "arguments": {argument: value},
            "operation_id": None,
        },
    }


def _observed(request: ModelRequest, tool: str, argument: str, value: str) -> Observation | None:
    """Return the newest result of exactly this call."""
    for seen in reversed(request.observations):
        if seen.tool == tool and seen.arguments == {argument: value}:
            return seen
    return None


def _record(seen: Observation | None) -> dict[str, JsonValue] | None:
    """Return content that an answer may rest on: available, specific and with an owner."""
    if seen is None or not isinstance(seen.content, dict) or not _is_name(seen.evidence_id):
        return None
    if _is_default(seen) or not _is_name(seen.content.get("owner")):
        return None
    return seen.content


def _is_default(seen: Observation | None) -> bool:
    """Whether this is what the rules say of everything that they do not name."""
    if seen is None or seen.content is None:
        return False
    return _is_name(seen.evidence_id) and seen.evidence_id.endswith(DEFAULT_SUFFIX)


def _is_name(value: JsonValue) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MAX_NAME_CHARS


def _fitting_labels(
    request: ModelRequest, route: str, records: Sequence[dict[str, JsonValue]]
) -> list[str] | None:
    """Return the labels of the class and its components, or None when an owner has none."""
    names = table.CLASS_LABELS.get(route, frozenset({route}))
    labels: dict[str, None] = {}
    for record in records:
        allowed = record.get("allowed_labels")
        offered = [name for name in request.labels if isinstance(allowed, list) and name in allowed]
        if not names.intersection(offered):
            return None
        fitting = (
            name for name in offered if name in names or name.startswith(table.COMPONENT_PREFIXES)
        )
        labels.update(dict.fromkeys(fitting))
    return list(labels)[:MAX_LABELS]


def _final(
    request: ModelRequest,
    route: str,
    grounds: str,
    labels: Sequence[str],
    pairs: Sequence[tuple[Observation, dict[str, JsonValue]]],
) -> JsonValue:
    if route not in request.routes:
        return _review(request, route, "the rules have no route for this class")
    source = "the policy" if route == table.FEATURE else "the ownership record of its path"
    return {
        "kind": "final",
        "route": route,
        "labels": list(labels),
        "owner": pairs[0][1]["owner"],
        "evidence_ids": list(dict.fromkeys(seen.evidence_id for seen, _ in pairs)),
        "reason": f"{route} by {grounds}; owner by {source}",
    }


def _review(request: ModelRequest, route: str | None, reason: str) -> JsonValue:
    """Hand over with what was read; content that is unavailable is not cited."""
    read = (seen.evidence_id for seen in request.observations if seen.content is not None)
    cited: list[JsonValue] = list(dict.fromkeys(name for name in read if _is_name(name)))
    return {
        "kind": "request_review",
        "route": route if route in request.routes else _fallback(request, route),
        "reason": reason,
        "evidence_ids": cited[:MAX_CITED],
    }


def _fallback(request: ModelRequest, route: str | None) -> str:
    """Return the nearest route that the rules have: another security route, or their first."""
    if route == SECURITY_ROUTE:
        for name in request.routes:
            if "security" in name:
                return name
    return request.routes[0]
