"""Where the rules want several people, an undo happens with the consent that makes them enough."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from tests.cli.in_process import Typed
from tests.cli.stored import in_store
from tests.cli.test_undoing import KEY, _applied, _labels
from triage.cli.undo_consents import CONSENT_LIFETIME
from triage.signing.files import KeyringFile
from triage.signing.keys import Keyring
from triage.storage.approvals import ApprovalRow, Approvals
from triage.storage.engine import Store
from triage.trackers.local import LocalTracker

SHOWN: Final = ["vip", "bug", "component:api"]
WAITS: Final = ("counted", "1 of 2 people agree")
UNSIGNED: Final = pytest.mark.parametrize("several", [False], ids=["unsigned"], indirect=True)
SIGNED: Final = pytest.mark.parametrize("several", [True], ids=["signed"], indirect=True)


class Several(Typed):
    """Commands under rules that want two people, signed or not."""

    signs = False

    def rules(self, required: int = 2, window_hours: int = 72) -> None:
        """Write the rules."""
        text = f"[approvals]\nrequired = {required}\nwindow_hours = {window_hours}\n"
        (self.home / "rules.toml").write_text(text, encoding="utf-8")

    def agree(self, who: str) -> Any:  # noqa: ANN401 - a JSON document
        """Let somebody type the command; return its answer."""
        env = {
            "TRIAGE_POLICY": str(self.home / "rules.toml"),
            "TRIAGE_LOCAL_TRUST": str(not self.signs).lower(),
            "TRIAGE_KEYRING": str(self.home / "keyring.json"),
        }
        path = self.home / f"{who}.json"
        if self.signs and not path.exists():
            assert 0 == self("keys", "new", who, "--key", path, env=env).status
        form = ("--sign", "--key", path) if self.signs else ("--as", who)
        answer = self("undo", KEY, *form, "--yes", "--format", "json", env=env)
        assert 0 == answer.status, answer.err
        return answer.json()

    def told(self, who: str) -> tuple[str, str | None]:
        """Let somebody agree; return what that came to."""
        answer = self.agree(who)
        return answer["ending"], answer.get("detail")


@pytest.fixture(params=[False, True], ids=["unsigned", "signed"])
def several(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Several:
    """Commands, and one applied write of two labels on issue 1, which eve opened."""
    in_store(tmp_path, _applied)
    typed = Several(tmp_path, monkeypatch, capsys)
    typed.signs = request.param
    typed.rules()
    return typed


def test_the_second_person_s_consent_takes_the_labels_off(several: Several) -> None:
    """The first one's changes nothing but the audit trail, which counts both."""
    assert WAITS == several.told("ann")
    assert SHOWN == _labels(several)
    done = several.agree("bob")
    assert ("done", ["vip"]) == (done["ending"], _labels(several))
    assert "bob" == done["receipt"]["approval"]["approver"].rpartition(":")[2]
    assert 0 == several("audit", "verify").status


@UNSIGNED
def test_whoever_looks_is_told_how_many_it_takes(several: Several) -> None:
    """Without --yes nothing is put on the trail, and the number is beside the labels."""
    env = {"TRIAGE_POLICY": str(several.home / "rules.toml"), "TRIAGE_LOCAL_TRUST": "true"}
    shown = several("undo", KEY, "--as", "ann", env=env)
    assert (1, True) == (shown.status, "2 people have to agree" in shown.out)
    assert WAITS == several.told("bob")


def test_one_person_is_one_person(several: Several) -> None:
    """However often somebody agrees, others have to."""
    assert [WAITS] * 3 == [several.told("ann") for _ in range(3)]
    assert SHOWN == _labels(several)


@UNSIGNED
def test_two_who_agree_at_once_do_not_wait_for_each_other(
    several: Several, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever counts while another one does finds both, and the labels are taken off once."""
    note = Approvals.note

    async def both(approvals: Approvals, row: ApprovalRow, tenant: str) -> None:
        await note(approvals, replace(row, approver="bob"), tenant)
        await note(approvals, row, tenant)

    with monkeypatch.context() as patched:
        patched.setattr(Approvals, "note", both)
        assert ("done", None) == several.told("ann")
    assert ["vip"] == _labels(several)
    assert 0 == several("audit", "verify").status


@UNSIGNED
def test_a_consent_is_to_what_was_shown(several: Several) -> None:
    """Somebody takes another label off: what is there is not what was agreed to."""

    async def acts(store: Store) -> None:
        await LocalTracker(store).remove_label("local", "1", "vip", by="ann")

    assert WAITS == several.told("ann")
    in_store(several.home, acts)
    assert WAITS == several.told("bob")
    assert ["bug", "component:api"] == _labels(several)


@UNSIGNED
def test_a_consent_is_under_the_rules_of_then(several: Several) -> None:
    """With other rules, whatever they change, all have to agree again."""
    assert WAITS == several.told("ann")
    several.rules(window_hours=71)
    assert WAITS == several.told("bob")
    assert ("done", None) == several.told("ann")


@UNSIGNED
def test_a_consent_does_not_last(several: Several, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a day whoever gave it has to look again."""
    assert WAITS == several.told("ann")
    now = Store.now

    async def later(store: Store, connection: Any) -> Any:  # noqa: ANN401 - as the original
        return await now(store, connection) + CONSENT_LIFETIME + timedelta(seconds=1)

    with monkeypatch.context() as patched:
        patched.setattr(Store, "now", later)
        assert WAITS == several.told("bob")
    assert SHOWN == _labels(several)


@SIGNED
def test_who_has_no_key_any_more_has_not_agreed(several: Several) -> None:
    """A key that left the keyring takes its owner's consent with it."""
    assert WAITS == several.told("ann")
    ring = KeyringFile(several.home / "keyring.json")
    ring.change(lambda keys: Keyring.of([e for e in keys.entries if e.approver != "ann"]))
    assert WAITS == several.told("bob")
    assert SHOWN == _labels(several)


@UNSIGNED
def test_a_name_counts_once_in_any_letters(several: Several) -> None:
    """Ann is ann."""
    assert WAITS == several.told("ann")
    assert WAITS == several.told("ANN")
    assert SHOWN == _labels(several)


@UNSIGNED
def test_what_nobody_signed_does_not_count_where_signatures_do(several: Several) -> None:
    """Not even under the id of somebody who has a key."""
    ring = several.home / "keyring.json"
    several(
        "keys", "new", "carol", "--key", several.home / "c.json", env={"TRIAGE_KEYRING": str(ring)}
    )
    [carol] = KeyringFile(ring).load().entries
    assert WAITS == several.told(carol.subject)
    several.signs = True
    assert WAITS == several.told("bob")
    assert SHOWN == _labels(several)
