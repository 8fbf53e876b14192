"""Reads what a user names on the command line: files, standard input and ids."""

from __future__ import annotations

import json
import sys
import unicodedata
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from triage.cli.errors import InputError
from triage.cli.text import shorten
from triage.contracts.base import Contract, ContractError
from triage.contracts.canonical import parse_json

MAX_FILE_BYTES: Final = 16_777_216
MAX_PAYLOAD_BYTES: Final = 2_097_152
"""Temporal refuses a larger input; the request's own bounds are below it for plain text."""

MAX_ID_BYTES: Final = 900
MAX_SHOWN_CHARS: Final = 60
MAX_PATH_CHARS: Final = 300
MAX_SHOWN_NAMES: Final = 5
STDIN: Final = Path("-")

_UNFIT: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def read_bytes(path: Path, limit: int = MAX_FILE_BYTES) -> bytes:
    """Return a file's content of at most `limit` bytes; ``-`` is standard input.

    Raises:
        InputError: it cannot be read, or is larger.
    """
    try:
        if path == STDIN:
            data = sys.stdin.buffer.read(limit + 1)
        else:
            with path.open("rb") as stream:
                data = stream.read(limit + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "no such path"
        raise InputError(f"{path}: cannot be read: {why}") from None
    if len(data) > limit:
        raise InputError(f"{path}: has more than {limit:,} bytes")
    return data


def read_json(path: Path, what: str) -> JsonValue:
    """Return the one JSON document in a file.

    Raises:
        InputError: it cannot be read.
        ContractError: it is not one JSON document.
    """
    data = read_bytes(path)
    try:
        return parse_json(data, what)
    except ContractError as error:
        name = "standard input" if path == STDIN else shorten(str(path), MAX_PATH_CHARS)
        raise ContractError(f"{error}{_place(data)} (in {name})") from None


def _place(data: bytes) -> str:
    """Say where a document stops being JSON; empty if that is not what is wrong with it."""
    try:
        json.loads(data.decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        return f": line {error.lineno}, column {error.colno}"
    except UnicodeDecodeError as error:
        return f": byte {error.start + 1} is not UTF-8"
    except (RecursionError, ValueError):
        return ""
    return ""


def refuse_unknown_fields(document: JsonValue, what: str, contract: type[Contract]) -> None:
    """Name the fields that a contract does not have, which its own error leaves out.

    That error may be kept in a history; this one is for whoever wrote the file.

    Raises:
        InputError: there are such fields.
    """
    names = document if isinstance(document, dict) else {}
    unknown = [name for name in names if name not in contract.model_fields]
    if unknown:
        listed = ", ".join(shorten(name, MAX_SHOWN_CHARS) for name in unknown[:MAX_SHOWN_NAMES])
        known = ", ".join(contract.model_fields)
        raise InputError(f"{what} has unknown fields: {listed}", f"known are: {known}")


def checked_workflow_id(workflow_id: str, hint: str) -> str:
    """Return an id that Temporal takes and that people can read and type.

    Raises:
        InputError: it is too long, empty or holds characters that cannot be seen.
    """
    if not workflow_id.strip():
        raise InputError("the workflow id is empty", hint)
    if any(unicodedata.category(character) in _UNFIT for character in workflow_id):
        raise InputError("the workflow id would hold characters that cannot be seen", hint)
    size = len(workflow_id.encode())
    if size > MAX_ID_BYTES:
        raise InputError(f"the workflow id would have {size} bytes, over {MAX_ID_BYTES}", hint)
    return workflow_id
