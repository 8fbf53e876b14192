"""Checks what a reviewer is shown, and that no text of a stranger can pass for ours."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.cli.samples import evidence_view, pending_view
from triage.cli import reviewing
from triage.cli.briefing import Briefing, Gone, ModelText, ShownEvidence, ShownIssue, ShownRequest
from triage.cli.briefing_lines import BAR, MAX_LINES, briefing_lines, review_hint
from triage.cli.briefing_trust import signs_by_settings
from triage.cli.text import visible
from triage.settings import Settings
from triage.storage.switches import Switch
from triage.trackers.base import TrackedIssue, content_digest

COLUMNS = 80
HOSTILE = (
    "\x1b[2Jgone \u202eevil\r\n"
    + " " * 74
    + "digest      sha256:fake\nwarning: none\twaits for a person\n"
    + "日本語" * 60
)


def _issue(**changes: str | tuple[str, ...]) -> TrackedIssue:
    fields = {"title": "Orders fail", "body": "Every POST fails.", "author": "eve"} | changes
    title, body = str(fields["title"]), str(fields["body"])
    return TrackedIssue(
        repository="local",
        number="1",
        title=title,
        body=body,
        state="open",
        locked=False,
        labels=("triage",),
        author=str(fields["author"]),
        content_digest=content_digest(title, body, "open", locked=False),
    )


def _briefing(**changes: object) -> Briefing:
    fields: dict[str, object] = {
        "workflow_id": "triage-1",
        "pending": pending_view(),
        "evidence": (ShownEvidence(evidence_view(), b'{"owner":"backend-team"}'),),
        "model": ModelText("final", "bug", "backend-team", ("bug",), ("owners-api",), "It fails."),
        "request": ShownRequest("Orders fail", "Every POST fails."),
        "issue": ShownIssue(_issue(), is_covered=True),
        "stops": (),
    }
    return Briefing(**{**fields, **changes})  # type: ignore[arg-type]  # fields by name


def _text(briefing: Briefing) -> str:
    return "\n".join(visible(line) for line in briefing_lines(briefing))


def test_everything_that_is_approved_is_shown() -> None:
    """The operation with its change and digest, the evidence, the model's words and the issue."""
    text = _text(_briefing())
    for part in (
        "operation   op-6 at version 6: apply_labels",
        "target      local:local#1",
        'before      "triage"\n',
        'after       "bug", "triage"\n',
        'changes     + "bug"\n',
        pending_view().digest,
        "proposed    by the orchestrator, 2026-01-31 12:00 UTC",
        "expires     2126-01-31 12:00 UTC (in ",
        "owners-api by lookup_component_owner (cited)",
        "at builtin@02db005f4e56#owners-api",
        '| {"owner":"backend-team"}',
        "model's text, which nobody has checked (final)\n  route       bug",
        "| It fails.",
        "issue (the digest covers this text)",
        "author      eve",
        "| Orders fail",
        "| Every POST fails.",
    ):
        assert part in text
    assert "warning" not in text


def test_who_has_approved_is_shown() -> None:
    """Where one person is not enough, whoever comes next sees who was there before."""
    none = _text(_briefing(pending=pending_view(approvals_required=2)))
    one = _text(_briefing(pending=pending_view(approvals_required=2, approved_by=("ann",))))
    assert "approvals   0 of 2 are given\n" in none
    assert "approvals   1 of 2 are given, by ann\n" in one
    assert "approvals" not in _text(_briefing())


def test_another_text_than_the_issue_s_is_shown() -> None:
    """Where the model was given an edited or another text, the reviewer sees that one too."""
    same = _text(_briefing())
    other = _text(_briefing(request=ShownRequest("Orders fail now", HOSTILE)))
    assert "what the model was given" not in same
    assert "what the model was given\n  title\n    | Orders fail now\n" in other
    assert other.endswith("warning: the model was given another text than the issue's, see above")


