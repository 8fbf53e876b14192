"""What a peer's run is about: a request, a look-up, and an answer; the same for every framework.

The model is a script in the worker's process that knows nothing but how often it was asked. Whoever
answers as it does, through whatever protocol, has played W.
"""

from __future__ import annotations

from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, JsonValue

INSTRUCTIONS: Final = "Triage the issue. Look up who owns its path, then answer."
TOOL: Final = "lookup_component_owner"
TOOL_PURPOSE: Final = "Say who owns a path of the repository."
ARGUMENTS: Final[dict[str, JsonValue]] = {"path": "backend/api.py"}
"""What the model asks the tool."""
ANSWER: Final[dict[str, JsonValue]] = {
    "route": "bug",
    "labels": ["bug", "component:api"],
    "owner": "backend-team",
    "evidence_ids": ["owners-api"],
    "reason": "the API's owner takes its bugs",
}
"""What it answers once the tool has."""


class Ownership(BaseModel):
    """What the tool finds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    evidence_id: str
    path: str
    component: str
    owner: str


class Verdict(BaseModel):
    """The structured answer."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    route: Literal["bug", "feature", "question", "security"]
    labels: list[str]
    owner: str
    evidence_ids: list[str]
    reason: str


def owner_of(path: str) -> Ownership:
    """Read who owns a path; it stands in for a file, which costs a peer nothing."""
    return Ownership(evidence_id="owners-api", path=path, component="api", owner="backend-team")
