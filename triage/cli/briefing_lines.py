"""Puts what a reviewer is shown into lines that no text of a stranger can imitate.

Every line of theirs stands behind a bar or in quotes, is folded before the terminal would do it,
and is cut where it grows too long, which is said.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from triage.cli.briefing import Briefing, Gone, ModelText, ShownEvidence, ShownIssue, without
from triage.cli.output import columns
from triage.cli.text import exact, fold, quoted, wrap
from triage.cli.times import told, until
from triage.contracts.state import PendingView
from triage.storage.switches import Switch
from triage.story.words import named
from triage.trackers.base import has_labels

LABEL: Final = 12
MAX_LINES: Final = 30
MAX_BODY_CHARS: Final = 2_000
MAX_TEXT_CHARS: Final = 600
INDENT: Final = " " * len("warning: ")
BAR: Final = "    | "
NONE: Final = "none"
NOTHING_NEW: Final = "none: the issue has these labels by now"
EVERYBODY: Final = "everybody"

_LINE_END: Final = re.compile(r"\r\n|\r|\n")


def briefing_lines(briefing: Briefing) -> Iterator[str]:
    """Return everything that is shown before a decision."""
    yield from operation_lines(briefing.pending, labels_now(briefing))
    yield from _evidence_lines(briefing)
    yield from _model_lines(briefing.model)
    yield from _issue_lines(briefing.issue)
    yield from _request_lines(briefing)
    yield from warning_lines(briefing)


def labels_now(briefing: Briefing) -> tuple[str, ...] | None:
    """Return the issue's labels, where they are known to be others than when it was proposed."""
    shown, before = briefing.issue, briefing.pending.labels_before
    if not isinstance(shown, ShownIssue) or sorted(shown.issue.labels) == sorted(before):
        return None
    return shown.issue.labels


def operation_lines(pending: PendingView, now: Sequence[str] | None = None) -> Iterator[str]:
    """Return exactly what is to be written, and what changes by it.

    Args:
        pending: the operation, with the labels as they were when it was proposed.
        now: the issue's labels, if they are others by now.
    """
    target = pending.target
    place = f"{target.get('tracker')}:{target.get('repository')}#{target.get('issue')}"
    before, after = pending.labels_before, pending.labels_after
    what = f"{exact(pending.operation_id)} at version {pending.version}: {pending.tool}"
    yield from field("operation", [what])
    yield from field("target", [exact(place)])
    yield from field("before", [listed_labels(before)])
    if now is None:
        yield from field("after", [listed_labels(after)])
        yield from field("changes", _changes(before, after) or [NONE])
    else:
        yield from field("now", [listed_labels(now)])
        yield from field("after then", [listed_labels(after)])
        yield from field("changes", _changes_now(before, after, now) or [NOTHING_NEW])
    yield from field("digest", [pending.digest])
    yield from field("proposed", [f"by the {pending.proposed_by}, {told(pending.proposed_at)}"])
    yield from field("expires", [until(pending.expires_at)])
    if pending.approvals_required > 1:
        yield from field("approvals", [_approvals(pending)])


def _changes(before: Sequence[str], after: Sequence[str]) -> list[str]:
    gone = [f"- {quoted(label)}" for label in without(before, after)]
    return [*gone, *(f"+ {quoted(label)}" for label in without(after, before))]


def _changes_now(before: Sequence[str], after: Sequence[str], now: Sequence[str]) -> list[str]:
    """Return what the write would still change on an issue whose labels are others by now."""
    gone = [label for label in without(before, after) if has_labels(now, [label])]
    new = [label for label in without(after, before) if not has_labels(now, [label])]
    return [*(f"- {quoted(label)}" for label in gone), *(f"+ {quoted(label)}" for label in new)]


def _approvals(pending: PendingView) -> str:
    by = f", by {', '.join(map(exact, pending.approved_by))}" if pending.approved_by else ""
    return f"{len(pending.approved_by)} of {pending.approvals_required} are given{by}"


def field(label: str, values: Iterable[str]) -> Iterator[str]:
    """Return a label with its values beside it, or beneath it where they would be broken."""
    lines, beside = list(values), columns() - LABEL - 2
    if any(len(fold(line, beside)) > 1 for line in lines):
        yield f"  {label}"
        for line in lines:
            yield from _indented(line, 4)
        return
    for at, line in enumerate(lines):
        yield f"  {'' if at else label:<{LABEL}}{line}"


def listed_labels(labels: Iterable[str]) -> str:
    """Return labels, each in quotes, since a label may hold commas and quotes of its own."""
    return ", ".join(map(quoted, labels)) or NONE


def warning_lines(briefing: Briefing) -> Iterator[str]:
    """Return what speaks against approving this now."""
    issue, stops = briefing.issue, briefing.stops
    if isinstance(issue, ShownIssue) and not issue.is_covered:
        yield "warning: the issue shown here is not the one that the operation was proposed on;"
        yield "         if it has changed since, an approved write ends in state_conflict"
    if labels_now(briefing) is not None:
        yield "warning: the issue's labels are others than when this was proposed, see above"
    if briefing.other_request:
        yield "warning: the model was given another text than the issue's, see above"
    if (may := briefing.too_few) is not None:
        yield from _wrapped(f"warning: {never_enough(may, briefing.pending.approvals_required)}")
    if isinstance(stops, Gone):
        yield from _wrapped(f"warning: whether writes are stopped cannot be seen here: {stops.why}")
    else:
        yield from (line for stop in stops for line in _wrapped(f"warning: {stop_sentence(stop)}"))


