"""The allowlisted tool registry: every capability a model can name, and nothing more.

Why it exists: a tool name that a model emits is data until it is found here, and arguments are
data until the tool's exact schema accepts them. A tool registers with all of name, purpose,
argument schema, timeout, retry rule, effect class, idempotency and normaliser, or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from typing import Final

from pydantic import JsonValue

from triage.contracts.base import MAX_NAME_CHARS, MAX_PATH_CHARS, ContractError
from triage.contracts.canonical import canonical_json, clean, digest_of
from triage.contracts.names import (
    ACTIVITY_APPLY_LABELS,
    ACTIVITY_LOOKUP_OWNER,
    ACTIVITY_READ_ISSUE,
    ACTIVITY_SEARCH_POLICY,
)
from triage.contracts.payloads import ToolSnapshot
from triage.policy.tool_shapes import Bounds as Bounds
from triage.policy.tool_shapes import Effect as Effect
from triage.policy.tool_shapes import Kind as Kind
from triage.policy.tool_shapes import RetryRule as RetryRule
from triage.policy.tool_shapes import is_name, misshapen

MAX_RESULT_BYTES: Final = 16_384
MAX_LIST_ITEMS: Final = 100
MAX_LOCAL_TIMEOUT_MS: Final = 2_000
"""A local read holds up a workflow task, which has ten seconds for all that it does."""
FACT_NAMES: Final[tuple[str, ...]] = ("owner", "owners", "route", "allowed_labels")
REVIEW: Final = "review"
"""A fact only where it is so: a policy that wants a person to decide. Each history holds it."""
PATHS: Final = "paths"
"""A fact of an issue that was read: the paths that its text names, if it names any."""


@dataclass(frozen=True, slots=True)
class NormalResult:
    """A tool result that the loop may use.

    Attributes:
        evidence_id: the id that a later decision may cite.
        facts: the few fields that decisions are checked against.
        content: the whole normalised result, at most `MAX_RESULT_BYTES` of canonical JSON.
    """

    evidence_id: str
    facts: dict[str, JsonValue]
    content: dict[str, JsonValue]


class ToolResultError(ValueError):
    """A tool returned something that is not a usable result."""


Normaliser = Callable[[str, JsonValue], NormalResult]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """Everything that is known of a tool before it runs.

    `arguments` maps each required argument to its kind; there are no optional ones.
    `timeout_ms` bounds one call. `idempotency` says that a call needs an operation id.
    `about_issue` says that a read is about the run's issue, and asks its tracker. A read with
    `remote` bounds asks the tracker too, within them, where that is a remote one. A `local` read
    answers from the run's pinned rules alone and asks nobody, unless it asks a remote tracker: it
    runs inside the workflow task, which saves five events.
    """

    name: str
    purpose: str
    arguments: Mapping[str, Kind]
    timeout_ms: int
    retry: RetryRule
    effect: Effect
    idempotency: bool
    normalise: Normaliser
    about_issue: bool = False
    remote: Bounds | None = None
    local: bool = False

    @property
    def side_effect(self) -> bool:
        """Whether running the tool can change anything outside the run."""
        return self.effect is Effect.WRITE

    def argument_schema(self) -> dict[str, JsonValue]:
        """Return the JSON Schema of the arguments."""
        shapes: dict[Kind, JsonValue] = {
            Kind.TEXT: {"type": "string", "minLength": 1, "maxLength": MAX_PATH_CHARS},
            Kind.TEXT_LIST: {
                "type": "array",
                "minItems": 1,
                "maxItems": MAX_LIST_ITEMS,
                "items": {"type": "string", "minLength": 1, "maxLength": MAX_PATH_CHARS},
            },
        }
        return {
            "type": "object",
            "properties": {name: shapes[kind] for name, kind in self.arguments.items()},
            "required": list(self.arguments),
            "additionalProperties": False,
        }

    def bounds(self, *, remote: bool) -> Bounds:
        """Return what one call may take, on a tracker that is remote or not."""
        near = Bounds(self.timeout_ms, self.retry)
        return self.remote if remote and self.remote is not None else near

    def snapshot(self, *, remote: bool = False) -> ToolSnapshot:
        """Return what a workflow needs of this tool, on a tracker that is remote or not."""
        bounds = self.bounds(remote=remote)
        values: dict[str, object] = {
            "name": self.name,
            "arguments": {name: kind.value for name, kind in self.arguments.items()},
            "timeout_ms": bounds.timeout_ms,
        }
        if bounds.retry.max_attempts != 1:
            values["max_attempts"] = bounds.retry.max_attempts
        if self.about_issue or (remote and self.remote is not None):
            values["target"] = True
        elif self.local:
            values["local"] = True
        if self.side_effect:
            values["side_effect"] = True
        if self.idempotency:
            values["operation_id"] = True
        return ToolSnapshot.model_validate(values)


class ToolRegistry:
    """The tools that exist. Looking up an unknown name gives None, and nothing is ever imported."""

    def __init__(self, *specs: ToolSpec) -> None:
        self._specs: dict[str, ToolSpec] = {}
        for spec in specs:
            self.register(spec)

    def register(self, spec: ToolSpec) -> None:
        """Add a tool.

        Raises:
            ValueError: the name is taken, or the specification is incomplete or unsafe.
        """
        for problem in _problems(spec):
            named = spec.name if is_name(spec.name) else "without a usable name"
            raise ValueError(f"tool {named} cannot be registered: {problem}")
        if spec.name in self._specs:
            raise ValueError(f"tool {spec.name} is registered twice")
        self._specs[spec.name] = spec

    def get(self, name: str) -> ToolSpec | None:
        """Return the tool of exactly this name, or None."""
        return self._specs.get(name)

    def __iter__(self) -> Iterator[ToolSpec]:
        """Iterate in the order of registration."""
        return iter(self._specs.values())

    def digest(self) -> str:
        """Return a digest over names, purposes and schemas: the tool contracts' version."""
        return digest_of(
            [[s.name, s.purpose, s.argument_schema(), s.effect.value, s.timeout_ms] for s in self]
        )


