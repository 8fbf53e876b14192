"""Which labels workflows listen to: by what starts them, and by what their jobs ask."""

from __future__ import annotations

import textwrap

import pytest

from triage.automation.actions import BY_DEFAULT, TOLD, UNKNOWN_LABELS
from triage.automation.nodes import read_yaml
from triage.automation.uses import Match
from triage.automation.workflows import (
    ASKS,
    ASKS_OPEN,
    PASSES_ON,
    RUNS_FOR_ALL,
    SCRIPT,
    UNREADABLE,
    workflow_uses,
)

Found = list[tuple[int, str, str, str]]
ANY = "any"
STEP = "    steps: [{run: make}]"
X = "github.event.label.name == 'x'"


def _uses(text: str) -> Found:
    [document] = read_yaml(textwrap.dedent(text).encode())
    return sorted(
        (use.line, use.match.value, use.text, use.why) for use in workflow_uses("w.yml", document)
    )


TRIGGERS = {
    "on: {pull_request: {types: [labeled]}}": True,
    "on: {pull_request_target: {types: [opened, labeled]}}": True,
    "on: {issues: {types: labeled}}": True,
    "on: {issues: {types: [unlabeled]}}": True,
    "on: issues": True,
    "on: [push, issues]": True,
    "on: {issues: }": True,
    "on: {discussion: }": True,
    "'on': {issues: {types: [labeled]}}": True,
    "on: {issues: {types: [opened]}}": False,
    "on: pull_request": False,
    "on: {pull_request: {branches: [main]}}": False,
    "on: {push: {types: [labeled]}}": False,
    "on: workflow_dispatch": False,
    "name: without any": False,
}


@pytest.mark.parametrize("trigger", TRIGGERS)
def test_a_job_that_any_label_starts_is_found(trigger: str) -> None:
    """A job without a condition runs for every label, where the event comes for labels at all."""
    uses = _uses(f"{trigger}\njobs:\n  build:\n{STEP}\n")
    expected = [(3, ANY, "", RUNS_FOR_ALL)] if TRIGGERS[trigger] else []
    assert expected == uses


def _labeled(*lines: str) -> str:
    return "\n".join(["on: {pull_request: {types: [labeled]}}", "jobs:", "  one:", *lines, ""])


JOBS: dict[str, tuple[str, Found]] = {
    "for one label": (_labeled(f"    if: {X}", STEP), [(4, "exact", "x", ASKS)]),
    "with the signs around": (
        _labeled(f"    if: ${{{{ {X} }}}}", STEP),
        [(4, "exact", "x", ASKS)],
    ),
    "for a kind of labels": (
        _labeled("    if: startsWith(github.event.label.name, 'run/')", STEP),
        [(4, "prefix", "run/", ASKS)],
    ),
    "for any but one": (
        _labeled("    if: github.event.label.name != 'x'", STEP),
        [(4, ANY, "", RUNS_FOR_ALL), (4, "exact", "x", ASKS)],
    ),
    "for a label that varies": (
        _labeled("    if: github.event.label.name == vars.LABEL", STEP),
        [(4, ANY, "", ASKS_OPEN), (4, ANY, "", RUNS_FOR_ALL)],
    ),
    "after a job for one label": (
        _labeled(f"    if: {X}", STEP, "  two:", "    needs: [one]", STEP),
        [(4, "exact", "x", ASKS)],
    ),
    "after it, whatever became of it": (
        _labeled(f"    if: {X}", STEP, "  two:", "    needs: one", "    if: always()", STEP),
        [(4, "exact", "x", ASKS), (8, ANY, "", RUNS_FOR_ALL)],
    ),
    "after itself": (_labeled("    needs: one", STEP), [(3, ANY, "", RUNS_FOR_ALL)]),
    "with each step for a label": (
        _labeled("    steps:", f"      - if: {X}", f"      - {{if: {X}, run: b}}"),
        [(5, "exact", "x", ASKS), (6, "exact", "x", ASKS)],
    ),
    "with one step for a label": (
        _labeled("    steps:", "      - run: a", f"      - {{if: {X}, run: b}}"),
        [(3, ANY, "", RUNS_FOR_ALL), (6, "exact", "x", ASKS)],
    ),
    "with a broken condition": (
        _labeled("    if: github.event.label.name == ", STEP),
        [(4, ANY, "", RUNS_FOR_ALL), (4, ANY, "", UNREADABLE)],
    ),
    "and passes it on": (
        _labeled(f"    if: {X}", "    env: {L: '${{ github.event.label.name }}'}", STEP),
        [(4, "exact", "x", ASKS)],
    ),
    "that is a workflow of its own": (
        _labeled("    uses: ./.github/workflows/other.yml"),
        [(3, ANY, "", RUNS_FOR_ALL)],
    ),
}


