"""Well-known bots that are told about labels in files of their own, and where in these.

A place is the path of keys to a label or a list of labels; lists on the way do not count, and ``*``
stands for any one key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final


class Form(StrEnum):
    """How a bot's file is read."""

    YAML = "yaml"
    TOML = "toml"
    LINES = "lines"
    """JSON with comments and more: only ``"key": "value"`` on one line is looked for."""


@dataclass(frozen=True, slots=True)
class Bot:
    """A bot, its files and the places in them that name labels it listens to.

    Attributes:
        files: paths in a repository, which may hold wildcards.
        places: where labels stand that it acts upon; none for one that only writes labels.
        sorts: where labels stand that it only sorts by.
        defaults: labels that it acts upon where a place says nothing.
        names_are_labels: whether the keys at the top are labels, with ``-`` before those removed.
        conditions: whether texts such as ``label=x`` are conditions.
    """

    name: str
    files: tuple[str, ...]
    places: tuple[str, ...] = ()
    sorts: tuple[str, ...] = ()
    defaults: Mapping[str, str] = field(default_factory=dict)
    form: Form = Form.YAML
    names_are_labels: bool = False
    conditions: bool = False


def _yaml(name: str) -> tuple[str, str]:
    return f"{name}.yml", f"{name}.yaml"


_STALE: Final = ("staleLabel", "exemptLabels", "onlyLabels")

BOTS: Final[tuple[Bot, ...]] = (
    Bot(
        "mergify",
        (*_yaml(".mergify"), *_yaml(".mergify/config"), *_yaml(".github/mergify")),
        conditions=True,
    ),
    Bot(
        "kodiak",
        (".kodiak.toml", ".github/.kodiak.toml"),
        (
            "merge.automerge_label",
            "merge.blocking_labels",
            "merge.blacklist_labels",
            "merge.priority_merge_label",
            "update.autoupdate_label",
        ),
        defaults={"merge.automerge_label": "automerge"},
        form=Form.TOML,
    ),
    Bot("bors", ("bors.toml",), ("block_labels",), form=Form.TOML),
    Bot(
        "renovate",
        (
            *(
                f"{folder}renovate.{kind}"
                for folder in ("", ".github/")
                for kind in ("json", "json5")
            ),
            ".renovaterc",
            ".renovaterc.json",
            ".renovaterc.json5",
        ),
        ("stopUpdatingLabel", "rebaseLabel", "keepUpdatedLabel"),
        defaults={"stopUpdatingLabel": "stop-updating", "rebaseLabel": "rebase"},
        form=Form.LINES,
    ),
    Bot("dependabot", _yaml(".github/dependabot")),
    Bot(
        "tide",
        (
            *_yaml(".prow"),
            *_yaml("tide"),
            *(
                f"{folder}/**/*{end}"
                for folder in (".prow", "prow", "config/prow")
                for end in (".yml", ".yaml")
            ),
        ),
        (
            "tide.queries.labels",
            "tide.queries.missingLabels",
            "tide.merge_label",
            "tide.squash_label",
            "tide.rebase_label",
            "queries.labels",
            "queries.missingLabels",
        ),
    ),
    Bot(
        "stale",
        _yaml(".github/stale"),
        (*_STALE, *(f"*.{name}" for name in _STALE)),
        defaults={"staleLabel": "wontfix"},
    ),
    Bot(
        "no-response",
        _yaml(".github/no-response"),
        ("responseRequiredLabel",),
        defaults={"responseRequiredLabel": "more-information-needed"},
    ),
    Bot("lock", _yaml(".github/lock"), ("exemptLabels", "*.exemptLabels")),
    Bot(
        "support", _yaml(".github/support"), ("supportLabel",), defaults={"supportLabel": "support"}
    ),
    Bot("label actions", _yaml(".github/label-actions"), names_are_labels=True),
    Bot("settings", _yaml(".github/settings")),
    Bot("labeler", _yaml(".github/labeler")),
    Bot(
        "release drafter",
        _yaml(".github/release-drafter"),
        ("version-resolver.*.labels",),
        ("categories.labels", "categories.label", "exclude-labels", "include-labels"),
    ),
    Bot(
        "release notes",
        _yaml(".github/release"),
        sorts=(
            "changelog.categories.labels",
            "changelog.categories.exclude.labels",
            "changelog.exclude.labels",
        ),
    ),
    Bot(
        "auto-merge",
        _yaml(".github/auto-merge"),
        tuple(
            f"{prefix}{name}"
            for prefix in ("", "rules.", "*.")
            for name in ("requiredLabels", "blockingLabels")
        ),
    ),
    Bot(
        "bulldozer",
        (*_yaml(".bulldozer"), *_yaml(".github/bulldozer")),
        tuple(
            f"{part}.{name}.labels"
            for part in ("merge", "update")
            for name in ("trigger", "ignore", "whitelist", "blacklist")
        ),
    ),
    Bot(
        "policy-bot",
        _yaml(".policy"),
        ("approval_rules.if.has_labels", "policy.disapproval.if.has_labels"),
    ),
)
