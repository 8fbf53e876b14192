"""What `triage start` was asked to do, held to the contracts before anything is sent.

Loads no client: whoever handed in the wrong file is told so at once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from triage.cli.errors import InputError
from triage.cli.inputs import (
    MAX_PAYLOAD_BYTES,
    STDIN,
    checked_workflow_id,
    read_json,
    refuse_unknown_fields,
)
from triage.cli.text import quoted
from triage.contracts.options import RunOptions, parse_options
from triage.contracts.request import TriageRequest, parse_request
from triage.settings_values import model_name

ID_PREFIX: Final = "triage-"
ID_HINT: Final = "choose another with --id"
MODEL_HINT: Final = (
    "known are rules, openai:NAME, anthropic:NAME, recorded:DIGEST, learned:DIGEST[:GROUP] and the "
    "x- names of extensions"
)


@dataclass(frozen=True, slots=True)
class Order:
    """What the command line says."""

    request: Path
    mode: str | None
    model: str | None
    options: Path | None
    workflow_id: str | None


@dataclass(frozen=True, slots=True)
class Checked:
    """An order that may be started: an id and one or two JSON inputs."""

    workflow_id: str
    request_id: str
    inputs: list[JsonValue]


def check(order: Order) -> Checked:
    """Hold an order to the contracts before anything is sent.

    Raises:
        InputError: a file cannot be read, or the id cannot be used.
        ContractError: a document is not what it should be.
    """
    if STDIN == order.request == order.options:
        raise InputError("only one of the two files can be standard input")
    return complete(order, read_json(order.request, "request"), {})


def names_an_issue(order: Order) -> bool:
    """Whether what is to be triaged is typed as REPOSITORY#NUMBER, and no file has that name."""
    return "#" in order.request.name and not order.request.exists()


def complete(order: Order, document: JsonValue, where: dict[str, JsonValue]) -> Checked:
    """Hold a request and the options to the contracts; `where` is what is known of the issue.

    Raises:
        InputError: a file cannot be read, or the id cannot be used.
        ContractError: a document is not what it should be.
    """
    refuse_unknown_fields(document, "request", TriageRequest)
    request = parse_request(document)
    options = _options(order, where)
    workflow_id = order.workflow_id
    if workflow_id is None:
        workflow_id = f"{ID_PREFIX}{request.request_id}"
    inputs = [document, options] if options else [document]
    if any(size_of(value) > MAX_PAYLOAD_BYTES for value in inputs):
        limit = MAX_PAYLOAD_BYTES // 1024 // 1024
        raise InputError(f"the request is too large: Temporal takes {limit} MiB at most")
    return Checked(checked_workflow_id(workflow_id, ID_HINT), request.request_id, inputs)


def _options(order: Order, where: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Read the options file; --mode and --model win over it, and where the issue is over both.

    What the file says of the issue beside that, such as its tenant, stays.
    """
    given = None if order.options is None else read_json(order.options, "options")
    given = {} if given is None else given
    flags = {"mode": order.mode, "model": order.model}
    chosen = {name: value for name, value in flags.items() if value is not None}
    merged = {**given, **chosen, **_placed(given, where)} if isinstance(given, dict) else given
    refuse_unknown_fields(merged, "options", RunOptions)
    _see_that_there_may_be_such_a_model(parse_options(merged).model)
    return merged if isinstance(merged, dict) else {}


def _placed(given: Mapping[str, JsonValue], where: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return where the issue is, with what the options say of it that the tracker does not."""
    said, known = given.get("context"), where.get("context")
    if isinstance(said, dict) and isinstance(known, dict):
        return {**where, "context": {**said, **known}}
    return dict(where)


def _see_that_there_may_be_such_a_model(name: str | None) -> None:
    """Return unless no worker has it: a run that ends by a misspelt model would use up its id.

    Raises:
        InputError: the name is of no kind of model.
    """
    if name is None:
        return
    try:
        model_name(name)
    except ValueError:
        raise InputError(f"unknown model {quoted(name)}", MODEL_HINT) from None


def size_of(value: JsonValue) -> int:
    """Return how many bytes Temporal will be sent."""
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())