def never_enough(may: Sequence[str], required: int) -> str:
    """Say that whoever may approve cannot be enough, whatever they decide."""
    who = f"only {', '.join(map(exact, may))}" if may else "nobody"
    return (
        f"{required} have to approve this, and {who} may: the rules name who does, and the issue's"
        " author never counts. It can only be rejected or expire ('triage policy show')"
    )


def stop_sentence(switch: Switch) -> str:
    """Say how a switch stands, who turned it, when and why."""
    whose = EVERYBODY if switch.tenant is None else f"tenant {named(switch.tenant)}"
    state = "stopped" if switch.stopped else "allowed"
    why = f": {switch.reason}" if switch.reason else ""
    return f"writes are {state} for {whose}, by {switch.by} at {told(switch.changed_at)}{why}"


def review_hint(briefing: Briefing) -> str:
    """Return the line that approves what is pending."""
    pending = briefing.pending
    words = (briefing.workflow_id, pending.operation_id)
    sign = " --sign" if briefing.signs else ""
    shown = " ".join(shlex.quote(word) for word in words)
    return f"waits for a person: triage approve {shown} --version {pending.version}{sign}"


def _wrapped(text: str) -> Iterator[str]:
    """Return a sentence of ours, its later lines indented."""
    first, *others = wrap(text, columns() - len(INDENT))
    yield first
    yield from (f"{INDENT}{line}" for line in others)


def _evidence_lines(briefing: Briefing) -> Iterator[str]:
    yield "evidence" if briefing.evidence else "evidence: none"
    for item in briefing.evidence:
        cited = "cited" if briefing.is_cited(item.view.id) else "not cited"
        words = [exact(item.view.id), "by", exact(item.view.tool)]
        if isinstance(briefing.model, ModelText):
            words.append(f"({cited})")
        yield from _indented(" ".join(words), 2)
        yield from _indented(f"at {exact(item.view.locator)}", 4)
        yield from _content_lines(item)


def _content_lines(item: ShownEvidence) -> Iterator[str]:
    if isinstance(item.content, Gone):
        yield from _indented(f"unavailable: {item.content.why}", 4)
    else:
        yield from _behind_bar(item.content.decode(errors="replace"), MAX_TEXT_CHARS)


def _model_lines(model: ModelText | Gone) -> Iterator[str]:
    if isinstance(model, Gone):
        yield from _wrapped(f"model's text: unavailable: {model.why}")
        return
    yield f"model's text, which nobody has checked ({exact(model.kind)})"
    if model.route:
        yield from field("route", [exact(model.route)])
    if model.owner:
        yield from field("owner", [exact(model.owner)])
    if model.reason:
        yield "  reason"
        yield from _behind_bar(model.reason, MAX_TEXT_CHARS)


def _request_lines(briefing: Briefing) -> Iterator[str]:
    """Return the text that the model was given, where the tracker is not known to have it."""
    request = briefing.request
    if isinstance(request, Gone):
        yield from _wrapped(f"what the model was given: unavailable: {request.why}")
    elif isinstance(briefing.issue, Gone) or briefing.other_request:
        yield "what the model was given"
        yield "  title"
        yield from _behind_bar(request.title, MAX_TEXT_CHARS)
        yield "  text"
        yield from _behind_bar(request.body, MAX_BODY_CHARS)


def _issue_lines(shown: ShownIssue | Gone) -> Iterator[str]:
    if isinstance(shown, Gone):
        yield from _wrapped(f"issue: unavailable: {shown.why}")
        return
    issue = shown.issue
    locked = ", locked" if issue.locked else ""
    covered = "the digest covers this text" if shown.is_covered else "NOT what the digest covers"
    yield f"issue ({covered})"
    yield from field("state", [f"{issue.state}{locked}"])
    yield from field("author", [exact(issue.author) if issue.author else "not known"])
    yield "  title"
    yield from _behind_bar(issue.title, MAX_TEXT_CHARS)
    yield "  text"
    place = f"{shlex.quote(issue.number)} --repository {shlex.quote(issue.repository)}"
    yield from _behind_bar(issue.body, MAX_BODY_CHARS, f"triage issues show {place}")


def _behind_bar(text: str, limit: int, whole: str = "") -> Iterator[str]:
    """Return a stranger's text, each line behind a bar; if it is cut, with what shows it whole."""
    kept = text if len(text) <= limit else text[:limit]
    lines = _LINE_END.split(kept)
    pieces = [piece for line in lines for piece in fold(line, columns() - len(BAR))]
    yield from (f"{BAR}{piece}" for piece in pieces[:MAX_LINES])
    if kept != text or len(pieces) > MAX_LINES:
        yield from _indented(f"cut: it has {len(text):,} characters", 4)
        if whole:
            yield from _indented(f"all of it: {whole}", 4)


def _indented(text: str, by: int) -> Iterator[str]:
    """Return a line, or if it is too long its pieces behind a bar: none may look like a line."""
    if len(fold(text, columns() - by)) == 1:
        return iter([f"{' ' * by}{text}"])
    return (f"{BAR}{piece}" for piece in fold(text, columns() - len(BAR)))
