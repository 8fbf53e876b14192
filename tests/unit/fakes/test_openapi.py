"""The fake GitHub is held to GitHub's own description, and our models to GitHub's own examples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
from pydantic import TypeAdapter

from tests.fakes.github import serving_github
from tests.fakes.http_server import Response
from tests.fakes.openapi import (
    answer_breaches,
    description,
    operation_of,
    question_breaches,
)
from tests.unit.fakes.scene import ISSUE_PATH, NUMBER, REPOSITORY, call
from triage.trackers import github_models as models

ISSUE: Final = "/repos/{owner}/{repo}/issues/{issue_number}"
GRANT: Final = "POST /app/installations/{installation_id}/access_tokens"
READ_AS: Final[dict[str, Any]] = {
    f"GET {ISSUE}": models.Issue,
    f"GET {ISSUE}/events": models.EVENTS,
    f"POST {ISSUE}/labels": models.LABELS,
    f"DELETE {ISSUE}/labels/{{name}}": models.LABELS,
    "GET /repos/{owner}/{repo}": models.RepositoryItem,
    "GET /repos/{owner}/{repo}/issues": models.LISTED,
    "GET /repos/{owner}/{repo}/collaborators/{username}/permission": models.Permission,
    "GET /repos/{owner}/{repo}/labels": models.LABELS,
    "GET /repos/{owner}/{repo}/commits": models.COMMITS,
    "GET /repos/{owner}/{repo}/contents/{path}": models.ContentFile,
    "GET /repos/{owner}/{repo}/codeowners/errors": models.OwnersReport,
    "GET /repos/{owner}/{repo}/installation": models.Installation,
    GRANT: models.Grant,
    "GET /app": models.OwnApp,
    "GET /user": models.User,
    "GET /rate_limit": models.RateLimit,
}
OWN_MISTAKES: Final = {
    "GET /repos/{owner}/{repo}": 2,
    "GET /repos/{owner}/{repo}/collaborators/{username}/permission": 1,
}
"""In how many ways GitHub's own examples are not as described: they leave fields out."""


@pytest.mark.parametrize("operation", READ_AS)
def test_our_models_read_github_s_own_examples(operation: str) -> None:
    """What GitHub shows as an answer is taken, with all the fields that we do not know."""
    model = READ_AS[operation]
    adapter = model if isinstance(model, TypeAdapter) else TypeAdapter(model)
    assert adapter.validate_python(description()["operations"][operation]["example"])


def test_each_operation_has_a_model() -> None:
    """Nothing is described that is not read, and nothing read that is not described."""
    assert set(READ_AS) == set(description()["operations"])


@pytest.mark.parametrize("operation", READ_AS)
def test_github_s_own_examples_are_as_described(operation: str) -> None:
    """The cut description still fits GitHub's own answers."""
    method, _, path = operation.partition(" ")
    body = json.dumps(description()["operations"][operation]["example"]).encode()
    assert operation == operation_of(method, path)
    status = 201 if operation == GRANT else 200
    found = [*answer_breaches(method, path, status, body)]
    assert OWN_MISTAKES.get(operation, 0) == len(found), found


def test_the_origin_is_named_with_its_licence() -> None:
    """Whoever finds the file sees where it is from and under which terms it may be passed on."""
    origin = description()["origin"]
    assert ("@octokit/openapi", "MIT") == (origin["package"], origin["licence"][:3])
    licence = Path(operation_of.__code__.co_filename).with_name("github_openapi.LICENSE")
    assert licence.read_text(encoding="utf-8").startswith("MIT License")


@pytest.mark.parametrize(
    ("method", "path", "query", "body"),
    [
        ("PUT", f"{ISSUE_PATH}/labels", set(), b'{"labels": ["bug"]}'),
        ("GET", f"{ISSUE_PATH}/timeline", set(), b""),
        ("GET", f"{ISSUE_PATH}/events", {"since"}, b""),
        ("POST", f"{ISSUE_PATH}/labels", set(), b'{"labels": []}'),
        ("POST", f"{ISSUE_PATH}/labels", set(), b'["bug"]'),
        ("DELETE", f"{ISSUE_PATH}/labels/bug", set(), b"{}"),
        ("GET", f"/repos/{REPOSITORY}/labels/bug/x", set(), b""),
    ],
)
def test_a_wrong_question_is_noticed(method: str, path: str, query: set[str], body: bytes) -> None:
    """A request that GitHub does not know, or not in this form, is a breach."""
    assert [*question_breaches(method, path, query, body)]


@pytest.mark.parametrize(
    ("status", "value"),
    [(200, {"number": 1}), (200, []), (418, "no object"), (304, {}), (404, {"message": 7})],
)
def test_a_wrong_answer_is_noticed(status: int, value: Any) -> None:  # noqa: ANN401 - any JSON
    """An answer that GitHub would not give is a breach."""
    body = json.dumps(value).encode()
    assert [*answer_breaches("GET", ISSUE_PATH, status, body)]


async def _lie(log: Path) -> None:
    async with serving_github(log) as github:
        await github.control.open_issue(REPOSITORY, NUMBER, title="x")
        github.api._on_issue_of = lambda *_: Response.of({"number": 1})  # type: ignore[method-assign] # a lie
        await call(github.control, "GET", ISSUE_PATH)


async def test_a_fake_that_lies_fails_its_test(tmp_path: Path) -> None:
    """Whoever runs the fake learns at the end that it answered as GitHub would not."""
    with pytest.raises(AssertionError, match="the answer 200 of GET"):
        await _lie(tmp_path / "log")
