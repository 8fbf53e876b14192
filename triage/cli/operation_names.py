"""How people name an operation of the ledger: by its key, or as lists show it, such as ``op-6@6``.

Why it exists: an operation's id is its run's, so two runs may have one of the same name. Whoever
types it means one of them, and nothing is picked for them.
"""

from __future__ import annotations

import re
from typing import Final

from triage.cli.errors import InputError, RefusedError
from triage.cli.orders import ID_PREFIX
from triage.storage.engine import Store
from triage.storage.ledger import Ledger
from triage.storage.ledger_listing import MOST_NAMED, named
from triage.storage.operations import OperationRecord

BY_VERSION: Final = re.compile(r"(?P<id>.+)@(?P<version>[0-9]{1,9})", re.DOTALL)
HINT: Final = "'triage operations' shows the keys; an operation's id will do where one run has it"


async def find_operation(
    store: Store, ledger: Ledger, name: str, workflow: str | None = None
) -> OperationRecord:
    """Return the one operation that a name stands for.

    Args:
        store: where the ledger is.
        ledger: finds it by its key.
        name: its key, its id, or its id and version.
        workflow: only of this run, which may be named by what it was started for.

    Raises:
        RefusedError: there is none, or several; the latter are named.
        StorageUnreadable: somebody edited its row.
    """
    if workflow is None and (record := await ledger.get(name)) is not None:
        return record
    runs = None if workflow is None else (workflow, f"{ID_PREFIX}{workflow}")
    found = await named(store, name, runs)
    if not found and (parts := BY_VERSION.fullmatch(name)) is not None:
        found = await named(store, parts["id"], runs, int(parts["version"]))
    if not found:
        raise RefusedError(f"there is no operation {name}{_of(workflow)}", HINT)
    if len(found) > 1:
        more = ["and others"] if len(found) == MOST_NAMED else []
        told = [f"{name} names several operations{_of(workflow)}:", *map(_line, found), *more]
        raise RefusedError("\n".join(told), "type the key of the one that you mean")
    return found[0]


def split_version(operation: str, version: int | None) -> tuple[str, int]:
    """Return the id and the version of what is decided on, which may be named in one word.

    Raises:
        InputError: no version is named, or two.
    """
    parts = BY_VERSION.fullmatch(operation)
    if parts is None:
        if version is None:
            raise InputError(
                "the version is missing", "add --version N, the version that 'triage show' prints"
            )
        return operation, version
    if version not in {None, int(parts["version"])}:
        raise InputError(f"{operation} and --version {version} name two versions")
    return parts["id"], int(parts["version"])


def _of(workflow: str | None) -> str:
    return "" if workflow is None else f" of {workflow}"


def _line(record: OperationRecord) -> str:
    by_version = f"{record.operation_id}@{record.version}"
    return f"{record.operation_key}  {by_version} of {record.workflow_id}, {record.state.value}"
