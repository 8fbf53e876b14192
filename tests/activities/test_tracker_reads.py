"""Reads that ask the run's tracker: owners by CODEOWNERS, in three answers, and the issue."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.reads import read_activities
from activities.services import Services
from tests.activities.test_run_context import pin
from tests.fakes.faults import Fault, rate_limited, refused
from tests.fakes.github_people import Caller
from tests.fakes.github_shapes import head
from tests.unit.trackers.far_ends import (
    NUMBER,
    GitHubEnd,
    github_end,
    github_tracker,
    issue_of,
)
from triage.contracts.names import ACTIVITY_LOOKUP_OWNER, ACTIVITY_READ_ISSUE
from triage.contracts.options import IssueContext
from triage.contracts.payloads import EvidenceRef, ReadRequest, Target
from triage.policy.rules import BUILTIN_RULES
from triage.trackers.local import LocalTracker

SCOPE = "5c0fe" * 6
FILE = b"# who\n* @acme/all @eve\n/docs/ @Ann\n/docs/old/\n"
REPOSITORY = GitHubEnd.repository
SHA = head(REPOSITORY)


@dataclass
class Asking:
    """A run's reads on a tracker."""

    services: Services
    policy: str
    tracker: str = "github"
    version: int = 3

    async def __call__(self, tool: str, arguments: dict[str, JsonValue]) -> EvidenceRef:
        """Run one tool, as a run does whose issue is on the tracker."""
        self.version += 3
        request = ReadRequest(
            scope=SCOPE,
            version=self.version,
            arguments=arguments,
            policy_digest=self.policy,
            timeout_ms=5_000,
            target=Target(tracker=self.tracker, repository=REPOSITORY, issue=NUMBER),
        )
        names = [spec.name for spec in self.services.tools if not spec.side_effect]
        found = read_activities(self.services)[names.index(tool)]
        ref: EvidenceRef = await ActivityEnvironment().run(found, request)
        return ref

    async def owner(self, path: str) -> tuple[EvidenceRef, dict[str, Any]]:
        """Look an owner up, and return what the store has of it as well."""
        return await self._with_content(ACTIVITY_LOOKUP_OWNER, {"path": path})

    async def issue(self, number: str = NUMBER) -> tuple[EvidenceRef, dict[str, Any]]:
        """Read the issue, likewise."""
        return await self._with_content(ACTIVITY_READ_ISSUE, {"issue_id": number})

    async def _with_content(
        self, tool: str, arguments: dict[str, JsonValue]
    ) -> tuple[EvidenceRef, dict[str, Any]]:
        ref = await self(tool, arguments)
        row = (await self.services.evidence.load(SCOPE, self.version + 1))[-1]
        assert row.content is not None
        return ref, json.loads(row.content)


@dataclass
class Far:
    """GitHub with one issue, and reads about it."""

    end: GitHubEnd
    ask: Asking

    def has(self, content: bytes | list[Any]) -> None:
        """Put a CODEOWNERS file, or something else, where it is looked for first."""
        self.end.github.api.files[(REPOSITORY, ".github/CODEOWNERS")] = content


@pytest.fixture
async def far(tmp_path: Path, services: Services) -> AsyncIterator[Far]:
    """GitHub, and the built-in rules pinned."""
    policy = await services.pin_rules(BUILTIN_RULES)
    async with github_end(tmp_path) as end:
        trackers = {"github": end.tracker, "local": LocalTracker(services.store)}
        yield Far(end, Asking(replace(services, trackers=trackers), policy))


async def test_an_owner_has_file_commit_and_line(far: Far) -> None:
    """The last line that matches answers, by its first owner; the rules add the labels."""
    far.has(FILE)
    ref, content = await far.ask.owner("backend/api.py")
    assert {
        "owner": "@acme/all",
        "owners": ["@acme/all", "@eve"],
        "allowed_labels": ["bug", "component:api"],
    } == ref.facts
    assert (f"CODEOWNERS@{SHA}#L2", f"github:{REPOSITORY}") == (ref.locator, ref.source)
    assert (["@acme/all", "@eve"], ".github/CODEOWNERS", SHA, 2, "owned") == tuple(
        content[name] for name in ("owners", "file", "commit", "line", "status")
    )
    ref, _ = await far.ask.owner("docs/x.md")
    assert ("@Ann", f"CODEOWNERS@{SHA}#L3") == (ref.facts["owner"], ref.locator)


