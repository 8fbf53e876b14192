"""How a run begins: its raw arguments become a validated request and settled options.

Pure. Whatever arrives, of any number, shape or encoding, ends here in a request or in a reason;
no decoder runs before this code does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import JsonValue
from temporalio.common import RawValue

from triage.contracts.approval import MAX_REVIEW_BYTES
from triage.contracts.base import ContractError
from triage.contracts.canonical import canonical_json, parse_json
from triage.contracts.options import MODES, BudgetLimits, Grounding, Mode, RunOptions, parse_options
from triage.contracts.payloads import PolicySnapshot, ToolSnapshot
from triage.contracts.request import TriageRequest, claimed_request_id, parse_request
from triage.contracts.shared import shared_names
from workflows.carried import Carried

MAX_INPUTS = 2
MAX_START_VALUES: Final = 100_000
MAX_EDIT_VALUES: Final = 20_000
"""How many values a message may hold: a workflow task has two seconds for all that arrived, and a
message of two mebibytes made of nothing but brackets takes one of them to read."""
MAX_REQUEST_BYTES: Final = 1_310_720
MAX_OPTIONS_BYTES: Final = 131_072
"""How large a start may be: a run that continues as new sends both again, with what it knows, and
the server takes two mebibytes."""


@dataclass(frozen=True, slots=True)
class Start:
    """A request that may run, with the options that its caller gave.

    `carried` is what an earlier execution of the same run hands on.
    """

    request: TriageRequest
    options: RunOptions
    carried: Carried | None = None


@dataclass(frozen=True, slots=True)
class RefusedStart:
    """Input that cannot run: the id that it claims, and why."""

    request_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run is held to, settled from its options, its mode and the pinned rules."""

    max_steps: int
    max_model_retries: int
    permitted_effects: frozenset[str]
    approval_window_seconds: int
    propose_on_final: bool
    reminders_seconds: tuple[int, ...]
    grounding: Grounding
    budget: BudgetLimits
    routes: frozenset[str]
    labels: frozenset[str]
    tools: dict[str, ToolSnapshot]
    max_corrections: int
    fallback_models: tuple[str, ...]


def read_start(args: Sequence[Any], *, goes_on: bool = False) -> Start | RefusedStart:
    """Read the raw arguments of a run.

    Args:
        args: a request, optional options and, if `goes_on`, what the run carries.
        goes_on: whether an earlier execution of this very run wrote the arguments. From anybody
            else a third one is refused: it would say what was approved.
    """
    request_id = "invalid"
    try:
        carried = _read_carried(args) if goes_on else None
        if not 1 <= len(args) <= MAX_INPUTS + (carried is not None):
            raise ContractError(f"expected a request and optional options, got {len(args)} inputs")
        raw = read_json(args[0], "request")
        request_id = claimed_request_id(raw)
        _check_size(args[0], "request", MAX_REQUEST_BYTES)
        given = args[1] if len(args) > 1 else None
        options = parse_options(read_json(given, "options", max_bytes=MAX_OPTIONS_BYTES))
        return Start(request=parse_request(raw), options=options, carried=carried)
    except ContractError as error:
        return RefusedStart(request_id=request_id, reason=str(error))


def _read_carried(args: Sequence[Any]) -> Carried | None:
    """Read what the run carries; what cannot be read is a fault of this release, not an input."""
    if len(args) != MAX_INPUTS + 1:
        return None
    value = args[MAX_INPUTS]
    data = value.payload.data if isinstance(value, RawValue) else canonical_json(value)
    return Carried.model_validate_json(data)


