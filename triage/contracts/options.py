"""The options of a run: what a caller may ask for, and the three modes.

A mode is only a set of values; an option that is given explicitly wins over its mode.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Final

from pydantic import (
    ConfigDict,
    Discriminator,
    Field,
    JsonValue,
    StringConstraints,
    Tag,
    ValidationError,
)

from triage.contracts.base import (
    MAX_NAME_CHARS,
    MAX_REQUEST_ID_CHARS,
    MAX_TOKEN_CHARS,
    MAX_WORKFLOW_ID_CHARS,
    Contract,
    ContractError,
    Name,
    StateVersion,
    explain,
)
from triage.contracts.canonical import canonical_json, clean

MAX_STEPS_LIMIT: Final = 100
MAX_WINDOW_SECONDS: Final = 90 * 24 * 3600
MAX_CONTINUED_VERSION: Final = 1_000_000_000
"""No chain of runs gets near it, and every database can count on from it."""
DEFAULT_TENANT: Final = "default"
DEFAULT_REPOSITORY: Final = "local"

ModelName = Annotated[
    str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]*(:[A-Za-z0-9._:/-]{1,200})?$")
]
ContextText = Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME_CHARS)]
IssueText = Annotated[str, StringConstraints(min_length=1, max_length=MAX_REQUEST_ID_CHARS)]
OperationName = Annotated[str, StringConstraints(max_length=MAX_NAME_CHARS)]
Count = Annotated[int, Field(ge=0, le=MAX_STEPS_LIMIT)]
Amount = Annotated[int, Field(ge=0, le=2**53)]


_WITH_DIGEST: Final = re.compile(
    r"\A(recorded|learned):(?:sha256:)?([0-9a-f]{16})[0-9a-f]{48}(?=$|:)", re.ASCII
)


def abbreviated_name(model: str) -> str:
    """Return the name of a model with the digest in it abbreviated, if it has one of ours."""
    return _WITH_DIGEST.sub(r"\1:\2", model, count=1)


class Mode(StrEnum):
    """How far a run may go by itself."""

    SHADOW = "shadow"
    SUGGEST = "suggest"
    APPROVE = "approve"


class Grounding(StrEnum):
    """How a final answer must rest on evidence."""

    CITED = "cited"
    ENTAILED = "entailed"


class ModeValues(Contract):
    """What a mode stands for."""

    permitted_effects: tuple[str, ...]
    approval_window_seconds: int
    propose_on_final: bool


MODES: Final[dict[Mode, ModeValues]] = {
    Mode.SHADOW: ModeValues(
        permitted_effects=(), approval_window_seconds=0, propose_on_final=False
    ),
    Mode.SUGGEST: ModeValues(
        permitted_effects=("apply_labels",), approval_window_seconds=0, propose_on_final=False
    ),
    Mode.APPROVE: ModeValues(
        permitted_effects=("apply_labels",),
        approval_window_seconds=72 * 3600,
        propose_on_final=True,
    ),
}


class BudgetLimits(Contract):
    """Upper bounds of what a run may spend; one that is absent does not bind.

    Attempts are calls as they were made, those included that were lost with their worker or failed.
    """

    tokens: Amount | None = None
    cost_micros: Amount | None = None
    seconds: Amount | None = None
    evidence_bytes: Amount | None = None
    model_attempts: Amount | None = None
    tool_attempts: Amount | None = None


class IssueContext(Contract):
    """Where the issue lives and who wrote it; set by admission, never by a model."""

    tenant: ContextText = DEFAULT_TENANT
    tracker: ContextText | None = None
    repository: ContextText = DEFAULT_REPOSITORY
    issue: IssueText | None = None
    author: ContextText | None = None


class ContinuedFrom(Contract):
    """The ended run that a new one continues.

    Attributes:
        workflow_id: its workflow id.
        run_id: the first run id of its chain of executions.
        version: the version at which it ended; the new run counts on from there.
        trail: that of what it has read, so that nothing is taken over that it read in vain; without
            one all that is stored under it is.
    """

    workflow_id: Annotated[str, StringConstraints(min_length=1, max_length=MAX_WORKFLOW_ID_CHARS)]
    run_id: ContextText
    version: Annotated[int, Field(ge=1, le=MAX_CONTINUED_VERSION)]
    trail: Annotated[str, StringConstraints(pattern="^([0-9a-f]{16})?$")] | None = None


class SignedApproval(Contract):
    """An approval that a run is started with where only signed ones count."""

    model_config = ConfigDict(hide_input_in_errors=True)

    version: StateVersion
    approver: Name
    token: Annotated[str | None, Field(max_length=MAX_TOKEN_CHARS, repr=False)] = None


def _kind(value: object) -> str:
    return "signed" if isinstance(value, dict | SignedApproval) else "plain"


StartingApproval = Annotated[
    Annotated[StateVersion, Tag("plain")] | Annotated[SignedApproval, Tag("signed")],
    Discriminator(_kind),
]
"""An approval that a run is started with: a version, or a signed envelope."""


class RunOptions(Contract):
    """All that a caller may set; unknown options are refused."""

    max_steps: Count | None = None
    max_model_retries: Count | None = None
    model: ModelName | None = None
    mode: Mode | None = None
    approval_window_seconds: Annotated[int, Field(ge=0, le=MAX_WINDOW_SECONDS)] | None = None
    permitted_effects: Annotated[tuple[Name, ...], Field(max_length=100)] | None = None
    approvals: dict[OperationName, StartingApproval] = Field(default_factory=dict, max_length=100)
    grounding: Grounding | None = None
    budget: BudgetLimits = BudgetLimits()
    context: IssueContext = IssueContext()
    continued_from: ContinuedFrom | None = None


def parse_options(value: JsonValue) -> RunOptions:
    """Validate a decoded JSON value as run options; null stands for none.

    Raises:
        ContractError: the message names the option and what is wrong with it.
    """
    if value is None:
        return RunOptions()
    if not isinstance(value, dict):
        raise ContractError("options must be a JSON object")
    try:
        return RunOptions.model_validate_json(canonical_json(clean(value, "options")))
    except ValidationError as error:
        models = (RunOptions, BudgetLimits, IssueContext, ContinuedFrom, SignedApproval)
        raise ContractError(explain(error, "options", *models)) from None
