"""Payloads and messages that the SDK's own client would not send."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from typing import Any, Final

from pydantic import JsonValue
from temporalio.api.common.v1 import Payload, Payloads, WorkflowExecution, WorkflowType
from temporalio.api.query.v1 import WorkflowQuery
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import (
    QueryWorkflowRequest,
    SignalWorkflowExecutionRequest,
    StartWorkflowExecutionRequest,
)

from tests.workflow.runs import Run
from tests.workflow.world import World
from triage.contracts.names import ISSUE_TRIAGE
from triage.contracts.response import TriageResponse

JSON: Final = b"json/plain"


def payload(data: bytes, encoding: bytes | None = JSON) -> Payload:
    """A payload of any bytes that claims any encoding, or none."""
    return Payload(metadata={} if encoding is None else {"encoding": encoding}, data=data)


def as_json(value: JsonValue) -> Payload:
    """A payload as a well-behaved client sends it."""
    return payload(json.dumps(value).encode())


ODD_PAYLOADS: Final[dict[str, Payload]] = {
    "JSON string": payload(b'"a string"'),
    "JSON number": payload(b"7"),
    "JSON null": payload(b"null"),
    "JSON array": payload(b"[]"),
    "JSON true": payload(b"true"),
    "an empty object": payload(b"{}"),
    "no bytes": payload(b""),
    "not JSON": payload(b"{request_id: 1}"),
    "two documents": payload(b"{} {}"),
    "half a document": payload(b'{"request_id": "ISSUE-1", "title'),
    "NaN": payload(b'{"request_id": NaN}'),
    "the same key twice": payload(b'{"request_id": "a", "request_id": "b"}'),
    "not UTF-8": payload(b'{"request_id": "\xff\xfe"}'),
    "UTF-16": payload('{"request_id": "a"}'.encode("utf-16")),
    "encoded surrogate": payload(b'{"request_id": "\xed\xa0\x80"}'),
    "binary": payload(b"\x00\x01\x02", b"binary/plain"),
    "JSON called binary": payload(b"{}", b"binary/plain"),
    "the SDK's null": payload(b"", b"binary/null"),
    "unknown encoding": payload(b"{}", b"application/x-unheard-of"),
    "protobuf": payload(b"{}", b"json/protobuf"),
    "encrypted": payload(b"\x8f\x02", b"binary/encrypted"),
    "no encoding": payload(b"{}", None),
    "nested deeply": payload(b"[" * 100_000 + b"]" * 100_000),
    "a long number": payload(b"1" * 100_000),
    "a huge exponent": payload(b'{"request_id": 1e999999}'),
}
"""One argument each, none of them a request, an envelope or an edit."""


async def start(world: World, payloads: Sequence[Payload], kind: str = ISSUE_TRIAGE) -> Run:
    """Start a workflow through the server's own interface."""
    run_id = f"raw-{uuid.uuid4().hex}"
    await world.client.workflow_service.start_workflow_execution(
        StartWorkflowExecutionRequest(
            namespace=world.client.namespace,
            workflow_id=run_id,
            workflow_type=WorkflowType(name=kind),
            task_queue=TaskQueue(name=world.queue),
            input=Payloads(payloads=payloads),
            request_id=run_id,
        )
    )
    return Run(world.client.get_workflow_handle(run_id, result_type=TriageResponse))


async def signal(world: World, run: Run, name: str, payloads: Sequence[Payload]) -> None:
    """Send a signal through the server's own interface."""
    await world.client.workflow_service.signal_workflow_execution(
        SignalWorkflowExecutionRequest(
            namespace=world.client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=run.id),
            signal_name=name,
            input=Payloads(payloads=payloads),
        )
    )


async def query(world: World, run: Run, name: str, payloads: Sequence[Payload] = ()) -> Any:  # noqa: ANN401 - whatever JSON it answers
    """Ask a query and return exactly the JSON that went over the wire."""
    answer = await world.client.workflow_service.query_workflow(
        QueryWorkflowRequest(
            namespace=world.client.namespace,
            execution=WorkflowExecution(workflow_id=run.id),
            query=WorkflowQuery(query_type=name, query_args=Payloads(payloads=payloads)),
        )
    )
    [result] = answer.query_result.payloads
    return read(result)


def read(found: Payload) -> Any:  # noqa: ANN401 - whatever JSON it holds
    """Read a payload as a client without any of our types does."""
    return json.loads(found.data) if found.data else None