def read_json(
    value: Any,  # noqa: ANN401 - whatever the SDK hands over
    what: str,
    *,
    max_values: int = MAX_START_VALUES,
    max_bytes: int | None = None,
) -> JsonValue:
    """Read one raw argument as JSON; the SDK's own form of null counts as null.

    Args:
        value: the argument.
        what: what it is, for the error.
        max_values: how many values it may hold; one with more is not read at all.
        max_bytes: how long it may be.

    Raises:
        ContractError: it is not one JSON payload, or too large a one.
    """
    if not isinstance(value, RawValue):
        return _read_plain(value, what)
    encoding = value.payload.metadata.get("encoding")
    if encoding == b"binary/null":
        return None
    if encoding != b"json/plain":
        raise ContractError(f"{what} must be a json/plain payload")
    data = value.payload.data
    if max_bytes is not None:
        _check_size(value, what, max_bytes)
    if _holds_more_than(data, max_values):
        raise ContractError(f"{what} holds more than {max_values} values")
    return parse_json(data, what)


def read_review_json(value: Any, what: str) -> JsonValue:  # noqa: ANN401 - whatever was sent
    """Read a raw review as JSON, if it has the size of one.

    Raises:
        ContractError: it is not one JSON payload, or too large a one.
    """
    return read_json(value, what, max_bytes=MAX_REVIEW_BYTES)


def _check_size(value: object, what: str, max_bytes: int) -> None:
    if isinstance(value, RawValue) and len(value.payload.data) > max_bytes:
        raise ContractError(f"{what} is larger than {max_bytes:,} bytes")


def _holds_more_than(data: bytes, limit: int) -> bool:
    """Whether a JSON document has more than `limit` values, found out without reading it.

    Every value but the first follows a comma, or opens an array or object that is not empty.
    """
    if _marks(data) < limit:
        return False
    bare = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    pieces = bare.split(b'"', 4 * limit + 1)
    # Every second piece stands inside a string.
    return len(pieces) > 4 * limit + 1 or _marks(b"".join(pieces[::2])) >= limit


def _marks(data: bytes) -> int:
    return data.count(b",") + data.count(b"[") + data.count(b"{")


def _read_plain(value: Any, what: str) -> JsonValue:  # noqa: ANN401 - decoded by another converter
    try:
        data = canonical_json(value)
    except (TypeError, ValueError, RecursionError):
        raise ContractError(f"{what} is not valid JSON") from None
    return parse_json(data, what)


def settle(options: RunOptions, policy: PolicySnapshot) -> Limits:
    """Settle what a run is held to: an explicit option wins over its mode, that over the rules.

    The rules' budget is an upper bound that no option lifts.
    """
    mode = MODES[options.mode or Mode(policy.mode)]
    effects, window = options.permitted_effects, mode.approval_window_seconds
    if window and policy.approval_window_seconds is not None:
        window = policy.approval_window_seconds
    return Limits(
        max_steps=_first(options.max_steps, policy.max_steps),
        max_model_retries=_first(options.max_model_retries, policy.max_model_retries),
        permitted_effects=shared_names(mode.permitted_effects if effects is None else effects),
        approval_window_seconds=_first(options.approval_window_seconds, window),
        propose_on_final=mode.propose_on_final,
        reminders_seconds=(policy.reminder_seconds, policy.escalation_seconds),
        grounding=options.grounding or Grounding(policy.grounding),
        budget=_narrower(options.budget, policy.budget),
        routes=shared_names(policy.routes),
        labels=shared_names(policy.labels.get("descriptive", ())),
        tools={tool.name: tool for tool in policy.tools},
        max_corrections=policy.max_corrections,
        fallback_models=policy.fallback_models,
    )


def _first(option: int | None, default: int) -> int:
    return default if option is None else option


def _narrower(one: BudgetLimits, other: BudgetLimits) -> BudgetLimits:
    """Return the narrower limits; where the rules' are, theirs, which all runs share."""
    narrower = BudgetLimits(
        tokens=_less(one.tokens, other.tokens),
        cost_micros=_less(one.cost_micros, other.cost_micros),
        seconds=_less(one.seconds, other.seconds),
        evidence_bytes=_less(one.evidence_bytes, other.evidence_bytes),
        model_attempts=_less(one.model_attempts, other.model_attempts),
        tool_attempts=_less(one.tool_attempts, other.tool_attempts),
    )
    return other if narrower == other else narrower


def _less(one: int | None, other: int | None) -> int | None:
    return min((limit for limit in (one, other) if limit is not None), default=None)
