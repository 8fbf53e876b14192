"""Which labels the files of well-known bots tell these to listen to."""

from __future__ import annotations

from pathlib import Path

import pytest

from triage.automation.bot_files import bot_uses
from triage.automation.bots import BOTS, Bot
from triage.automation.nodes import NotYamlError
from triage.automation.patterns import pattern
from triage.automation.scan import MAX_FILES, scan
from triage.automation.uses import Match, Weight

Found = list[tuple[int, str, str]]
NAME = "github.event.label.name"


def _bot(name: str) -> Bot:
    [bot] = [bot for bot in BOTS if bot.name == name]
    return bot


FILES: dict[str, tuple[str, str, Found]] = {
    "mergify": (
        "mergify",
        """\
pull_request_rules:
  - conditions:
      - label=ready to merge
      - -label = "wip"
      - or: ["label!=hold", "label~=^backport/"]
      - base=main
      - "#label>=1"
      - "label~=(a|b)"
    actions:
      label: {add: [seen]}
      comment: {message: label=x}
queue_rules:
  - queue_conditions: [label=queue]
""",
        [
            (3, "exact", "ready to merge"),
            (4, "exact", "wip"),
            (5, "exact", "hold"),
            (5, "prefix", "backport/"),
            (7, "any", ""),
            (8, "any", ""),
            (13, "exact", "queue"),
        ],
    ),
    "kodiak": (
        "kodiak",
        (
            'version = 1\n[merge]\nautomerge_label = ["go", "ship"]\nblocking_labels = ["wip"]\n'
            '[update]\nautoupdate_label = "update"\n[merge.message]\ntitle = "x"\n'
        ),
        [(3, "exact", "go"), (3, "exact", "ship"), (4, "exact", "wip"), (6, "exact", "update")],
    ),
    "kodiak without a word": ("kodiak", "version = 1\n", [(1, "exact", "automerge")]),
    "bors": ("bors", 'block_labels = ["wip"]\n', [(1, "exact", "wip")]),
    "renovate": (
        "renovate",
        '{\n  // a comment\n  labels: ["dependencies"],\n  "rebaseLabel": "again",\n}\n',
        [(1, "exact", "stop-updating"), (4, "exact", "again")],
    ),
    "dependabot": ("dependabot", "updates:\n  - labels: [dependencies]\n", []),
    "tide": (
        "tide",
        (
            "tide:\n  queries:\n    - labels: [lgtm, approved]\n      missingLabels:\n"
            "        - do-not-merge/hold\n  squash_label: tide/squash\n"
        ),
        [
            (3, "exact", "approved"),
            (3, "exact", "lgtm"),
            (5, "exact", "do-not-merge/hold"),
            (6, "exact", "tide/squash"),
        ],
    ),
    "stale": (
        "stale",
        "staleLabel: old\nexemptLabels: [pinned]\nissues:\n  exemptLabels: [roadmap]\n",
        [(1, "exact", "old"), (2, "exact", "pinned"), (4, "exact", "roadmap")],
    ),
    "stale with a file elsewhere": (
        "stale",
        "_extends: .github\n",
        [(1, "any", ""), (1, "exact", "wontfix")],
    ),
    "no response": (
        "no-response",
        "daysUntilClose: 7\n",
        [(1, "exact", "more-information-needed")],
    ),
    "settings": ("settings", "labels:\n  - name: bug\n", []),
    "labeler": ("labeler", "docs:\n  - changed-files: [docs/**]\n", []),
    "label actions": (
        "label actions",
        "support:\n  close: true\n-support:\n  reopen: true\n",
        [(1, "exact", "support"), (3, "exact", "support")],
    ),
    "release drafter": (
        "release drafter",
        (
            "version-resolver:\n  major:\n    labels: [breaking]\ncategories:\n  - label: bug\n"
            "  - labels: [feature]\nexclude-labels: [skip]\nautolabeler:\n  - label: docs\n"
        ),
        [
            (3, "exact", "breaking"),
            (5, "sorts", "bug"),
            (6, "sorts", "feature"),
            (7, "sorts", "skip"),
        ],
    ),
    "release notes": (
        "release notes",
        (
            "changelog:\n  exclude:\n    labels: [skip]\n  categories:\n    - labels: [bug]\n"
            "    - labels: ['*']\n"
        ),
        [(3, "sorts", "skip"), (5, "sorts", "bug")],
    ),
    "auto-merge": (
        "auto-merge",
        "rules:\n  - requiredLabels: [merge]\n    blockingLabels: [blocked]\n",
        [(2, "exact", "merge"), (3, "exact", "blocked")],
    ),
    "bulldozer": (
        "bulldozer",
        "merge:\n  trigger:\n    labels: [merge when ready]\n  ignore:\n    labels: [hold]\n",
        [(3, "exact", "merge when ready"), (5, "exact", "hold")],
    ),
    "policy-bot": (
        "policy-bot",
        "approval_rules:\n  - if:\n      has_labels: [fast]\n",
        [(3, "exact", "fast")],
    ),
    "empty": ("stale", "", [(1, "exact", "wontfix")]),
    "another shape": ("label actions", "- x\n", []),
}


