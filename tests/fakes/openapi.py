"""GitHub's own description of its API, cut to what triage uses: what a question and an answer are.

Why it exists: a fake that answers what its author believes proves only that. So every question that
it gets and every answer that it gives is held to GitHub's word.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from jsonschema import Draft202012Validator

PATH: Final = Path(__file__).with_name("github_openapi.json")
ERROR: Final = {"$ref": "#/schemas/basic-error"}
"""What an answer is whose status is not described, such as 401."""


@functools.cache
def description() -> dict[str, Any]:
    """Return the description."""
    found: dict[str, Any] = json.loads(PATH.read_text(encoding="utf-8"))
    return found


def operation_of(method: str, path: str) -> str | None:
    """Return the name of the operation that a request is for; `path` is still quoted."""
    for name, pattern in _patterns():
        if name.startswith(f"{method} ") and pattern.fullmatch(path):
            return name
    return None


def question_breaches(method: str, path: str, query: set[str], body: bytes) -> Iterator[str]:
    """Yield one sentence for each way in which a request is not as described."""
    name = operation_of(method, path)
    if name is None:
        yield f"{method} {path} is no operation that triage needs"
        return
    operation = description()["operations"][name]
    for unknown in sorted(query - set(operation["query"])):
        yield f"{name} takes no {unknown}"
    if body and operation["body"] is None:
        yield f"{name} takes no body"
    elif body:
        yield from _breaches(f"the body of {name}", operation["body"], json.loads(body))


def answer_breaches(method: str, path: str, status: int, body: bytes) -> Iterator[str]:
    """Yield one sentence for each way in which an answer is not as described."""
    name = operation_of(method, path)
    if name is None:
        return
    answers = description()["operations"][name]["answers"]
    schema = answers.get(str(status), ERROR if status >= 400 else None)
    if schema is None and body:
        yield f"{name} never answers {status} with a body"
    elif schema is not None:
        yield from _breaches(f"the answer {status} of {name}", schema, json.loads(body))


def _breaches(what: str, schema: dict[str, Any], value: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON
    whole = {**schema, "schemas": description()["schemas"]}
    for error in Draft202012Validator(whole).iter_errors(value):
        yield f"{what}: {error.json_path} {error.message[:200]}"


@functools.cache
def _patterns() -> list[tuple[str, re.Pattern[str]]]:
    found = []
    for name in description()["operations"]:
        path = name.partition(" ")[2]
        parts = re.split(r"(\{[a-z_]+\})", path)
        # A path in a repository has slashes of its own.
        texts = [
            (".+" if part == "{path}" else "[^/]+") if part.startswith("{") else re.escape(part)
            for part in parts
        ]
        found.append((name, re.compile("".join(texts))))
    return found