def _problems(spec: ToolSpec) -> Iterator[str]:
    needed = [part.name for part in fields(spec) if part.default is MISSING]
    missing = [name for name in needed if getattr(spec, name) is None]
    if missing:
        yield f"it has no {', '.join(missing)}"
        return
    yield from misshapen(spec)
    if spec.local and (spec.side_effect or spec.timeout_ms > MAX_LOCAL_TIMEOUT_MS):
        yield f"only a read of at most {MAX_LOCAL_TIMEOUT_MS} ms may be local"
    if spec.side_effect and not spec.idempotency:
        yield "a write needs an idempotency key"
    if spec.side_effect and spec.retry.max_attempts != 1:
        yield "a write is never retried blindly"


def check_arguments(tool: ToolSnapshot, arguments: Mapping[str, JsonValue]) -> None:
    """Accept exactly the arguments that the tool requires, each non-empty and of its kind.

    Raises:
        ContractError: the message names the tool and its argument, never a value.
    """
    if set(arguments) != set(tool.arguments):
        expected = sorted(tool.arguments)
        raise ContractError(f"{tool.name} arguments must be exactly {expected}")
    for name, kind in tool.arguments.items():
        if not _fits(arguments[name], Kind(kind)):
            raise ContractError(f"{tool.name}.{name} has the wrong type")


def _fits(value: JsonValue, kind: Kind) -> bool:
    if kind is Kind.TEXT:
        return _is_text(value)
    return (
        isinstance(value, list)
        and 0 < len(value) <= MAX_LIST_ITEMS
        and all(_is_text(item) for item in value)
    )


def _is_text(value: JsonValue) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MAX_PATH_CHARS


def normalise_lookup(_tool: str, value: JsonValue) -> NormalResult:
    """Normalise the result of a built-in read: its own evidence id and the fields it returned.

    Raises:
        ToolResultError: the result is not an object with an evidence id that a decision could
            cite, or it is too large, or it is not JSON.
    """
    result = _object(value)
    evidence_id = result.get("evidence_id")
    if not isinstance(evidence_id, str) or not 0 < len(evidence_id) <= MAX_NAME_CHARS:
        raise ToolResultError("the tool returned no usable evidence id")
    return _normal(evidence_id, result)


def normalise_by_digest(tool: str, value: JsonValue) -> NormalResult:
    """Normalise the result of any other tool: its evidence id is the tool and a digest.

    Raises:
        ToolResultError: the result is not an object, or it is too large, or it is not JSON.
    """
    result = _object(value)
    return _normal(f"{tool}-{digest_of(result).removeprefix('sha256:')[:16]}", result)


def normalise_issue(tool: str, value: JsonValue) -> NormalResult:
    """Normalise an issue as a tracker has it: as by digest, and the paths that it names are a fact.

    Raises:
        ToolResultError: as by digest.
    """
    from triage.policy.named_paths import mentioned_paths  # noqa: PLC0415 - slow to load

    found = normalise_by_digest(tool, value)
    title, body = (str(found.content.get(name, "")) for name in ("title", "body"))
    paths: list[JsonValue] = [*mentioned_paths(title, body)]
    return replace(found, facts={**found.facts, PATHS: paths}) if paths else found


