"""What every contract shares: frozen models, bounded text and one error type.

Why it exists: a boundary that is strict in one place and lenient in another is no boundary.
Every model that crosses a process, a queue or a file derives from `Contract`.
"""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    StringConstraints,
    ValidationError,
    model_serializer,
)

from triage.contracts.field_names import meant, shown_name
from triage.contracts.wording import in_words

MAX_REQUEST_ID_CHARS = 256
MAX_NAME_CHARS = 200
MAX_LABEL_CHARS = 50
"""Of a label of an issue: GitHub's bound, held to everywhere, so that rules fit anywhere."""
MAX_REASON_CHARS = 2_000
MAX_TITLE_CHARS = 4_096
MAX_TOKEN_CHARS = 8_192
MAX_WORKFLOW_ID_CHARS = 1_000
MAX_BODY_CHARS = 1_048_576
MAX_PATHS = 3_000
MAX_PATH_CHARS = 4_096
MAX_PROBLEMS = 5

NonEmpty = Annotated[str, StringConstraints(min_length=1, max_length=MAX_PATH_CHARS)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME_CHARS)]
# Every JSON reader holds whole numbers up to here exactly.
StateVersion = Annotated[int, Field(ge=0, le=2**53)]


class Contract(BaseModel):
    """A frozen record that accepts exactly its own fields, each of exactly its own type."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


RECORD: Final = ConfigDict(extra="forbid", strict=True)
"""Of a frozen dataclass with slots that is read like a contract, and takes a tenth of its room.

For what each waiting run keeps; what is written of it is all that it has, not only what was given.
"""


class Sparse(Contract):
    """A record that is written into every history: what is None in it takes no room there."""

    @model_serializer(mode="wrap")
    def _without_none(self, write: SerializerFunctionWrapHandler) -> dict[str, object]:
        return {name: value for name, value in write(self).items() if value is not None}


class ContractError(ValueError):
    """Input that does not meet its contract; the message names the field, never its content."""


def explain(
    error: ValidationError, what: str, *models: type[Contract], to_author: bool = False
) -> str:
    """Say in one line which fields of `what` are wrong and how, quoting no input.

    Args:
        error: what pydantic found.
        what: the name of the thing that was validated, such as ``request``.
        models: the contracts whose field names may be shown; any other name in the error's path
            is a key of the input and appears as ``*``.
        to_author: whether a command says it of a file that its user gave it: a field that no
            contract has is named then, too. Never for what a history or a log may keep.

    Returns:
        A sentence such as ``request.title: must not be blank; request.body: is missing``.
    """
    declared = {name for model in models for name in model.model_fields}
    told: dict[str, str] = {}
    for problem in error.errors(include_url=False, include_input=False):
        parts, words = [_shown(part, declared) for part in problem["loc"]], in_words(problem)
        if to_author and problem["type"] == "extra_forbidden":
            name = str(problem["loc"][-1])
            parts[-1] = shown_name(name)
            words += meant(name, declared) if len(told) < MAX_PROBLEMS else ""
        told.setdefault(".".join((what, *parts)), words)
    shown = [f"{path}: {words}" for path, words in told.items()]
    if len(shown) > MAX_PROBLEMS:
        shown[MAX_PROBLEMS:] = [f"problems in all: {len(shown)}"]
    return "; ".join(shown)


def _shown(part: str | int, declared: set[str]) -> str:
    return str(part) if isinstance(part, int) or part in declared else "*"


def clamp(text: str, limit: int = MAX_REASON_CHARS) -> str:
    """Cut `text` to `limit` characters, marking the cut with an ellipsis."""
    return text if len(text) <= limit else text[: limit - 1] + "…"
