"""Who we are at GitHub, what we may do there, and how much of the rate limit is left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pydantic import SecretStr

from triage.trackers.base import TrackerRefused
from triage.trackers.github_auth import App
from triage.trackers.github_models import OwnApp, RateLimit, User, read
from triage.trackers.github_wire import Conversation, Secret, Wire, connected

_SCOPES: Final = "x-oauth-scopes"


@dataclass(frozen=True, kw_only=True)
class Identity:
    """Who a credential stands for.

    Attributes:
        name: a login, or an App's name; None if GitHub does not say.
        permissions: as GitHub names them; None if it does not.
        remaining: the requests that are left in this hour; None if GitHub does not say.
        limit: of how many.
        installations: how many accounts have the App; None for a token.
    """

    name: str | None
    permissions: tuple[str, ...] | None
    remaining: int | None = None
    limit: int | None = None
    installations: int | None = None


async def identify_token(wire: Wire, token: SecretStr) -> Identity:
    """Return whose token it is.

    Raises:
        TrackerError: GitHub does not take it, or does not answer.
    """
    async with connected(wire, Secret(token=token.get_secret_value())) as talk:
        login, scopes = await _login(talk)
        reply = await talk.get("/rate_limit", {})
        core = read(RateLimit, reply.value, writing=False).resources.core
    return Identity(name=login, permissions=scopes, remaining=core.remaining, limit=core.limit)


async def identify_app(wire: Wire, app: App) -> Identity:
    """Return which App it is; its rate limit is each installation's own.

    Raises:
        TrackerError: GitHub does not take its key, or does not answer.
    """
    async with connected(wire, app.secret()) as talk:
        found = read(OwnApp, (await talk.get("/app", {})).value, writing=False)
    rights = tuple(f"{name}: {level}" for name, level in sorted(found.permissions.items()))
    return Identity(name=found.slug, permissions=rights, installations=found.installations_count)


async def _login(talk: Conversation) -> tuple[str | None, tuple[str, ...] | None]:
    """Return a token's login and scopes; a token of an installation has no login."""
    try:
        reply = await talk.get("/user", {})
    except TrackerRefused as error:
        if error.code == "forbidden":
            return None, None
        raise
    return read(User, reply.value, writing=False).login, _scopes(reply.headers)


def _scopes(headers: Mapping[str, str]) -> tuple[str, ...] | None:
    if _SCOPES not in headers:
        return None
    return tuple(scope.strip() for scope in headers[_SCOPES].split(",") if scope.strip())
