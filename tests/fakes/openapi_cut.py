"""Cuts GitHub's own OpenAPI description to the operations that triage uses.

``python -m tests.fakes.openapi_cut FILE`` reads ``generated/api.github.com.json`` of the npm
package ``@octokit/openapi`` and writes ``github_openapi.json`` beside this module. What people read
is left out; what a program can check stays, as JSON Schema.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

TARGET: Final = Path(__file__).with_name("github_openapi.json")
REPOSITORY: Final = "/repos/{owner}/{repo}"
ISSUE: Final = REPOSITORY + "/issues/{issue_number}"
OPERATIONS: Final = (
    ("GET", REPOSITORY),
    ("GET", REPOSITORY + "/issues"),
    ("GET", REPOSITORY + "/collaborators/{username}/permission"),
    ("GET", ISSUE),
    ("GET", ISSUE + "/events"),
    ("POST", ISSUE + "/labels"),
    ("DELETE", ISSUE + "/labels/{name}"),
    ("GET", REPOSITORY + "/labels"),
    ("GET", REPOSITORY + "/commits"),
    ("GET", REPOSITORY + "/contents/{path}"),
    ("GET", REPOSITORY + "/codeowners/errors"),
    ("GET", REPOSITORY + "/installation"),
    ("POST", "/app/installations/{installation_id}/access_tokens"),
    ("GET", "/app"),
    ("GET", "/user"),
    ("GET", "/rate_limit"),
)
KEPT: Final = frozenset(
    {
        "$ref",
        "additionalProperties",
        "allOf",
        "anyOf",
        "enum",
        "items",
        "maxItems",
        "maxLength",
        "maximum",
        "minItems",
        "minLength",
        "minimum",
        "oneOf",
        "pattern",
        "properties",
        "required",
        "type",
    }
)
_SCHEMAS: Final = "#/components/schemas/"
Schema = Any


def cut(whole: dict[str, Any]) -> dict[str, Any]:
    """Return the operations with what their requests and answers look like."""
    parts: dict[str, Schema] = {}
    operations = {
        f"{method} {path}": _operation(whole, whole["paths"][path][method.lower()], parts)
        for method, path in OPERATIONS
    }
    origin = {
        "package": "@octokit/openapi",
        "version": whole["info"]["version"],
        "licence": "MIT, see github_openapi.LICENSE",
        "made_by": "python -m tests.fakes.openapi_cut",
    }
    schemas = {name: parts[name] for name in sorted(parts)}
    return {"origin": origin, "operations": operations, "schemas": schemas}


def _operation(
    whole: dict[str, Any], found: dict[str, Any], parts: dict[str, Schema]
) -> dict[str, Any]:
    names = [_resolved(whole, p) for p in found.get("parameters", [])]
    body = found.get("requestBody")
    good = min(found["responses"])
    return {
        "example": _example(whole, found["responses"][good]),
        "query": [p["name"] for p in names if p["in"] == "query"],
        "body": _content(whole, body, parts) if body else None,
        "answers": {
            status: _content(whole, answer, parts)
            for status, answer in sorted(found["responses"].items())
        },
    }


def _content(whole: dict[str, Any], found: dict[str, Any], parts: dict[str, Schema]) -> Schema:
    content = _resolved(whole, found).get("content", {}).get("application/json")
    return _schema(whole, content["schema"], parts) if content else None


def _example(whole: dict[str, Any], answer: dict[str, Any]) -> Any:  # noqa: ANN401 - any JSON
    """Return the first answer that GitHub shows as an example."""
    examples = answer["content"]["application/json"].get("examples", {})
    for example in examples.values():
        value = _resolved(whole, example)["value"]
        is_named = isinstance(value, dict) and "$ref" in value
        return _resolved(whole, value)["value"] if is_named else value
    return None


def _resolved(whole: dict[str, Any], value: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in value:
        found: Any = whole
        for part in value["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        value = found
    return value


def _schema(whole: dict[str, Any], value: Schema, parts: dict[str, Schema]) -> Schema:
    """Return a schema as JSON Schema has it, and put those that it names into `parts`."""
    if isinstance(value, list):
        return [_schema(whole, item, parts) for item in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        return {"$ref": _named(whole, value["$ref"].removeprefix(_SCHEMAS), parts)}
    kept = {k: v for k, v in value.items() if k in KEPT and k not in {"properties", "enum"}}
    result = {k: _schema(whole, v, parts) for k, v in kept.items()}
    if "properties" in value:
        named = value["properties"].items()
        result["properties"] = {k: _schema(whole, v, parts) for k, v in named}
    if "enum" in value:
        result["enum"] = value["enum"]
    return {"anyOf": [{"type": "null"}, result]} if value.get("nullable") else result


def _named(whole: dict[str, Any], name: str, parts: dict[str, Schema]) -> str:
    if name not in parts:
        parts[name] = None  # A schema may name itself.
        parts[name] = _schema(whole, whole["components"]["schemas"][name], parts)
    return f"#/schemas/{name}"


def _text(found: dict[str, Any]) -> str:
    """Write one line for each operation and schema, so that a later cut shows what changed."""
    parts = []
    for title, part in found.items():
        rows = [f"{json.dumps(name)}:{_compact(value)}" for name, value in part.items()]
        parts.append(f"{json.dumps(title)}:{{\n" + ",\n".join(rows) + "\n}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True)


def main() -> int:
    """Write the cut description."""
    whole = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    TARGET.write_text(_text(cut(whole)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
