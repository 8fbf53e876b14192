"""The read tools: one activity each, all run in one way.

A tool's own deadline is kept around its handler; its result is normalised, capped, stripped of
secrets and stored with where it came from. What goes back to the workflow is a reference.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from typing import Final, NoReturn

from pydantic import JsonValue
from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.asking import ahead
from activities.raw_reads import Far as Far
from activities.raw_reads import RawRead as RawRead
from activities.raw_reads import ReadHandler as ReadHandler
from activities.raw_reads import TransientReadError as TransientReadError
from activities.services import Services
from activities.store_patience import own_tries, patiently
from activities.tracker_reads import TRACKER_READ_HANDLERS
from triage.contracts.canonical import canonical_json, digest_of_bytes, parse_json, short_hash
from triage.contracts.failures import FailureClass
from triage.contracts.names import ACTIVITY_LOOKUP_OWNER, ACTIVITY_SEARCH_POLICY
from triage.contracts.payloads import DecideRequest, ReadRequest, ReadResult
from triage.contracts.trail import START, onward
from triage.faults import Point, reach
from triage.policy.redaction import redact_value
from triage.policy.rules import Rules
from triage.policy.tools import NormalResult, ToolResultError, ToolSpec, normalised
from triage.storage.evidence import EvidenceRow, StoredEvidence


async def lookup_component_owner(arguments: Mapping[str, JsonValue], rules: Rules) -> RawRead:
    """Read who owns a path from the run's pinned rules."""
    rule = rules.owners.get(str(arguments["path"]), rules.default_owner)
    return _from_rules(rules, rule.evidence_id, rule.model_dump(mode="json"))


async def search_triage_policy(arguments: Mapping[str, JsonValue], rules: Rules) -> RawRead:
    """Read how a topic is routed from the run's pinned rules."""
    rule = rules.topics.get(str(arguments["topic"]), rules.default_topic)
    return _from_rules(rules, rule.evidence_id, rule.model_dump(mode="json", exclude_none=True))


def _from_rules(rules: Rules, entry: str, value: JsonValue) -> RawRead:
    revision = rules.digest().removeprefix("sha256:")[:12]
    return RawRead(value, source=rules.name, locator=f"{rules.name}@{revision}#{entry}")


READ_HANDLERS: Final[dict[str, ReadHandler]] = {
    ACTIVITY_LOOKUP_OWNER: lookup_component_owner,
    ACTIVITY_SEARCH_POLICY: search_triage_policy,
}


def read_activities(
    services: Services, handlers: Mapping[str, ReadHandler] = READ_HANDLERS
) -> list[Callable[[ReadRequest], Awaitable[ReadResult]]]:
    """Return one activity for each registered read tool.

    Raises:
        ValueError: a registered read tool has no handler.
    """
    specs = [spec for spec in services.tools if not spec.side_effect]
    missing = [spec.name for spec in specs if not _has_handlers(spec, handlers)]
    if missing:
        raise ValueError(f"tools without a handler: {', '.join(missing)}")
    return [_read_activity(services, spec, handlers.get(spec.name)) for spec in specs]


def _has_handlers(spec: ToolSpec, handlers: Mapping[str, ReadHandler]) -> bool:
    asks = spec.about_issue or spec.remote is not None
    is_there = spec.about_issue or spec.name in handlers
    return is_there and (not asks or spec.name in TRACKER_READ_HANDLERS)


def _read_activity(
    services: Services, spec: ToolSpec, handler: ReadHandler | None
) -> Callable[[ReadRequest], Awaitable[ReadResult]]:
    @activity.defn(name=spec.name)
    async def read(request: ReadRequest) -> ReadResult:
        rules = await patiently(lambda: services.pinned_rules(request.policy_digest))
        reach(Point.READ_BEFORE_TOOL)
        found = await _run(spec, _called(services, spec, handler, request, rules), request)
        reach(Point.READ_BEFORE_KEEP)
        expires_at = services.content_expiry(rules)
        kept = await patiently(lambda: _keep(services, spec, request, found, expires_at))
        reach(Point.READ_AFTER_KEEP)
        if request.ask is None:
            return kept
        answer = await ahead(services, _with_trail(request.ask, request.after, kept))
        return kept if answer is None else kept.model_copy(update={"answer": answer})

    return read


def _with_trail(ask: DecideRequest, after: str | None, kept: ReadResult) -> DecideRequest:
    """Return the question that the run asks once it knows what was read."""
    if after is None:
        return ask
    return ask.model_copy(update={"trail": onward(after, kept.id, kept.digest)})