@pytest.mark.parametrize("name", JOBS)
def test_a_job_is_held_to_its_condition(name: str) -> None:
    """Labels that a job runs for are found with their lines; what may run for any is said."""
    text, expected = JOBS[name]
    assert expected == _uses(text)


def _pushed(*lines: str) -> str:
    return "\n".join(["on: push", "jobs:", "  one:", *lines, ""])


ASKED: dict[str, tuple[str, Found]] = {
    "in a step": (
        _pushed("    steps:", f"      - {{if: {X}, run: a}}"),
        [(5, "exact", "x", ASKS)],
    ),
    "in a script": (
        _pushed(
            "    steps:",
            "      - run: |",
            "          echo 1",
            "          echo ${{ contains(github.event.issue.labels.*.name, 'x') }}",
        ),
        [(7, "exact", "x", ASKS)],
    ),
    "handed to a script": (
        _pushed("    steps: [{run: 'echo ${{ github.event.label.name }}'}]"),
        [(4, ANY, "", PASSES_ON)],
    ),
    "by a script of GitHub's": (
        _pushed(
            "    steps:",
            "      - uses: actions/github-script@v7",
            "        with:",
            "          script: |",
            "            if (context.payload.label.name === 'x') go()",
        ),
        [(8, ANY, "", SCRIPT)],
    ),
    "by a shell": (
        _pushed("    steps:", "      - run: jq -r '.label.name' < $GITHUB_EVENT_PATH"),
        [(5, ANY, "", SCRIPT)],
    ),
    "in the environment of all": (
        "on: push\nenv:\n  L: ${{ toJSON(github.event.pull_request.labels) }}\njobs: {}\n",
        [(3, ANY, "", PASSES_ON)],
    ),
    "in a composite action": (
        f"runs:\n  using: composite\n  steps:\n    - if: {X}\n      run: a\n",
        [(4, "exact", "x", ASKS)],
    ),
    "never ending": (
        _pushed("    steps: [{run: 'echo ${{ github.event.label.name'}]"),
        [(4, ANY, "", PASSES_ON)],
    ),
    "nowhere": (
        _pushed(
            "    labels: [x]", "    steps: [{run: 'docker build --label x ${{ github.sha }}'}]"
        ),
        [],
    ),
}


@pytest.mark.parametrize("name", ASKED)
def test_what_is_asked_anywhere_is_found(name: str) -> None:
    """Whatever starts a workflow, a label that it asks for is found where it asks."""
    text, expected = ASKED[name]
    assert expected == _uses(text)


ACTIONS: dict[str, tuple[str, Found]] = {
    "stale": (
        (
            "uses: Actions/stale@v9\n"
            "        with:\n"
            "          exempt-issue-labels: 'pinned, security'\n"
            "          stale-issue-label: old\n"
        ),
        [
            (5, "exact", "Stale", BY_DEFAULT),
            (7, "exact", "pinned", TOLD),
            (7, "exact", "security", TOLD),
            (8, "exact", "old", TOLD),
        ],
    ),
    "merge": (
        (
            "uses: pascalgn/automerge-action@v0\n"
            "        env:\n"
            "          MERGE_LABELS: ready,!wip\n"
            "          UPDATE_LABELS: ${{ vars.L }}\n"
        ),
        [(7, "exact", "ready", TOLD), (7, "exact", "wip", TOLD), (8, ANY, "", UNKNOWN_LABELS)],
    ),
    "backport": (
        "uses: korthout/backport-action@v3\n",
        [(5, "prefix", "backport ", BY_DEFAULT)],
    ),
    "required": (
        (
            "uses: mheap/github-action-required-labels@v5\n"
            "        with:\n"
            "          labels: |\n"
            "            semver:minor\n"
            "            semver:major\n"
        ),
        [(8, "exact", "semver:minor", TOLD), (9, "exact", "semver:major", TOLD)],
    ),
    "unknown": ("uses: some/action@v1\n        with: {labels: x}\n", []),
}


@pytest.mark.parametrize("name", ACTIONS)
def test_known_actions_are_asked_what_they_look_for(name: str) -> None:
    """Labels in the inputs of well-known actions, and those that these assume, are found."""
    step, expected = ACTIONS[name]
    assert expected == _uses(f"on: push\njobs:\n  one:\n    steps:\n      - {step}")


@pytest.mark.parametrize(
    "text", ["[]", "x", "on: push", "jobs: []", "jobs: {a: [], b: x}", "on: {1: }"]
)
def test_what_is_no_workflow_listens_to_nothing(text: str) -> None:
    """Files of another shape are no error."""
    assert [] == _uses(text)


def test_matches_cover_labels_without_case() -> None:
    """A use is about every label that GitHub would take for it."""
    [document] = read_yaml(_labeled(f"    if: {X.upper().replace('X', 'Ready')}", STEP).encode())
    [use] = workflow_uses("w.yml", document)
    assert (Match.EXACT, True, False) == (use.match, use.covers("rEADY"), use.covers("ready2"))
