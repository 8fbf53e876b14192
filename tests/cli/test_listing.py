"""Checks what `triage list --pending` says of each run, without a server."""

from __future__ import annotations

import pytest

from tests.cli.samples import pending_view
from triage.cli import listing, pending
from triage.cli.listing import NOTHING, operation_cells, waiting_json
from triage.cli.output import Format
from triage.cli.pending import Waiting


def test_what_a_run_waits_for_is_one_row() -> None:
    """The operation, its version, what it adds, where, and until when."""
    cells = operation_cells(pending_view(labels_after=("a, b", "bug", "triage")))
    assert ("op-6", "6", '"a, b", "bug"', "local#1") == cells[:4]
    assert cells[4].startswith("2126-01-31 12:00 UTC (in ")


@pytest.mark.parametrize("why", [pending.NO_WORKER, pending.NOT_ASKED, None])
def test_a_run_that_cannot_be_asked_says_so(why: str | None) -> None:
    """Its row stays, with the reason in the operation's place; JSON has it as `unasked`."""
    assert (why or NOTHING, "", "", "", "") == operation_cells(why)
    assert {"pending": None, "unasked": why} == waiting_json(why)


def test_answers_are_read_as_what_they_are() -> None:
    """An operation, nothing, or the answer of another version of this program."""
    view = pending_view()
    assert view == pending.read_pending(view.model_dump_json().encode())
    assert pending.read_pending(b"null") is None
    assert pending.ANOTHER_VERSION == pending.read_pending(b'{"operation_id": "op-6"}')


def test_a_list_that_is_cut_says_no_more_than_that(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Runs that go on stand before later ones that ended: those shown need not be the latest."""

    async def rows(limit: int, *, pending_only: bool) -> tuple[list[listing.Row], list[Waiting]]:
        assert not pending_only
        return [{}] * limit, []

    monkeypatch.setattr(listing, "_rows", rows)
    listing.list_runs(pending_only=False, limit=2, format_=Format.JSON)
    expected = "only the first 2 are shown; --limit shows more, if there are more\n"
    assert expected == capsys.readouterr().err


def test_approvals_that_can_never_be_enough_are_told_under_the_table() -> None:
    """With the run's id and the reason; of a run that can be approved nothing is said."""
    row: listing.Row = {"workflow_id": "issue-1", "too_few_may_approve": True, "may_approve": []}
    told = " ".join(listing.warnings_of(row, pending_view(approvals_required=2)))
    assert told.startswith("warning: issue-1: 2 have to approve this, and nobody may")
    assert [] == [*listing.warnings_of({**row, "too_few_may_approve": False}, pending_view())]
    assert [] == [*listing.warnings_of(row, None)]