@pytest.mark.parametrize(
    ("before", "now", "changes"),
    [
        ((), ("Bug", "triage"), "none: the issue has these labels by now"),
        ((), ("triage",), '+ "bug"'),
        (("triage",), ("triage", "urgent"), '+ "bug"'),
    ],
    ids=["all-there", "one-there", "more"],
)
def test_labels_that_came_since_are_shown(
    before: tuple[str, ...], now: tuple[str, ...], changes: str
) -> None:
    """What still changes is told by the labels that the issue has now, and that they changed."""
    issue = replace(_issue(), labels=now)
    pending = pending_view(labels_before=before, labels_after=("bug", "triage"))
    text = _text(_briefing(pending=pending, issue=ShownIssue(issue, is_covered=True)))
    shown = ", ".join(f'"{label}"' for label in now)
    assert f"now         {shown}\n  after then" in text
    assert f"changes     {changes}\n  digest" in text
    assert "warning: the issue's labels are others than when this was proposed" in text


def test_a_label_that_goes_is_shown() -> None:
    """A change is what differs, whichever way."""
    pending = pending_view(labels_before=("a", 'b", "c'), labels_after=("a", "d"))
    text = _text(_briefing(pending=pending, issue=Gone("elsewhere")))
    assert 'changes     - "b\\", \\"c"\n              + "d"\n' in text


@pytest.mark.parametrize(
    "where", ["body", "title", "request", "reason", "evidence", "author", "names"]
)
def test_no_text_of_a_stranger_stands_where_ours_does(where: str) -> None:
    """Its lines stay behind a bar or in quotes, within the terminal, and drive nothing."""
    content = json.dumps({"note": HOSTILE}).encode()
    odd = evidence_view(id=HOSTILE[:60], locator=HOSTILE, tool=HOSTILE[:40])
    briefing = {
        "body": _briefing(issue=ShownIssue(_issue(body=HOSTILE), is_covered=True)),
        "title": _briefing(issue=ShownIssue(_issue(title=HOSTILE), is_covered=True)),
        "request": _briefing(request=ShownRequest(HOSTILE, HOSTILE)),
        "author": _briefing(issue=ShownIssue(_issue(author=HOSTILE), is_covered=True)),
        "reason": _briefing(model=ModelText("final", HOSTILE, HOSTILE, (), (), HOSTILE)),
        "evidence": _briefing(evidence=(ShownEvidence(evidence_view(), content),)),
        "names": _briefing(
            pending=pending_view(operation_id=HOSTILE, labels_after=(HOSTILE,)),
            evidence=(ShownEvidence(odd, Gone("it is not in this database")),),
        ),
    }[where]
    lines = _text(briefing).splitlines()
    plain = _text(_briefing(request=ShownRequest("Another", "Another"))).splitlines()
    ours = {line for line in plain if not line.startswith(" ")}
    assert [] == [line for line in lines if not line.startswith(" ") and line not in ours]
    assert all(len(line) <= COLUMNS and line.isprintable() for line in lines)
    assert not any(line.lstrip().startswith("digest      ") for line in lines)


def test_long_text_is_cut_and_says_so() -> None:
    """Whoever approves sees that there is more, and how to read it."""
    text = _text(_briefing(issue=ShownIssue(_issue(body="word " * 10_000), is_covered=True)))
    assert "cut: it has 50,000 characters" in text
    assert "all of it: triage issues show 1 --repository local" in text
    assert len(text.splitlines()) < 70


def test_many_lines_are_cut_too() -> None:
    """A text of short lines does not push the rest off the screen."""
    text = _text(_briefing(issue=ShownIssue(_issue(body="x\n" * 500), is_covered=True)))
    assert MAX_LINES == text.count(f"{BAR}x\n")
    assert "cut: it has 1,000 characters" in text


def test_what_cannot_be_shown_is_named() -> None:
    """Nothing is left out in silence: each part says why it is not there."""
    gone = Gone("its content has expired")
    briefing = _briefing(
        evidence=(ShownEvidence(evidence_view(), gone),),
        model=Gone("not readable here"),
        request=Gone("another version of this program stored it"),
        issue=Gone("look at it in its tracker"),
        stops=Gone("there is no database"),
    )
    text = _text(briefing)
    for part in (
        "    unavailable: its content has expired",
        "model's text: unavailable: not readable here",
        "issue: unavailable: look at it in its tracker",
        "what the model was given: unavailable: another version of this program",
        "warning: whether writes are stopped cannot be seen here: there is no",
    ):
        assert part in text
    document = briefing.to_json()
    assert {"unavailable": "look at it in its tracker"} == document["issue"]


