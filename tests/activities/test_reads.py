"""The read tools: deadline, redaction, bounds, provenance, and one row however often they run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import JsonValue
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.reads import READ_HANDLERS, RawRead, TransientReadError, read_activities
from activities.services import Services
from tests.clock import PATIENCE_SECONDS
from triage.contracts.payloads import EvidenceRef, ReadRequest, ReadResult
from triage.policy.rules import BUILTIN_RULES, Rules
from triage.policy.tools import MAX_RESULT_BYTES

SCOPE = "5c0fe" * 6
OWNER = "lookup_component_owner"
SECRET = "ghp_" + "a1B2" * 9


@dataclass
class Reading:
    """A store with pinned rules, and a way to run one tool on it."""

    services: Services
    policy: str
    trying_for: timedelta = timedelta()

    async def run(
        self,
        value: Any = None,  # noqa: ANN401 - whatever a tool returns
        *,
        raises: BaseException | None = None,
        attempt: int = 1,
        version: int = 3,
        timeout_ms: int = 200,
    ) -> ReadResult:
        """Run the owner lookup with a handler that returns or raises this."""

        async def handler(arguments: Mapping[str, JsonValue], rules: Rules) -> RawRead:
            if raises is not None:
                raise raises
            if value == "hangs":
                await asyncio.Event().wait()
            return RawRead(value, source="tests", locator="tests@1#7")

        handlers = {**READ_HANDLERS, OWNER: handler}
        return await self.call(OWNER, {"path": "a"}, handlers, attempt, version, timeout_ms)

    async def call(
        self,
        tool: str,
        arguments: dict[str, JsonValue],
        handlers: Any = READ_HANDLERS,  # noqa: ANN401 - as the activities take them
        attempt: int = 1,
        version: int = 3,
        timeout_ms: int = 200,
    ) -> ReadResult:
        """Run one tool."""
        env = ActivityEnvironment()
        scheduled = env.info.started_time - self.trying_for
        env.info = replace(env.info, attempt=attempt, scheduled_time=scheduled)
        request = ReadRequest(
            scope=SCOPE,
            version=version,
            arguments=arguments,
            policy_digest=self.policy,
            timeout_ms=timeout_ms,
        )
        names = [spec.name for spec in self.services.tools if not spec.side_effect]
        activities: list[Callable[[ReadRequest], Awaitable[ReadResult]]] = read_activities(
            self.services, handlers
        )
        ref: ReadResult = await env.run(activities[names.index(tool)], request)
        return ref

    async def content(self) -> list[bytes | None]:
        """What is stored."""
        return [row.content for row in await self.services.evidence.load(SCOPE, 1_000)]


@pytest.fixture
async def reading(services: Services) -> Reading:
    """A store with pinned rules."""
    return Reading(services, await services.pin_rules(BUILTIN_RULES))


async def test_a_reference_comes_back_and_the_content_is_stored(reading: Reading) -> None:
    """The workflow gets id, source, locator, digest, size and facts: the rest is in the store."""
    value = {"owner": "docs-team", "evidence_id": "owners-docs", "prose": "long text"}
    ref = await reading.run(value)
    [content] = await reading.content()
    assert b'{"owner":"docs-team","prose":"long text"}' == content
    assert EvidenceRef(
        id="owners-docs",
        tool=OWNER,
        source="tests",
        locator="tests@1#7",
        digest=ref.digest,
        size_bytes=len(content),
        facts={"owner": "docs-team"},
    ) == ref.read_by(OWNER)
    assert {"tool", "source"}.isdisjoint(ref.model_fields_set)
    assert ref.digest.startswith("sha256:")


async def test_rules_may_have_evidence_removed_sooner(services: Services) -> None:
    """What a tool read is kept as long as the run's rules say, where that is the shorter time."""
    rules = BUILTIN_RULES.model_copy(update={"evidence_retention_days": 7})
    reading = Reading(services, await services.pin_rules(rules))
    await reading.call(OWNER, {"path": "a"})
    soon = datetime.now(UTC) + timedelta(days=8)
    assert 1 == await services.evidence.purge_expired(soon)


async def test_a_secret_never_reaches_the_store_or_the_workflow(reading: Reading) -> None:
    """Secrets in values and in keys, nested ones and facts included, are replaced by their kind."""
    value = {
        "owner": f"team {SECRET}",
        "evidence_id": "owners-api",
        "nested": [{"deep": f"x {SECRET} y"}],
        SECRET: 1,
    }
    ref = await reading.run(value)
    [content] = await reading.content()
    assert content is not None
    assert SECRET.encode() not in content
    assert 3 == content.count(b"[redacted:github_pat_classic]")
    assert SECRET not in ref.model_dump_json()
    assert "team [redacted:github_pat_classic]" == ref.facts["owner"]


async def test_a_secret_in_an_evidence_id_is_not_citable(reading: Reading) -> None:
    """Even an id is redacted before anything is stored under it."""
    ref = await reading.run({"evidence_id": SECRET})
    assert "[redacted:github_pat_classic]" == ref.id


