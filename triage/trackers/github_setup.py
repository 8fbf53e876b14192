"""Opens the tracker over GitHub with what the settings give it.

Why it exists: which credential serves which use is decided in one place. What writes is taken only
where something is written, and only what is set opens anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from pydantic import SecretStr

from triage.settings import Role, Settings, SettingsError
from triage.trackers.github import GitHubTracker
from triage.trackers.github_auth import (
    FILES,
    READS,
    WRITES,
    App,
    AppCredential,
    Credential,
    Credentials,
    TokenCredential,
)
from triage.trackers.github_wire import REQUEST_SECONDS, WRITE_SECONDS, Wire

REQUESTS_A_LEASE: Final = 4
"""So many requests fit into a lease, each as long as it may be."""
WRITES_A_LEASE: Final = 3
"""So many calls of a method that writes do, up to where the request is sent."""


def open_github(settings: Settings) -> GitHubTracker:
    """Return the tracker; nothing is asked yet.

    Raises:
        SettingsError: they do not suffice; see `problems`.
    """
    if found := [*problems(settings)]:
        raise SettingsError(*found)
    wire = wire_of(settings)
    rights = Credentials(
        reads=_reads(settings, wire, READS),
        files=_reads(settings, wire, FILES),
        writes=_writes(settings, wire),
    )
    return GitHubTracker(wire, rights, app_id=settings.github_app_id)


def wire_of(settings: Settings) -> Wire:
    """Return where GitHub is, and how long one request may take."""
    lease = settings.lease_seconds
    return Wire(
        address=settings.github_base_url,
        request_seconds=min(REQUEST_SECONDS, lease / REQUESTS_A_LEASE),
        write_seconds=min(WRITE_SECONDS, lease / WRITES_A_LEASE),
    )


def app_of(settings: Settings) -> App | None:
    """Return the App that the settings name, if they do."""
    if settings.github_app_id is None or settings.github_private_key is None:
        return None
    return App(app_id=settings.github_app_id, private_key=settings.github_private_key)


def reading_token(settings: Settings) -> SecretStr | None:
    """Return the token that reads; a worker that writes may use its other one."""
    app = settings.github_app_id
    return settings.github_token or (None if app else settings.github_write_token)


def problems(settings: Settings) -> Iterator[str]:
    """Say what is missing to use GitHub, one line a variable."""
    app = (settings.github_app_id, settings.github_private_key)
    if app[0] and not app[1]:
        yield "TRIAGE_GITHUB_PRIVATE_KEY_FILE: is not set; set it to the file of the App's key"
    elif app[1] and not app[0]:
        yield "TRIAGE_GITHUB_APP_ID: is not set; set it to the id of the key's App"
    elif not app[0] and reading_token(settings) is None:
        yield (
            "TRIAGE_GITHUB_TOKEN_FILE: is not set; set it to the file of a token, or set"
            " TRIAGE_GITHUB_APP_ID and TRIAGE_GITHUB_PRIVATE_KEY_FILE"
        )
    elif (found := app_of(settings)) is not None and not found.can_sign():
        yield "TRIAGE_GITHUB_PRIVATE_KEY: is no RSA key in PEM form; set it to what GitHub gave you"


def _reads(settings: Settings, wire: Wire, permissions: Mapping[str, str]) -> Credential:
    token = reading_token(settings)
    return TokenCredential(token) if token else _by_app(settings, wire, permissions)


def _writes(settings: Settings, wire: Wire) -> Credential | None:
    """Return what writes: a token for that alone, else the App, else the one token."""
    if Role.WRITE not in settings.roles:
        return None
    token = settings.github_write_token or (
        None if settings.github_app_id else settings.github_token
    )
    return TokenCredential(token) if token else _by_app(settings, wire, WRITES)


def _by_app(settings: Settings, wire: Wire, permissions: Mapping[str, str]) -> Credential:
    app = app_of(settings)
    if app is None:
        raise SettingsError(*problems(settings))
    return AppCredential(wire=wire, app=app, permissions=permissions)
