"""`triage undo` shows, asks, and takes off what a write put on, here on the local tracker."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.cli.conftest import Answer
from tests.cli.in_process import Typed
from tests.cli.stored import in_store
from tests.unit.storage.samples import approval, operation
from triage.cli.undo_rights import why_not
from triage.contracts.canonical import canonical_json
from triage.policy.rules import BUILTIN_RULES
from triage.storage.approvals import ApprovalSource
from triage.storage.engine import Store
from triage.storage.ledger import Ledger
from triage.storage.operations import Reserved
from triage.storage.switches import Switches
from triage.storage.transitions import OperationState as S
from triage.trackers.abilities import OwnWrite
from triage.trackers.local import LocalTracker
from triage.trackers.undo import Undo, undo_row

KEY = "op_1"
TRUSTS = {"TRIAGE_LOCAL_TRUST": "true"}


@pytest.fixture
def typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Typed:
    """Commands, and one applied write of two labels on issue 1, which eve opened."""
    in_store(tmp_path, _applied)
    return Typed(tmp_path, monkeypatch, capsys)


async def _applied(store: Store) -> None:
    tracker, ledger = LocalTracker(store), Ledger(store)
    await tracker.seed_labels("local", ["bug", "component:api", "vip"])
    await tracker.create_issue("local", title="It fails", body="", author="eve", number="1")
    await tracker.add_label("local", "1", "vip", by="ann")
    target = {"tracker": "local", "repository": "local", "issue": "1"}
    values = {"target": canonical_json(target).decode(), "scope": "5c0fe" * 6 + "ab"}
    row = operation(KEY, ("bug", "component:api"), **values)
    claimed = await ledger.reserve(row, approval(row, source=ApprovalSource.SIGNAL))
    assert isinstance(claimed, Reserved)
    assert await ledger.dispatch(KEY, claimed.epoch)
    await tracker.add_labels("local", "1", row.labels, by="bounded-triage", operation_key=KEY)
    assert await ledger.settle(KEY, claimed.epoch, S.APPLIED, b"{}")


def _labels(typed: Typed) -> list[str]:
    labels: list[str] = typed("issues", "show", "1", "--format", "json").json()["labels"]
    return labels


def _undo(typed: Typed, *more: str, env: Mapping[str, str] = TRUSTS) -> Answer:
    return typed("undo", KEY, "--as", "ann", *more, env=env)


def test_it_shows_and_does_nothing_where_nobody_can_be_asked(typed: Typed) -> None:
    """What would become of each label is told; without --yes that is all, and no success."""
    answer = _undo(typed)
    assert (1, "error: nothing was done: --yes does it\n") == (answer.status, answer.err)
    assert ["bug", "component:api"] == [
        w for w in answer.out.split() if w in {"bug", "component:api"}
    ]
    program = _undo(typed, "--format", "json")
    shown = program.json()
    assert (1, answer.err) == (program.status, program.err)
    assert (None, {"bug": "take_off", "component:api": "take_off"}) == (
        shown["ending"],
        shown["labels"],
    )
    assert ["vip", "bug", "component:api"] == _labels(typed)


def test_it_takes_off_what_it_showed_and_is_listed(typed: Typed) -> None:
    """The person's own label stays, the ledger has the undo, and a repeat does nothing more."""
    answer = _undo(typed, "--yes", "--format", "json").json()
    assert ("done", "ann", KEY) == (
        answer["ending"],
        answer["receipt"]["approval"]["approver"],
        answer["receipt"]["undoes"],
    )
    assert ["vip"] == _labels(typed)
    listed = typed("operations", "--format", "json").json()
    assert [KEY, answer["operation_key"]] == [row["operation_key"] for row in listed]
    again = _undo(typed, "--yes", "--format", "json").json()
    assert ("done_before", answer["receipt"]) == (again["ending"], again["receipt"])
    assert 0 == typed("audit", "verify").status


@pytest.mark.parametrize(("name", "run"), [("op-105", "triage-101"), ("op-105@3", "101")])
def test_a_run_and_its_operation_name_it_too(typed: Typed, name: str, run: str) -> None:
    """With the run's id, or what it was started for, the operation's own id will do."""
    answer = typed("undo", name, "--workflow", run, "--as", "ann", "--yes", env=TRUSTS)
    assert (0, ["vip"]) == (answer.status, _labels(typed)), answer.err


@pytest.mark.parametrize("name", ["op-105", "op-105@3"])
def test_an_id_that_one_run_alone_has_needs_no_run(typed: Typed, name: str) -> None:
    """As lists show it, it is enough; where two runs have it, both are named and none is taken."""

    async def another(store: Store) -> None:
        row = operation("op_9", ("vip",), workflow_id="triage-9", operation_id="op-105", version=3)
        assert isinstance(await Ledger(store).reserve(row, approval(row)), Reserved)

    answer = typed("undo", name, "--as", "ann", "--yes", env=TRUSTS)
    assert (0, ["vip"]) == (answer.status, _labels(typed)), answer.err
    in_store(typed.home, another)
    answer = typed("undo", name, "--as", "ann", "--yes", env=TRUSTS)
    assert (1, "") == (answer.status, answer.out)
    assert f"{name} names several operations" in answer.err
    assert all(f"{key}  op-105@3 of triage-" in answer.err for key in (KEY, "op_9"))
    assert "undone before" in typed("undo", name, "--workflow", "101", env=TRUSTS).out


