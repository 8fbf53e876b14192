"""`triage schema`: the JSON Schemas of everything that crosses a boundary.

Why it exists: whoever writes a client in another language holds it to these. A contract's version
is declared here, beside its name, and grows when a document that was valid no longer is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import Field, TypeAdapter

from triage.cli.errors import InputError
from triage.cli.output import Format, put_json, put_table
from triage.contracts.approval import Envelope, Review, ReviewAnswer
from triage.contracts.decision import Decision
from triage.contracts.incident import Incident
from triage.contracts.options import RunOptions
from triage.contracts.request import TriageRequest
from triage.contracts.response import TriageResponse
from triage.contracts.state import StateView
from triage.policy.tools import BUILTIN_TOOLS

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Published:
    """A contract that others may rely on: its version, what it is for, and its schema."""

    version: int
    purpose: str
    build: Callable[[], Document]


def _read(type_: Any) -> Callable[[], Document]:  # noqa: ANN401 - models and unions alike
    return lambda: TypeAdapter(type_).json_schema(mode="validation")


def _written(type_: Any) -> Callable[[], Document]:  # noqa: ANN401 - likewise
    return lambda: TypeAdapter(type_).json_schema(mode="serialization")


def _tools() -> Document:
    """Describe the calls that exist: each tool's name with exactly its arguments."""
    calls = [
        {
            "title": tool.name,
            "description": tool.purpose,
            "type": "object",
            "properties": {
                "name": {"const": tool.name},
                "arguments": tool.argument_schema(),
            },
            "required": ["name", "arguments"],
        }
        for tool in BUILTIN_TOOLS
    ]
    return {"title": "Tools", "type": "object", "oneOf": calls}


_ANY_DECISION = Annotated[Decision, Field(discriminator="kind")]
PUBLISHED: Final[dict[str, Published]] = {
    "request": Published(1, "what starts a run", _read(TriageRequest)),
    "options": Published(1, "what a caller may set of a run", _read(RunOptions)),
    "decision": Published(1, "what a model may answer", _read(_ANY_DECISION)),
    "response": Published(1, "what a run answers", _written(TriageResponse)),
    "state": Published(1, "what the state query answers", _written(StateView)),
    "approval": Published(1, "an approve or reject signal", _read(Envelope)),
    "review": Published(1, "the argument of the review update", _read(Review)),
    "review-answer": Published(1, "the answer of the review update", _written(ReviewAnswer)),
    "incident": Published(1, "what starts an evidence loop", _read(Incident)),
    "tools": Published(1, "the tool calls that exist", _tools),
}


def schema_of(name: str) -> Document:
    """Return one contract's schema with its id and version.

    Raises:
        InputError: no contract goes by this name.
    """
    published = find(name)
    identity = {
        "$schema": DIALECT,
        "$id": f"urn:bounded-triage:{name}:{published.version}",
        "version": published.version,
    }
    return {**identity, **published.build()}


def print_schemas(name: str | None, format_: Format) -> None:
    """Print one contract's schema, or all of them by name; as text, only what there is."""
    if format_ is Format.TEXT:
        chosen = PUBLISHED if name is None else {name: find(name)}
        put_table(
            ("NAME", "VERSION", "PURPOSE"),
            [(key, str(item.version), item.purpose) for key, item in chosen.items()],
        )
    elif name is None:
        put_json({key: schema_of(key) for key in PUBLISHED})
    else:
        put_json(schema_of(name))


def find(name: str) -> Published:
    """Return the contract of this name.

    Raises:
        InputError: there is none.
    """
    if name not in PUBLISHED:
        raise InputError(f"there is no contract {name}", f"there are: {', '.join(PUBLISHED)}")
    return PUBLISHED[name]