def test_what_speaks_against_it_is_a_warning() -> None:
    """A changed issue and stopped writes stand last, where the decision is typed."""
    when = datetime(2026, 1, 31, 12, 34, tzinfo=UTC)
    stop = Switch(tenant=None, stopped=True, by="ann", reason="wrong labels", changed_at=when)
    text = _text(_briefing(issue=ShownIssue(_issue(), is_covered=False), stops=(stop,)))
    assert "issue (NOT what the digest covers)" in text
    *_, changed, why, stopped, rest = text.splitlines()
    assert changed.startswith("warning: the issue shown here is not the one")
    assert "state_conflict" in why
    assert "warning: writes are stopped for everybody, by ann at 2026-01-31 12:34" == stopped
    assert "         UTC: wrong labels" == rest


@pytest.mark.parametrize(
    ("approvers", "required", "author", "said"),
    [
        (("ann", "bob"), 2, "Bob", "2 have to approve this, and only ann may"),
        (("bob",), 1, "bob", "1 have to approve this, and nobody may"),
        (("ann", "bob"), 2, "eve", ""),
        (("ann", "bob"), 1, "bob", ""),
        ((), 2, "bob", ""),
        (("ann", "bob"), 2, "", ""),
    ],
    ids=["the author is one", "the only one", "another author", "one is enough", "anybody", "?"],
)
def test_approvals_that_can_never_be_enough_are_told(
    approvers: tuple[str, ...], required: int, author: str, said: str
) -> None:
    """Where the author is one of those whom the rules name, it is seen before days of waiting."""
    briefing = _briefing(
        pending=pending_view(approvals_required=required),
        issue=ShownIssue(_issue(author=author), is_covered=True),
        approvers=approvers,
    )
    text = " ".join(_text(briefing).split())
    assert (said in text, bool(said)) == (True, "author never counts" in text)
    assert bool(said) == briefing.to_json()["too_few_may_approve"]


def test_as_data_nothing_is_cut() -> None:
    """Programs get whole texts, what is added, and what is cited."""
    body = "word " * 10_000
    shown = _briefing(issue=ShownIssue(_issue(body=body), is_covered=True))
    document: Any = shown.to_json()
    issue, [evidence] = document["issue"], document["evidence"]
    assert body == issue["body"]
    assert ("triage-1", ["bug"], []) == (
        document["workflow_id"],
        document["adds"],
        document["removes"],
    )
    assert (True, {"owner": "backend-team"}) == (evidence["cited"], evidence["content"])
    assert False is document["model"]["verified"]
    assert document == json.loads(json.dumps(document))


@pytest.mark.parametrize(
    ("issue", "told"),
    [
        (ShownIssue(_issue(), is_covered=True), None),
        (ShownIssue(_issue(), is_covered=False), reviewing.UNCOVERED),
        (Gone("the tracker has no such issue"), reviewing.UNSEEN),
    ],
    ids=["covered", "another", "gone"],
)
def test_nothing_unseen_is_approved(issue: ShownIssue | Gone, told: str | None) -> None:
    """An issue that is another one, or that cannot be shown, is approved on purpose only."""
    problem = reviewing._against(_briefing(issue=issue))
    assert told == (problem and str(problem).partition(" (")[0])
    assert (problem is None) or "--anyway" in problem.hint


@pytest.mark.parametrize("signs", [False, True])
def test_the_line_to_type_signs_where_it_must(*, signs: bool) -> None:
    """Nobody is given a line whose approval cannot count."""
    line = review_hint(_briefing(signs=signs))
    assert "waits for a person: triage approve triage-1 op-6 --version 6" in line
    assert signs == line.endswith(" --sign")


@pytest.mark.parametrize(
    ("settings", "signs"),
    [
        ({}, False),
        ({"local_trust": False}, True),
        ({"keyring": Path("/k.json")}, True),
        ({"keyring": Path("/k.json"), "local_trust": True}, False),
    ],
    ids=["none", "no-trust", "keyring", "trust"],
)
def test_settings_say_who_signs(settings: dict[str, Any], *, signs: bool) -> None:
    """Where the run's own trust cannot be read, the settings decide which line is given."""
    assert signs == signs_by_settings(Settings(**settings))