def _object(value: JsonValue) -> dict[str, JsonValue]:
    try:
        cleaned = clean(value, "the tool's result")
    except ContractError as error:
        raise ToolResultError(str(error)) from None
    if not isinstance(cleaned, dict):
        raise ToolResultError("the tool did not return an object")
    return cleaned


def _normal(evidence_id: str, value: dict[str, JsonValue]) -> NormalResult:
    content = {name: item for name, item in value.items() if name != "evidence_id"}
    if len(canonical_json(content)) > MAX_RESULT_BYTES:
        raise ToolResultError(f"the tool returned more than {MAX_RESULT_BYTES} bytes")
    facts = {name: content[name] for name in FACT_NAMES if name in content}
    if not all(_is_bounded_fact(fact) for fact in facts.values()):
        raise ToolResultError(f"{', '.join(FACT_NAMES)} must be names or short lists of names")
    if content.get("review_required"):
        facts[REVIEW] = True
    return NormalResult(evidence_id=evidence_id, facts=facts, content=content)


def _is_bounded_fact(value: JsonValue) -> bool:
    """A fact goes into the run's history: a name, or a list of at most `MAX_LIST_ITEMS`."""
    names = value if isinstance(value, list) else [value]
    return len(names) <= MAX_LIST_ITEMS and all(
        isinstance(name, str) and 0 < len(name) <= MAX_NAME_CHARS for name in names
    )


OURS: Final = (normalise_lookup, normalise_by_digest, normalise_issue)
"""Normalisers whose results need no look."""


def normalised(spec: ToolSpec, value: JsonValue) -> NormalResult:
    """Return what a tool returned, normalised; one of somebody else's normaliser is bounded, too.

    Raises:
        ToolResultError: it cannot be cited, is too large, or holds what no history can.
    """
    if spec.normalise in OURS:
        return spec.normalise(spec.name, value)
    try:
        found: object = spec.normalise(spec.name, value)
    except Exception:  # noqa: BLE001 - whatever somebody else's raises, it may quote anything
        raise ToolResultError("the normaliser failed") from None
    if not isinstance(found, NormalResult) or not _is_citable(found.evidence_id):
        raise ToolResultError("the normaliser returned no result that can be cited")
    facts, content = _object(found.facts), _object(found.content)
    if max(len(canonical_json(facts)), len(canonical_json(content))) > MAX_RESULT_BYTES:
        raise ToolResultError(f"the normaliser returned more than {MAX_RESULT_BYTES} bytes")
    return NormalResult(found.evidence_id, facts, content)


def _is_citable(name: object) -> bool:
    return isinstance(name, str) and 0 < len(name) <= MAX_NAME_CHARS and name.isprintable()


LOCAL_READ = RetryRule(max_attempts=3, backoff_seconds=0.1, max_elapsed_seconds=5)
REMOTE_READ = Bounds(
    timeout_ms=15_000,
    retry=RetryRule(max_attempts=4, backoff_seconds=1, max_elapsed_seconds=120),
)
NO_RETRY = RetryRule(max_attempts=1, backoff_seconds=0.1, max_elapsed_seconds=5)

BUILTIN_TOOLS = ToolRegistry(
    ToolSpec(
        name=ACTIVITY_LOOKUP_OWNER,
        purpose="Look up who owns a path and which labels belong to it",
        arguments={"path": Kind.TEXT},
        timeout_ms=200,
        retry=LOCAL_READ,
        effect=Effect.READ,
        idempotency=False,
        normalise=normalise_lookup,
        remote=REMOTE_READ,
        local=True,
    ),
    ToolSpec(
        name=ACTIVITY_SEARCH_POLICY,
        purpose="Look up how the triage policy routes a topic",
        arguments={"topic": Kind.TEXT},
        timeout_ms=200,
        retry=LOCAL_READ,
        effect=Effect.READ,
        idempotency=False,
        normalise=normalise_lookup,
        local=True,
    ),
    ToolSpec(
        name=ACTIVITY_APPLY_LABELS,
        purpose="Add labels to the issue after a person approved exactly this operation",
        arguments={"issue_id": Kind.TEXT, "labels": Kind.TEXT_LIST},
        timeout_ms=500,
        retry=NO_RETRY,
        effect=Effect.WRITE,
        idempotency=True,
        normalise=normalise_lookup,
    ),
    ToolSpec(
        name=ACTIVITY_READ_ISSUE,
        purpose="Read the issue as it is now: its text, state, labels and content digest",
        arguments={"issue_id": Kind.TEXT},
        timeout_ms=1_000,
        retry=LOCAL_READ,
        effect=Effect.READ,
        idempotency=False,
        normalise=normalise_issue,
        about_issue=True,
        remote=REMOTE_READ,
    ),
)
"""The tools of the production agent, as the source has them, and a read of the issue itself."""