GOOD = {"evidence_id": "owners-api"}
UNUSABLE: list[Any] = [
    None,
    [],
    "owners-api",
    {},
    {"evidence_id": ""},
    {"evidence_id": "x" * 201},
    {"evidence_id": 7},
    {**GOOD, "text": "x" * MAX_RESULT_BYTES},
    {**GOOD, "text": {1, 2}},
    {**GOOD, "text": object()},
    {**GOOD, "text": float("nan")},
    {**GOOD, "text": b"bytes"},
]


@pytest.mark.parametrize("value", UNUSABLE, ids=range(len(UNUSABLE)))
async def test_a_result_that_no_decision_could_use_is_an_error(
    reading: Reading, value: object
) -> None:
    """Another shape, no id, too much or no JSON: a tool_error that is not tried again."""
    with pytest.raises(ApplicationError) as caught:
        await reading.run(value)
    assert ("tool_error", True) == (caught.value.type, caught.value.non_retryable)
    assert [] == await reading.content()


async def test_the_largest_result_is_stored(reading: Reading) -> None:
    """The bound is on the canonical form, and what just fits is kept."""
    room = MAX_RESULT_BYTES - len('{"text":""}')
    assert MAX_RESULT_BYTES == (await reading.run({**GOOD, "text": "x" * room})).size_bytes


async def test_a_slow_tool_is_stopped_at_its_own_deadline(reading: Reading) -> None:
    """The deadline is kept around the handler, and running out of it may be tried again."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        with pytest.raises(ApplicationError) as caught:
            await reading.run("hangs", timeout_ms=20)
    assert ("tool_timeout", False) == (caught.value.type, caught.value.non_retryable)


async def test_only_transient_faults_are_tried_again(reading: Reading) -> None:
    """What a handler calls transient may pass; everything else that it raises will not."""
    for error, retryable in ((TransientReadError(), True), (ValueError(SECRET), False)):
        with pytest.raises(ApplicationError) as caught:
            await reading.run(raises=error)
        assert ("tool_error", retryable) == (caught.value.type, not caught.value.non_retryable)
        assert SECRET not in str(caught.value)
        assert caught.value.__cause__ is None


async def test_pauses_between_tries_grow_with_jitter(reading: Reading) -> None:
    """The first pause is at most the rule's backoff, each next one at most twice the last."""
    for attempt, ceiling in ((1, 0.1), (2, 0.2), (3, 0.4)):
        with pytest.raises(ApplicationError) as caught:
            await reading.run(raises=TransientReadError(), attempt=attempt)
        pause = caught.value.next_retry_delay
        assert pause is not None
        assert timedelta(seconds=ceiling / 2) <= pause <= timedelta(seconds=ceiling)


@pytest.mark.parametrize(("seconds", "final"), [(0, False), (4.9, False), (5, True), (60, True)])
async def test_a_tool_is_tried_only_for_so_long(
    reading: Reading, seconds: float, final: bool
) -> None:
    """A transient fault is final once the tool's retries took as long as its rule permits."""
    reading.trying_for = timedelta(seconds=seconds)
    with pytest.raises(ApplicationError) as caught:
        await reading.run(raises=TransientReadError(), attempt=2)
    assert final is caught.value.non_retryable


async def test_a_repeated_attempt_returns_what_the_first_one_stored(reading: Reading) -> None:
    """A call whose answer was lost is answered from its row, even if the source has changed."""
    first = await reading.run({**GOOD, "owner": "first"})
    second = await reading.run({**GOOD, "owner": "second"}, attempt=2)
    assert first.digest == second.digest
    assert [b'{"owner":"first"}'] == await reading.content()
    assert first.model_copy(update={"attempts": 2}) == second


async def test_two_calls_of_one_run_are_two_rows(reading: Reading) -> None:
    """The same tool called again at a later version is evidence of its own."""
    await reading.run(GOOD)
    await reading.run(GOOD, version=6)
    assert 2 == len(await reading.content())


LOOKUPS: list[tuple[str, dict[str, JsonValue], str, dict[str, JsonValue]]] = [
    (
        OWNER,
        {"path": "backend/api.py"},
        "owners-api",
        {"owner": "backend-team", "allowed_labels": ["bug", "component:api"]},
    ),
    (
        OWNER,
        {"path": "no/such/file"},
        "owners-default",
        {"owner": "triage-team", "allowed_labels": ["bug"]},
    ),
    (
        "search_triage_policy",
        {"topic": "security"},
        "policy-security",
        {"owner": "security-team", "route": "security_review", "review": True},
    ),
    (
        "search_triage_policy",
        {"topic": "unheard of"},
        "policy-default",
        {"owner": "triage-team", "route": "security_review"},
    ),
]


@pytest.mark.parametrize(("tool", "arguments", "evidence_id", "facts"), LOOKUPS)
async def test_the_built_in_tools_read_the_pinned_rules(
    reading: Reading,
    tool: str,
    arguments: dict[str, JsonValue],
    evidence_id: str,
    facts: dict[str, JsonValue],
) -> None:
    """Owners, policies and evidence ids are the source document's, each with its locator."""
    ref = await reading.call(tool, arguments)
    assert (evidence_id, facts) == (ref.id, ref.facts)
    assert ref.locator.startswith("builtin@")
    assert ref.locator.endswith(f"#{evidence_id}")


def test_a_tool_without_a_handler_can_not_be_served(services: Services) -> None:
    """A worker that could not run a registered tool does not start."""
    with pytest.raises(ValueError, match=OWNER):
        read_activities(services, {})
