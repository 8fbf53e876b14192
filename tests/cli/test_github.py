"""The way from a token to a label on GitHub, typed as docs/github.md says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.conftest import Answer, Up, runner
from tests.fakes.commit_log import Action
from tests.fakes.github import GitHub, serving_github
from tests.fakes.github_people import Caller

REPOSITORY = "acme/shop"
LABELS = ("bug", "component:api")
BODY = "Every POST in backend/api.py fails with status 500."
SECRET = "neverToBeSeen"
READS, WRITES = f"ghp_{SECRET}1", f"ghp_{SECRET}2"


@dataclass(frozen=True)
class Typed:
    """Commands beside a running ``triage up`` whose issues are on GitHub."""

    up: Up
    github: GitHub

    async def __call__(self, *arguments: str | Path) -> Answer:
        """Run one command to its end, and see that it tells no token."""
        answer = await asyncio.to_thread(runner(self.up.environment), *arguments)
        assert SECRET not in answer.out + answer.err
        return answer

    async def start(self, mode: str, *more: str) -> Answer:
        """Start a run for the one issue."""
        return await self("start", f"{REPOSITORY}#101", "--mode", mode, *more)


@asynccontextmanager
async def _typing(folder: Path) -> AsyncIterator[Typed]:
    async with serving_github(folder / "commits.jsonl") as github:
        for token, level in ((READS, "read"), (WRITES, "write")):
            rights = {"issues": level, "metadata": "read", "contents": "read"}
            github.api.people.callers[token] = Caller(login=f"{level}r", permissions=rights)
        await github.control.define_labels(REPOSITORY, LABELS)
        github.api.files[REPOSITORY, ".github/CODEOWNERS"] = b"/backend/ @acme/backend\n"
        text = {"title": "Orders fail", "body": BODY}
        await github.control.open_issue(REPOSITORY, "101", **text, author="eve")
        up = await asyncio.to_thread(lambda: Up(folder, **_settings(folder, github)))
        try:
            yield Typed(up, github)
        finally:
            await asyncio.to_thread(up.end)
        assert SECRET not in up.log.read_text()


def _settings(folder: Path, github: GitHub) -> dict[str, str]:
    (folder / "reads").write_text(f"{READS}\n")
    (folder / "writes").write_text(f"{WRITES}\n")
    return {
        "TRIAGE_TRACKER": "github",
        "TRIAGE_GITHUB_BASE_URL": github.control.api,
        "TRIAGE_GITHUB_TOKEN_FILE": str(folder / "reads"),
        "TRIAGE_GITHUB_WRITE_TOKEN_FILE": str(folder / "writes"),
    }


@pytest.mark.long
async def test_from_a_token_to_a_label(tmp_path: Path) -> None:
    """A token that only reads gives a suggestion; another one writes what a person approves."""
    async with _typing(tmp_path) as typed:
        rows = (await typed("doctor", "--format", "json")).json()
        told = [(row["status"], row["detail"]) for row in rows if row["check"] == "tracker"]
        assert ["ok", "ok"] == [status for status, _ in told]
        assert ["reads as readr", "writes as writer"] == [
            detail.partition("github at ")[2].partition(": ")[2].partition(",")[0]
            for _, detail in told
        ]
        await _suggests(typed)
        await _writes(typed)


async def _suggests(typed: Typed) -> None:
    """In shadow mode nothing but reads reaches GitHub."""
    answer = await typed.start("shadow", "--wait", "--format", "json")
    found = answer.json()
    assert 0 == answer.status, answer.err
    assert ("completed", ["bug", "component:api"]) == (found["status"], found["labels"]), found
    assert "@acme/backend" == found["owner"]
    assert {"GET"} == {request["method"] for request in await typed.github.control.requests()}


async def _writes(typed: Typed) -> None:
    """A person is shown GitHub's issue, approves, and finds the labels there."""
    run = (await typed.start("approve", "--id", "second")).out.strip()
    pending = await _pending(typed, run)
    shown = (await typed("show", run)).out
    assert f"github:{REPOSITORY}#101" in shown
    assert "Orders fail" in shown
    version = str(pending["version"])
    approved = await typed(
        "approve", run, pending["operation_id"], "--version", version, "--as", "ann"
    )
    assert 0 == approved.status, approved.err
    labelled = await typed.github.control.log(3, wait=True)
    assert [("writer", "bug"), ("writer", "component:api")] == [
        (entry.actor, entry.label) for entry in labelled if entry.action is Action.LABELED
    ]


async def _pending(typed: Typed, run: str) -> dict[str, str]:
    """Return what the run waits for, as soon as it does."""
    while True:
        found = (await typed("show", run, "--format", "json")).json()
        if found["pending"]:
            pending: dict[str, str] = found["pending"]
            return pending