async def test_an_owner_whom_github_does_not_know_is_marked_and_not_named(far: Far) -> None:
    """A team that was deleted is left out; where it was the only one, nobody is named."""
    far.has(FILE)
    far.end.github.api.unknown_owners = {"@acme/all", "@Ann"}
    ref, content = await far.ask.owner("backend/api.py")
    assert ("@eve", ["@acme/all"], True) == (
        ref.facts["owner"],
        content["unresolved"],
        content["owners_checked"],
    )
    ref, content = await far.ask.owner("docs/x.md")
    assert ("owned", ["@Ann"], False) == (
        content["status"],
        content["unresolved"],
        "owner" in ref.facts,
    )


async def test_a_server_that_does_not_check_owners_is_told(far: Far) -> None:
    """An Enterprise server of before has no such answer: the owners stand, unchecked."""
    far.has(FILE)
    await far.end.control.plan(refused(404, method="GET", path="/codeowners/errors$", times=0))
    ref, content = await far.ask.owner("docs/x.md")
    assert ("@Ann", False) == (ref.facts["owner"], content["owners_checked"])


async def test_what_a_line_says_nobody_owns_has_no_owner(far: Far) -> None:
    """Not even the rules' default: the repository has said that nobody owns it."""
    far.has(FILE)
    ref, content = await far.ask.owner("docs/old/x.md")
    assert ({}, "unowned", 4) == (ref.facts, content["status"], content["line"])
    assert f"CODEOWNERS@{SHA}#L4" == ref.locator


@pytest.mark.parametrize("file", [b"/docs/ @ann\n", None], ids=["no line", "no file"])
async def test_where_no_line_answers_the_rules_do(far: Far, file: bytes | None) -> None:
    """The evidence is the rules' own, and says which commit has no line about the path."""
    if file is not None:
        far.has(file)
    ref, content = await far.ask.owner("backend/api.py")
    assert ("owners-api", "backend-team") == (ref.id, ref.facts["owner"])
    assert "builtin@" in ref.locator
    assert {"commit": SHA, "line": None} == {
        k: content["codeowners"][k] for k in ("commit", "line")
    }
    assert "owners-default" == (await far.ask.owner("other.py"))[0].id


@pytest.mark.parametrize(
    ("file", "path", "reason"),
    [
        (b"* @ann\n" * 200_000, "backend/api.py", "incomplete"),
        (b"* @ann\n" * 600_000, "backend/api.py", "too_large"),
        ([], "backend/api.py", "incomplete"),
        (FILE, "../api.py", "bad_path"),
        (FILE, "/backend/api.py", "bad_path"),
    ],
    ids=["over 1 MB", "over 3 MB", "a folder", "above", "absolute"],
)
async def test_what_is_unknown_has_no_owner(
    far: Far, file: bytes | list[Any], path: str, reason: str
) -> None:
    """Nothing fills the gap: neither an earlier line nor the rules."""
    far.has(file)
    ref, content = await far.ask.owner(path)
    assert ({}, "unknown", reason) == (ref.facts, content["status"], content["reason"])


async def test_files_that_may_not_be_read_are_unknown(far: Far) -> None:
    """A token without the right to files hears "not found", which is not "nobody"."""
    far.has(FILE)
    far.end.github.api.people.callers["thin"] = Caller(login="x", permissions={"issues": "read"})
    trackers = {"github": github_tracker(far.end.github, token="thin")}
    far.ask.services = replace(far.ask.services, trackers=trackers)
    ref, content = await far.ask.owner("backend/api.py")
    assert ({}, "unknown", "CODEOWNERS") == (ref.facts, content["status"], ref.locator)
    assert "repository_not_found" == content["reason"]


@pytest.mark.parametrize(
    ("fault", "seconds"),
    [
        (Fault(method="GET", path="/commits$", status=500), 0),
        (rate_limited("7", method="GET", path="/commits$"), 7),
    ],
    ids=["500", "limited"],
)
async def test_an_outage_is_tried_again_when_asked_to(
    far: Far, fault: Fault, seconds: float
) -> None:
    """No answer is no fact: the call fails for now, and waits as long as GitHub asks."""
    far.has(FILE)
    await far.end.control.plan(replace(fault, times=0))
    with pytest.raises(ApplicationError) as error:
        await far.ask.owner("backend/api.py")
    pause = error.value.next_retry_delay
    assert pause is not None
    assert ("tool_error", False) == (error.value.type, error.value.non_retryable)
    assert seconds + 0.5 <= pause.total_seconds() <= seconds + 1


