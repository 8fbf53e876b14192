"""Billable actions, as the Temporal server itself counts them on its metrics port."""

from __future__ import annotations

import re
from http.client import HTTPConnection
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

NOT_A_RUNS: Final = ("QueryWorkflow", "RecordActivityTaskHeartbeat")
"""How actions end that are ours, or whose number depends on time."""
PUBLISHED_SECONDS: Final = 2.5
"""The server publishes its counters once a second, and tells nobody."""

_ANSWER_SECONDS: Final = 30
_ADDRESS: Final = re.compile(r"Metrics: +(http://\w[\w.]*:\d+/\w+)")
_ACTION: Final = re.compile(
    r'^action\{action_type="(\w+)",namespace="default".*\} (\d+)$', re.MULTILINE
)


def metrics_address(log: str) -> str:
    """Return the address that a server's first lines give for its metrics.

    Raises:
        LookupError: they give none.
    """
    if (found := _ADDRESS.search(log)) is None:
        raise LookupError("the server did not say where its metrics are")
    return found[1]


def parse_actions(metrics: str) -> int:
    """Count the billable actions of the namespace ``default`` that runs took."""
    counted = _ACTION.findall(metrics)
    return sum(int(number) for kind, number in counted if not kind.endswith(NOT_A_RUNS))


def read_actions(log: Path) -> int:
    """Ask the server that writes to `log` for its count; it may be a second old."""
    address = urlsplit(metrics_address(log.read_text(encoding="utf-8")))
    connection = HTTPConnection(address.netloc, timeout=_ANSWER_SECONDS)
    try:
        connection.request("GET", address.path)
        return parse_actions(connection.getresponse().read().decode())
    finally:
        connection.close()