async def _called(
    services: Services,
    spec: ToolSpec,
    handler: ReadHandler | None,
    request: ReadRequest,
    rules: Rules,
) -> RawRead:
    """Ask the run's tracker where the call names its issue, else this worker's own data."""
    at = request.target
    if at is not None:
        far = Far(tracker=services.trackers[at.tracker], target=at)
        return await TRACKER_READ_HANDLERS[spec.name](request.arguments, rules, far)
    if handler is None:
        raise ToolResultError("the call does not say which issue it is about")
    return await handler(request.arguments, rules)


async def _run(
    spec: ToolSpec, call: Awaitable[RawRead], request: ReadRequest
) -> tuple[RawRead, NormalResult]:
    """Make the call under the tool's deadline, and translate what goes wrong.

    Only the tool's name and a failure class leave this function: the text of a foreign error
    may hold anything.
    """
    try:
        async with asyncio.timeout(request.timeout_ms / 1_000):
            raw = await call
        return raw, normalised(spec, redact_value(raw.value))
    except TimeoutError:
        _fail(spec, request, FailureClass.TOOL_TIMEOUT, transient=True)
    except TransientReadError as error:
        asked = error.retry_after_seconds or 0
        _fail(spec, request, FailureClass.TOOL_ERROR, transient=True, asked_seconds=asked)
    except Exception:  # noqa: BLE001 - whatever else a tool raises is a tool error
        _fail(spec, request, FailureClass.TOOL_ERROR, transient=False)


def _fail(
    spec: ToolSpec,
    request: ReadRequest,
    failure: FailureClass,
    *,
    transient: bool,
    asked_seconds: float = 0,
) -> NoReturn:
    """Raise the failure; a transient one is tried again after a jittered, growing pause.

    Once the tool's retries have taken longer than its rule permits, or the far end asks for more
    time than that, it is final.
    """
    info = activity.info()
    rule = spec.bounds(remote=request.target is not None).retry
    elapsed = (info.started_time - info.scheduled_time).total_seconds()
    transient = transient and elapsed + asked_seconds < rule.max_elapsed_seconds
    ceiling = rule.backoff_seconds * 2 ** (info.attempt - 1)
    # No shorter than the far end asked for; the jitter keeps workers apart.
    pause = asked_seconds + ceiling * random.uniform(0.5, 1)  # noqa: S311 - jitter, not a secret
    raise ApplicationError(
        f"{spec.name}: {failure}",
        type=failure.value,
        non_retryable=not transient,
        next_retry_delay=timedelta(seconds=pause) if transient else None,
    ) from None


async def _keep(
    services: Services,
    spec: ToolSpec,
    request: ReadRequest,
    found: tuple[RawRead, NormalResult],
    expires_at: datetime,
) -> ReadResult:
    """Store the content and return the reference; a repeated attempt returns the first row's."""
    raw, normal = found
    content = canonical_json(normal.content)
    row = await services.evidence.put(
        EvidenceRow(
            scope=request.scope,
            version=request.version,
            evidence_id=normal.evidence_id,
            tool=spec.name,
            arguments=canonical_json(request.arguments),
            source=raw.source,
            locator=raw.locator,
            digest=digest_of_bytes(content),
            content=content,
            size_bytes=len(content),
            expires_at=expires_at,
            after=request.after or START,
            call=_call(spec, request),
        )
    )
    kept = ReadResult(
        id=row.evidence_id,
        locator=row.locator,
        digest=row.digest,
        size_bytes=row.size_bytes,
        facts=_facts(row, normal, spec),
    )
    if row.locator.partition("@")[0] != row.source:
        kept = kept.model_copy(update={"source": row.source})
    tries = own_tries()
    return kept if tries == 1 else kept.model_copy(update={"attempts": tries})


def _call(spec: ToolSpec, request: ReadRequest) -> str:
    """Name a call by all that its result may depend on; see `EvidenceRow`.

    A run that was reset has another run id, so it reads anew what it read days ago.
    """
    if request.after is None:
        return ""
    asked, run = canonical_json(request.arguments).decode(), activity.info().workflow_run_id or ""
    return short_hash(run, request.after, spec.name, asked, request.policy_digest)


def _facts(row: StoredEvidence, normal: NormalResult, spec: ToolSpec) -> dict[str, JsonValue]:
    """Return the facts of what is stored: the source may have changed since the first attempt."""
    if row.digest == digest_of_bytes(canonical_json(normal.content)):
        return normal.facts
    return stored_facts(row, spec)


def stored_facts(row: StoredEvidence, spec: ToolSpec | None) -> dict[str, JsonValue]:
    """Return the facts that stored evidence holds, as its tool reads them.

    Returns:
        None of them once its content, or its tool, is gone.
    """
    stored = None if row.content is None else parse_json(row.content, "evidence")
    if spec is None or not isinstance(stored, dict):
        return {}
    try:
        return normalised(spec, {**stored, "evidence_id": row.evidence_id}).facts
    except ToolResultError:
        return {}
