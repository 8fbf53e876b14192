"""What `triage doctor` says of providers that it asks, over real HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Final

import pytest

from tests.cli.conftest import NOWHERE
from tests.fakes.http_server import HttpServer, Request, Response
from triage.cli import model_probe
from triage.cli.findings import Finding
from triage.settings import Settings

KEY: Final = "sk-made-up-0123456789"
SAID: Final = "ghp_said_by_the_provider"


@dataclass
class _Far:
    """A provider that answers everything with one status."""

    status: int = 200
    requests: list[Request] = field(default_factory=list)

    async def answer(self, request: Request) -> Response:
        self.requests.append(request)
        return Response(status=self.status, body=SAID.encode(), headers={"location": "/elsewhere"})


@pytest.fixture(scope="module")
async def server() -> AsyncIterator[tuple[_Far, str]]:
    """The provider, and its address."""
    far = _Far()
    http = HttpServer(far.answer)
    await http.listen()
    yield far, http.address
    await http.close()


async def _found(base_url: str, **changes: str) -> list[Finding]:
    given = {"model": "openai:llama3", "model_base_url": base_url, **changes}
    return await model_probe.check(Settings.model_validate(given))


@pytest.mark.parametrize(
    ("status", "key", "level", "said"),
    [
        (200, KEY, "ok", "answers, and accepts the key"),
        (200, "", "ok", "answers"),
        (401, KEY, "fail", "does not accept the key"),
        (401, "", "fail", "wants a key"),
        (403, KEY, "warn", "answers 403: the key may not be used, or not to list the models"),
        (404, KEY, "warn", "answers 404: there is no list of models"),
        (302, KEY, "warn", "answers 302: it leads elsewhere, which is not followed"),
        (503, KEY, "warn", "answers 503"),
    ],
)
async def test_a_provider_is_asked_once_and_what_it_says_is_not_shown(
    server: tuple[_Far, str], status: int, key: str, level: str, said: str
) -> None:
    """One request for its list of models, with the key, tells how it stands."""
    far, address = server
    far.status = status
    far.requests.clear()
    [finding] = await _found(f"{address}/v1", **({"model_api_key": key} if key else {}))
    assert (level, f"openai at {address}/v1: {said}") == (finding.level.value, finding.detail)
    [request] = far.requests
    assert ("GET", "/v1/models", b"") == (request.method, request.path, request.body)
    assert (f"Bearer {key}" if key else None) == request.headers.get("authorization")
    assert not any(word in repr(finding) for word in (KEY, SAID))


async def test_the_other_protocol_is_spoken_too(server: tuple[_Far, str]) -> None:
    """Anthropic's list has an address and a header of its own."""
    far, address = server
    far.status = 401
    far.requests.clear()
    [finding] = await _found(address, model="anthropic:claude-sonnet-5", model_api_key=KEY)
    assert finding.detail.endswith("does not accept the key")
    assert ("/v1/models", KEY) == (far.requests[0].path, far.requests[0].headers["x-api-key"])


async def test_a_provider_that_is_away_is_a_service_that_is() -> None:
    """The doctor then ends with the status of something unreachable."""
    [finding] = await _found(f"http://{NOWHERE}/v1", model_api_key=KEY)
    assert f"openai at http://{NOWHERE}/v1: cannot be reached" == finding.detail
    assert ("fail", True) == (finding.level.value, finding.is_service)


@pytest.mark.parametrize(
    ("changes", "rows"),
    [
        ({"model": "rules"}, 0),
        ({"roles": "write"}, 0),
        ({"model": "anthropic:c", "model_base_url": ""}, 0),
        ({"model_base_url": "http://llm.example/v1", "model_api_key": KEY}, 1),
    ],
    ids=["no provider", "no worker that asks", "no key", "a key in the open"],
)
async def test_nothing_is_sent_where_nothing_may_be(changes: dict[str, str], rows: int) -> None:
    """Without a provider or a key there is no row, and no key goes where others could read it."""
    given = {"model": "openai:llama3", **changes}
    given = {name: value for name, value in given.items() if value}
    found = await model_probe.check(Settings.model_validate(given))
    assert rows == len(found)
    assert all("not asked" in finding.detail for finding in found)