@pytest.mark.parametrize("name", FILES)
def test_a_bot_s_file_names_what_it_listens_to(name: str) -> None:
    """Labels are found with their lines, those that a bot assumes and only sorts by included."""
    bot, text, expected = FILES[name]
    uses = [*bot_uses("file", _bot(bot), text.encode())]
    assert expected == sorted(
        (use.line, "sorts" if use.weight is Weight.SORTS else use.match.value, use.text)
        for use in uses
    )


@pytest.mark.parametrize("bot", [bot.name for bot in BOTS if bot.form != "lines"])
@pytest.mark.parametrize("data", [b"[", b"\xff\xff\xff", b"a: *b"])
def test_a_broken_file_is_refused(bot: str, data: bytes) -> None:
    """What cannot be read is an error of ours, for every bot."""
    with pytest.raises(NotYamlError):
        list(bot_uses("file", _bot(bot), data))


@pytest.mark.parametrize("value", ["9" * 5_000, "[" * 5_000], ids=["digits", "nesting"])
def test_a_file_that_asks_too_much_is_refused(value: str) -> None:
    """A repository's file may hold anything: it is refused as one that is not TOML."""
    bot = next(bot for bot in BOTS if bot.form == "toml")
    with pytest.raises(NotYamlError):
        list(bot_uses("file", bot, f"a = {value}\n".encode()))


PATTERNS = {
    "^deploy$": (Match.EXACT, "deploy"),
    "^deploy/": (Match.PREFIX, "deploy/"),
    "^v1\\.x": (Match.PREFIX, "v1.x"),
    "/done$": (Match.SUFFIX, "/done"),
    "wip": (Match.PART, "wip"),
    "^backport ([^ ]+)$": (Match.PREFIX, "backport "),
    "^colou?r$": (Match.PREFIX, "colo"),
    "^a|b$": (Match.ANY, ""),
    "(?i)wip": (Match.ANY, ""),
    "w.p": (Match.ANY, ""),
    "": (Match.ANY, ""),
    "^": (Match.ANY, ""),
}


@pytest.mark.parametrize("expression", PATTERNS)
def test_a_pattern_is_never_taken_for_less(expression: str) -> None:
    """A regular expression is what its plain part says, or any label; it is not run."""
    assert PATTERNS[expression] == pattern(expression)


def _put(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_a_repository_is_looked_through(tmp_path: Path) -> None:
    """Workflows, actions and bots are read where they are looked for; anything else is not."""
    _put(
        tmp_path,
        **{
            ".github/workflows/a.yml": "on: issues\njobs: {a: {steps: []}}\n",
            ".github/workflows/b.yaml": "on: [",
            ".github/workflows/deep/c.yml": "on: issues\njobs: {a: {steps: []}}\n",
            ".github/actions/x/y/action.yml": f"runs: {{steps: [{{if: {NAME} == 'y'}}]}}\n",
            ".github/stale.yml": "staleLabel: old\n",
            "prow/a/config.yaml": "tide: {queries: [{labels: [lgtm]}]}\n",
            "other.yml": "on: issues\n",
        },
    )
    found = scan(tmp_path)
    assert (
        ".github/actions/x/y/action.yml",
        ".github/stale.yml",
        ".github/workflows/a.yml",
        ".github/workflows/b.yaml",
        "prow/a/config.yaml",
    ) == found.files
    assert [".github/workflows/b.yaml:1: is not YAML"] == [str(one) for one in found.problems]
    assert {"y", "old", "", "lgtm"} == {use.text for use in found.uses}


def test_what_is_no_regular_file_is_a_finding(tmp_path: Path) -> None:
    """A link that leads nowhere, to a folder or to a device keeps nobody waiting."""
    folder = tmp_path / ".github" / "workflows"
    folder.mkdir(parents=True)
    for name, target in {"a": "nowhere", "b": "/dev/zero", "c": str(tmp_path)}.items():
        (folder / f"{name}.yml").symlink_to(target)
    found = scan(tmp_path)
    assert ["is no regular file"] * 3 == [problem.message for problem in found.problems]


def test_too_large_and_too_many_are_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not looked at is said."""
    assert MAX_FILES > 1_000
    monkeypatch.setattr("triage.automation.scan.MAX_FILES", 2)
    big = {f".github/workflows/{n}.yml": "#" * 600_000 for n in range(3)}
    _put(tmp_path, **big)
    assert [
        ".: has more than 2 such files",
        ".github/workflows/0.yml: has more than 524,288 bytes",
        ".github/workflows/1.yml: has more than 524,288 bytes",
    ] == [str(problem) for problem in scan(tmp_path).problems]
