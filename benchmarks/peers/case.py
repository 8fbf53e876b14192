"""What a peer's run is about: a request, a look-up, and an answer; the same for every framework.

The model is a script in the worker's process that knows nothing but how often it was asked, and of
a long run, how often it will be: the request says so. Whoever answers as it does, through whatever
protocol, has played the run.
"""

from __future__ import annotations

import json
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, JsonValue

from benchmarks.plan import Shape, W

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
"""What it answers once the tool has, as often as it was to be asked."""
_STEPS: Final = "steps"


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


def request_text(request: dict[str, JsonValue], shape: Shape) -> str:
    """Write a request as a workflow gets it; that of W is the product's, and no byte more."""
    return json.dumps(request if shape.steps == W.steps else request | {_STEPS: shape.steps})


def questions(request: str) -> int:
    """Read how often a run of a request asks its model, with a call of the tool between two."""
    steps: int = json.loads(request).get(_STEPS, W.steps)
    return steps


def call_number(request: str, answered: int) -> int | None:
    """Say which call the script makes once it has answered that often; None where it is through."""
    return answered + 1 if answered + 1 < questions(request) else None


def owner_of(path: str) -> Ownership:
    """Read who owns a path; it stands in for a file, which costs a peer nothing."""
    return Ownership(evidence_id="owners-api", path=path, component="api", owner="backend-team")
