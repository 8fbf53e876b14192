"""A rules file with mistakes of many kinds: all are named at once, and none that is not there."""

from __future__ import annotations

import pytest

from triage.policy.rules_file import RulesFileError, read_rules
from triage.policy.tools import BUILTIN_TOOLS

TOOLS = [spec.name for spec in BUILTIN_TOOLS]


def _refused(text: str) -> RulesFileError:
    with pytest.raises(RulesFileError) as error:
        read_rules(text, TOOLS)
    return error.value


def test_mistakes_of_all_kinds_are_named_at_once() -> None:
    """What is missing, of the wrong shape, or at odds with the rest: none hides another."""
    text = (
        '[policy]\nroutes = ["bug"]\nmode = "x"\n[labels]\nbug = "descriptive"\nci = "magic"\n'
        '[owners."a"]\nlabels = ["bug"]\n[owners."b"]\nowner = "o"\nlabels = ["ci"]\n'
        "[tools]\nrun_shell = true\n"
    )
    assert [
        "policy.routes",
        "policy.mode",
        "owners.a.owner",
        "owners.b.labels",
        "tools.run_shell",
    ] == [one.where for one in _refused(text).findings]
    assert ["labels.ci"] == [one.where for one in _refused(text).warnings]


HIDDEN = {
    "an unknown table": (
        '[x]\n[policy]\n[topics.y]\nroute = "vip"\nowner = "o"\n',
        ["x", "topics.y.route"],
    ),
    "hours": (
        '[approvals]\nwindow_hours = "x"\nrequired = 3\napprovers = ["eve", "EVE"]\n',
        ["approvals.window_hours", "approvals.required", "approvals.approvers"],
    ),
    "another label": (
        '[labels]\nbug = 1\n[owners.b]\nowner = "o"\nlabels = ["bug", "ci"]\n',
        ["labels.bug", "owners.b.labels"],
    ),
    "a label in other letters": (
        '[labels]\nbug = 1\nBUG = "control"\n',
        ["labels.bug", "labels.BUG"],
    ),
    "what is no tool": ('[tools]\nrun_shell = "no"\n', ["tools.run_shell", "tools.run_shell"]),
    "an owner without name": (
        '[owners.a]\nlabels = ["no"]\n',
        ["owners.a.owner", "owners.a.labels"],
    ),
    "a topic without owner": ('[topics.a]\nroute = "vip"\n', ["topics.a.owner", "topics.a.route"]),
    "a repository in other letters": (
        '[repositories]\n"a/b" = "on"\n"A/B" = "shadow"\n',
        ['repositories."a/b"', 'repositories."A/B"'],
    ),
    "a name that is none": (
        '[labels]\n" " = 1\n[tools]\nrun_shell = true\n',
        ['labels." "', "tools.run_shell"],
    ),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_no_mistake_hides_another(name: str) -> None:
    """What can be judged beside a mistake is judged at once, and nothing has to be found twice."""
    text, expected = HIDDEN[name]
    assert sorted(expected) == sorted(one.where for one in _refused(text).findings)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('[lables]\nbug = "descriptive"\n[owners."b"]\nowner = "o"\nlabels = ["bug"]\n', "lables"),
        ('[labels]\nbug = 1\n[owners."b"]\nowner = "o"\nlabels = ["bug"]\n', "labels.bug"),
        ('[policy]\nroutes = 1\n[topics.x]\nroute = "vip"\nowner = "o"\n', "policy.routes"),
    ],
    ids=("an unknown table", "a label", "the routes"),
)
def test_a_mistake_makes_no_others(text: str, found: str) -> None:
    """What is wrong only because something else is unreadable is not called wrong."""
    assert [found] == [one.where for one in _refused(text).findings]
