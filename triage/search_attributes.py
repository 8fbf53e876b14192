"""Registers our search attributes with a server, or says which ones it lacks.

Why it exists: writing an attribute that the server does not know makes a workflow task fail for
ever, so nothing may poll before this was settled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import (
    AddSearchAttributesRequest,
    ListSearchAttributesRequest,
)
from temporalio.client import Client
from temporalio.common import SearchAttributeKey
from temporalio.service import RPCError, RPCStatusCode

from triage.contracts.search_attributes import SEARCH_ATTRIBUTES
from triage.settings import SettingsError

_TIMEOUT: Final = timedelta(seconds=5)
_NOT_FOR_US: Final = (
    RPCStatusCode.UNIMPLEMENTED,
    RPCStatusCode.PERMISSION_DENIED,
    RPCStatusCode.UNAUTHENTICATED,
)
Key = SearchAttributeKey[Any]
Types = Mapping[str, IndexedValueType.ValueType]


class SearchAttributesMissing(SettingsError):  # noqa: N818 - reads as what was found
    """The namespace lacks our attributes, or has them with other types, and we may not add them.

    The message names them with the command that adds them.
    """


async def ensure_search_attributes(client: Client) -> None:
    """Make sure that the namespace has every attribute that runs write, adding what lacks.

    Safe to call from many processes at once, and again.

    Raises:
        SearchAttributesMissing: they are not all there, and this server does not let us add them.
        RPCError: the server failed in another way.
    """
    known = await _known(client)
    if known is None:
        await _add_blindly(client)
        return
    if wrong := [key for key in SEARCH_ATTRIBUTES if known.get(key.name, _type(key)) != _type(key)]:
        raise _problem(client, wrong, "has another type for")
    missing = [key for key in SEARCH_ATTRIBUTES if key.name not in known]
    if missing and not await _add(client, missing):
        raise _problem(client, missing, "does not have, and does not let us add,")


def type_name(key: Key) -> str:
    """Return the type of `key` as the ``temporal`` CLI writes it, such as ``Keyword``."""
    return key.indexed_value_type.name.title()


async def _known(client: Client) -> Types | None:
    """Return the attributes that the namespace has, or None if the server does not tell."""
    try:
        reply = await client.operator_service.list_search_attributes(
            ListSearchAttributesRequest(namespace=client.namespace), timeout=_TIMEOUT
        )
    except RPCError as error:
        if error.status in _NOT_FOR_US:
            return None
        raise
    return reply.custom_attributes


async def _add(client: Client, keys: Sequence[Key]) -> bool:
    """Add `keys` and tell whether they are there now."""
    request = AddSearchAttributesRequest(
        namespace=client.namespace, search_attributes={key.name: _type(key) for key in keys}
    )
    try:
        await client.operator_service.add_search_attributes(request, timeout=_TIMEOUT)
    except RPCError as error:
        if error.status in _NOT_FOR_US:
            return False
        if error.status is not RPCStatusCode.ALREADY_EXISTS:
            raise
    return True


async def _add_blindly(client: Client) -> None:
    """Add one by one, and ask by a query for what may not be added: it refuses unknown names."""
    missing = [
        key
        for key in SEARCH_ATTRIBUTES
        if not await _add(client, [key]) and not await _can_be_queried(client, key)
    ]
    if missing:
        raise _problem(client, missing, "does not have, and does not let us add,")


async def _can_be_queried(client: Client, key: Key) -> bool:
    try:
        await client.count_workflows(f"{key.name} IS NULL", rpc_timeout=_TIMEOUT)
    except RPCError as error:
        if error.status is RPCStatusCode.INVALID_ARGUMENT:
            return False
        raise
    return True


def _type(key: Key) -> IndexedValueType.ValueType:
    return IndexedValueType.ValueType(key.indexed_value_type.value)


def _problem(client: Client, keys: Sequence[Key], lacks: str) -> SearchAttributesMissing:
    names = ", ".join(key.name for key in keys)
    flags = " ".join(f"--name {key.name} --type {type_name(key)}" for key in keys)
    return SearchAttributesMissing(
        f"the namespace {ascii(client.namespace)[1:-1]} {lacks} search attributes: {names}."
        f" Add them with `temporal operator search-attribute create {flags}`,"
        " or in Temporal Cloud's console"
    )
