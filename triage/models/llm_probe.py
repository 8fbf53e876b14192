"""Whether a provider answers: one request for its list of models, which costs nothing.

Why it exists: that a model cannot be asked should be seen before a run finds out. It goes the way
of every question, by the one request that `llm_wire` sends; of the answer its status alone is read.
"""

from __future__ import annotations

import asyncio
from typing import Final
from urllib.parse import urlsplit

import httpx2

from triage.models.llm_protocols import Spoken
from triage.models.llm_setup import Endpoint
from triage.models.llm_wire import opened

PROBE_SECONDS: Final = 2.0


class UnansweredError(Exception):
    """No answer came; the message says how, and quotes nobody."""


def place_of(spoken: Spoken, endpoint: Endpoint) -> str:
    """Return the address that a provider is asked at, without a query."""
    parts = urlsplit(endpoint.base_url or spoken.address)
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


async def status_of(spoken: Spoken, endpoint: Endpoint) -> int:
    """Return the status of what a provider answers.

    Raises:
        UnansweredError: nothing came in time, or there was no connection.
    """
    key = endpoint.key.get_secret_value() if endpoint.key else ""
    request = httpx2.Request("GET", f"{place_of(spoken, endpoint)}{spoken.models}")
    try:
        async with (
            asyncio.timeout(PROBE_SECONDS),
            opened(spoken.headers(key)) as (_, client),
        ):
            answer = await client.send(request, stream=True)
            await answer.aclose()
            return answer.status_code
    except TimeoutError:
        raise UnansweredError(f"no answer within {PROBE_SECONDS:.0f} seconds") from None
    except Exception:  # noqa: BLE001 - whatever the library raises may quote the key
        raise UnansweredError("cannot be reached") from None