async def test_the_issue_is_read_with_its_digest_and_labels(far: Far) -> None:
    """Text, state and labels by id are evidence under the digest that approvals are bound by."""
    await far.end.adds("bug")
    ref, content = await far.ask.issue()
    issue = await issue_of(far.end)
    assert ("read_issue-", {}) == (ref.id[:11], ref.facts)
    assert f"{REPOSITORY}#{NUMBER}@{issue.content_digest[7:19]}" == ref.locator
    assert {
        "issue_id": NUMBER,
        "title": issue.title,
        "body": issue.body,
        "body_complete": True,
        "state": "open",
        "locked": False,
        "content_digest": issue.content_digest,
        "labels_known": True,
        "labels": [{"name": "bug", "id": issue.label_ids[0]}],
    } == content
    await far.end.edits(body="It crashes more.")
    assert ref.id != (await far.ask.issue())[0].id


async def test_labels_that_may_not_be_all_are_unknown(
    far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer whose labels have no ids, or too many of them, is not taken for the whole."""
    issue = await issue_of(far.end)
    for labels, ids in ((("bug",), ()), (("x",) * 101, ("1",) * 101)):

        async def answer(*_: str, found: Any = (labels, ids)) -> Any:  # noqa: ANN401 - see above
            return replace(issue, labels=found[0], label_ids=found[1])

        monkeypatch.setattr(far.end.tracker, "get_issue", answer)
        _, content = await far.ask.issue()
        assert not content["labels_known"]
        assert "labels" not in content


@pytest.mark.parametrize("body", ["x" * 207_777, "\x00" * 65_536, "🦀" * 65_536, ""])
async def test_a_long_issue_is_cut_and_says_so(far: Far, body: str) -> None:
    """The evidence stays within its bound, whatever signs the text is made of."""
    await far.end.edits(body=body)
    ref, content = await far.ask.issue()
    assert body.startswith(content["body"])
    assert (not body) == content["body_complete"]
    assert ref.size_bytes <= 16_384


@pytest.mark.parametrize("number", ["102", "0101", "#101", " 101"])
async def test_another_issue_is_not_read(far: Far, number: str) -> None:
    """A read is about the run's own issue, spelled exactly, and nothing is asked otherwise."""
    with pytest.raises(ApplicationError) as error:
        await far.ask.issue(number)
    assert ("tool_error", True) == (error.value.type, error.value.non_retryable)
    assert [] == await far.end.control.requests()


async def test_the_local_tracker_s_issue_is_read_likewise(far: Far) -> None:
    """Labels by id and the digest are there without any GitHub."""
    local = far.ask.services.trackers["local"]
    await local.admit_issue(
        REPOSITORY, NUMBER, title="T", body="B", author="ann", labels=("bug", "feature")
    )
    await local.add_labels(REPOSITORY, NUMBER, ["bug"], by="ann", operation_key="op_1")
    far.ask.tracker = "local"
    ref, content = await far.ask.issue()
    assert (["bug"], f"local:{REPOSITORY}") == ([x["name"] for x in content["labels"]], ref.source)


async def test_a_run_on_github_is_told_where_to_ask(far: Far) -> None:
    """Its tools name their issue and may take what the network takes; the local ones do not."""
    context = IssueContext(tracker="github", repository=REPOSITORY, issue=NUMBER)
    remote = await pin(far.ask.services, context=context)
    local = await pin(far.ask.services, context=IssueContext(tracker="local"))
    assert remote.policy is not None
    assert local.policy is not None
    assert [
        ("lookup_component_owner", True, 15_000),
        ("search_triage_policy", False, 200),
        ("apply_labels", False, 500),
        ("read_issue", True, 15_000),
    ] == [(tool.name, tool.target, tool.timeout_ms) for tool in remote.policy.tools]
    assert [False, False, False, True] == [tool.target for tool in local.policy.tools]
