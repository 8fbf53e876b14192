"""Search attributes: registered where we may, checked where we may not."""

from __future__ import annotations

import asyncio
import shutil
import sysconfig
import uuid
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import (
    AddSearchAttributesRequest,
    ListSearchAttributesRequest,
)
from temporalio.client import Client
from temporalio.common import SearchAttributePair, TypedSearchAttributes
from temporalio.service import RPCError, RPCStatusCode
from temporalio.testing import WorkflowEnvironment

from tests.workflow.world import STARTUP
from triage.contracts.search_attributes import SEARCH_ATTRIBUTES, TRIAGE_STATUS
from triage.search_attributes import SearchAttributesMissing, ensure_search_attributes

SECRET = "sk-never-shown"


@pytest.fixture(scope="module")
async def dev_server() -> AsyncIterator[str]:
    """The address of a real dev server with a second namespace."""
    binary = shutil.which("temporal", path=sysconfig.get_path("scripts"))
    async with await WorkflowEnvironment.start_local(
        dev_server_existing_path=binary,
        dev_server_extra_args=["--namespace", "typed"],
        dev_server_startup_timeout=STARTUP,
    ) as env:
        yield env.client.service_client.config.target_host


@pytest.fixture(scope="module")
async def test_server() -> AsyncIterator[Client]:
    """A client of a time-skipping server."""
    binary = shutil.which("temporal-test-server", path=sysconfig.get_path("scripts"))
    async with await WorkflowEnvironment.start_time_skipping(
        test_server_existing_path=binary, test_server_startup_timeout=STARTUP
    ) as env:
        yield env.client


class _Refusing:
    """Stands in for what cannot be run here: a server that keeps a right to itself."""

    def __init__(self, **answers: RPCStatusCode | None) -> None:
        self._answers = answers

    def __getattr__(self, call: str) -> Any:  # noqa: ANN401 - any call
        async def answer(*_args: object, **_options: object) -> SimpleNamespace:
            if status := self._answers[call]:
                raise RPCError(SECRET, status, b"")
            return SimpleNamespace(custom_attributes={})

        return answer


def client_of(**answers: RPCStatusCode | None) -> Client:
    """Return a client of a server that answers each call so, or with nothing."""
    service = _Refusing(**answers)
    return cast(
        "Client",
        SimpleNamespace(
            namespace="default",
            operator_service=service,
            workflow_service=service,
            count_workflows=service.count_workflows,
            service_client=SimpleNamespace(config=SimpleNamespace(target_host="cloud:7233")),
        ),
    )


async def test_attributes_are_registered(dev_server: str) -> None:
    """A new server gets every search attribute with its type, and a second call changes nothing."""
    client = await Client.connect(dev_server)
    await asyncio.gather(*(ensure_search_attributes(client) for _ in range(3)))
    await ensure_search_attributes(client)
    reply = await client.operator_service.list_search_attributes(
        ListSearchAttributesRequest(namespace="default")
    )
    expected = {key.name: key.indexed_value_type.value for key in SEARCH_ATTRIBUTES}
    assert dict(reply.custom_attributes) == expected
    assert (await client.count_workflows("TriageStatus = 'failed'")).count == 0


async def test_attributes_are_registered_for_time_skipping(test_server: Client) -> None:
    """The time-skipping server, which cannot list attributes, gets them too, once or twice."""
    await ensure_search_attributes(test_server)
    await ensure_search_attributes(test_server)
    handle = await test_server.start_workflow(
        "Nothing",
        id=str(uuid.uuid4()),
        task_queue="none",
        search_attributes=TypedSearchAttributes([SearchAttributePair(TRIAGE_STATUS, "received")]),
    )
    await handle.terminate()


async def test_attribute_of_another_type(dev_server: str) -> None:
    """An attribute that exists with another type is an error, since it could never be written."""
    client = await Client.connect(dev_server, namespace="typed")
    datetime = IndexedValueType.INDEXED_VALUE_TYPE_DATETIME
    await client.operator_service.add_search_attributes(
        AddSearchAttributesRequest(
            namespace="typed", search_attributes={TRIAGE_STATUS.name: datetime}
        )
    )
    with pytest.raises(SearchAttributesMissing, match=r"has another type for .*: TriageStatus"):
        await ensure_search_attributes(client)


@pytest.mark.parametrize(
    "answers",
    [
        {"list_search_attributes": None},
        {
            "list_search_attributes": RPCStatusCode.PERMISSION_DENIED,
            "count_workflows": RPCStatusCode.INVALID_ARGUMENT,
        },
    ],
)
async def test_server_that_keeps_registration_to_itself(
    answers: dict[str, RPCStatusCode | None],
) -> None:
    """Where we may not add attributes, the error names them and the command that adds them."""
    client = client_of(add_search_attributes=RPCStatusCode.PERMISSION_DENIED, **answers)
    with pytest.raises(SearchAttributesMissing) as caught:
        await ensure_search_attributes(client)
    assert "--name TriageStatus --type Keyword" in str(caught.value)
    assert "--name TriageWaitingSince --type Datetime" in str(caught.value)
    assert SECRET not in str(caught.value)


async def test_server_that_has_them_but_does_not_say() -> None:
    """Where we may neither list nor add them, attributes that can be queried are good enough."""
    denied = RPCStatusCode.PERMISSION_DENIED
    client = client_of(
        list_search_attributes=denied, add_search_attributes=denied, count_workflows=None
    )
    await ensure_search_attributes(client)