@pytest.mark.parametrize(
    ("arguments", "env", "told"),
    [
        (("op_2",), TRUSTS, "there is no operation op_2"),
        (("op-105@4",), TRUSTS, "there is no operation op-105@4"),
        (("op-105", "--workflow", "7"), TRUSTS, "there is no operation op-105 of 7"),
        ((KEY, "--as", "Eve"), TRUSTS, "who opened the issue"),
        ((KEY, "--as", "ann"), {"TRIAGE_LOCAL_TRUST": "false"}, "only a signed undo counts"),
        ((KEY, "--as", "helper[bot]"), TRUSTS, "bots decide on no write"),
        ((KEY, "--key", "x"), TRUSTS, "--key names a key to sign with"),
    ],
    ids=["missing", "version", "run", "author", "unsigned", "bot", "key"],
)
def test_what_may_not_be_undone_stays(
    typed: Typed, arguments: tuple[str, ...], env: Mapping[str, str], told: str
) -> None:
    """Each has its sentence, and the labels are where they were."""
    answer = typed("undo", *arguments, "--yes", env=env)
    assert (True, True) == (answer.status in {1, 2}, told in answer.err)
    assert ["vip", "bug", "component:api"] == _labels(typed)


def test_what_is_not_ours_any_more_leaves_nothing_to_undo(typed: Typed) -> None:
    """A person took one off and put the other one on again: both are told."""

    async def acts(store: Store) -> None:
        tracker = LocalTracker(store)
        for label in ("bug", "component:api"):
            await tracker.remove_label("local", "1", label, by="ann")
        await tracker.add_label("local", "1", "bug", by="ann")

    in_store(typed.home, acts)
    answer = _undo(typed, "--yes")
    assert 1 == answer.status
    assert "nothing to undo" in answer.err
    assert '"component:api": not on the issue any more' in answer.err


def test_where_approvals_are_signed_a_signature_undoes(typed: Typed) -> None:
    """A key of the ring counts, and the ledger keeps who signed; a stranger's key does not."""
    ring = typed.home / "keyring.json"
    signs = {"TRIAGE_LOCAL_TRUST": "false", "TRIAGE_KEYRING": str(ring)}
    assert 0 == typed("keys", "new", "ann", env=signs).status
    stranger = typed.home / "stranger.json"
    assert (
        0
        == typed(
            "keys",
            "new",
            "mallory",
            "--key",
            stranger,
            env={"TRIAGE_KEYRING": str(typed.home / "other.json")},
        ).status
    )
    refused = typed("undo", KEY, "--sign", "--key", stranger, "--yes", env=signs)
    assert (1, True) == (refused.status, "the signature does not count" in refused.err), refused
    answer = typed("undo", KEY, "--sign", "--yes", "--format", "json", env=signs)
    assert (0, ["vip"]) == (answer.status, _labels(typed))
    assert "token" == answer.json()["receipt"]["approval"]["source"]
    assert 0 == typed("audit", "verify", env=signs).status


def test_the_rules_of_now_say_who_may() -> None:
    """Named approvers stay the only ones, in any letter case."""
    named = BUILTIN_RULES.model_copy(update={"approvers": ("Ann",)})
    assert why_not("ANN", "eve", named) is None
    assert "the rules name others as approvers" == why_not("bob", "eve", named)


async def _half_undone(store: Store) -> None:
    """An undo that took one of two labels off, and needs a person."""
    tracker, ledger = LocalTracker(store), Ledger(store)
    undo = Undo(ledger, Switches(store), {"local": tracker})
    record = await ledger.get(KEY)
    assert record is not None
    row = undo_row(await undo.plan(record), 1)
    claimed = await ledger.reserve(row, approval(row))
    assert isinstance(claimed, Reserved)
    assert await ledger.dispatch(row.operation_key, claimed.epoch)
    own = OwnWrite(operation_key=KEY, since=record.created_at)
    key = row.operation_key
    await tracker.remove_own_label("local", "1", "bug", own, operation_key=key)
    assert await ledger.mark_unknown(key, claimed.epoch)
    assert await ledger.attention(key, "stopped, and a part of it is undone", "operations")


def test_half_an_undo_is_told_as_that_and_the_rest_can_be_undone(
    typed: Typed, tmp_path: Path
) -> None:
    """Undo names the command that settles it; that tells a part as a part; and undo goes on."""
    in_store(tmp_path, _half_undone)
    [key] = {row["operation_key"] for row in typed("operations", "--format", "json").json()} - {KEY}
    again = _undo(typed)
    assert (1, True) == (again.status, f"'triage operations reconcile {key}'" in again.err)
    early = typed("operations", "reconcile", key)
    assert (1, True) == (early.status, "not all of its labels were taken off" in early.err)
    waits_not = {"TRIAGE_QUIET_PERIOD_SECONDS": "0.001"}
    told = typed("operations", "reconcile", key, "--as", "ann", env=waits_not)
    assert (0, True) == (told.status, "was done in part" in told.out)
    assert 0 == _undo(typed, "--yes").status
    assert ["vip"] == _labels(typed)


def test_an_undo_cannot_be_undone(typed: Typed) -> None:
    """It says so, and sends nobody to look for a service."""
    key = _undo(typed, "--yes", "--format", "json").json()["operation_key"]
    answer = typed("undo", key, "--as", "ann", env=TRUSTS)
    assert (1, True, False) == (
        answer.status,
        "it is an undo itself" in answer.err,
        "doctor" in answer.err,
    )
