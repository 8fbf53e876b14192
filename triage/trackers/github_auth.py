"""How we prove our right to GitHub: by a token, or by an App's tokens for one repository.

Why it exists: what leaks should open as little as possible, for as short as possible. So an App's
token is for one repository, by its id, for the permissions of one use, and never stored.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final, NoReturn, Protocol

from gidgethub import apps
from pydantic import JsonValue, SecretStr

from triage.trackers.base import (
    TrackerError,
    TrackerRefused,
    TrackerTimeout,
    TrackerUnavailable,
)
from triage.trackers.github_models import Grant, Installation, read
from triage.trackers.github_names import Place
from triage.trackers.github_wire import Conversation, Reply, Secret, Wire, connected

READS: Final[Mapping[str, str]] = {"metadata": "read", "issues": "read"}
FILES: Final[Mapping[str, str]] = {"metadata": "read", "contents": "read"}
WRITES: Final[Mapping[str, str]] = {"metadata": "read", "issues": "write"}

_JWT_SECONDS: Final = 540
_SPARE_SECONDS: Final = 300.0
"""A token that expires within this is not used any more."""
_INSTALLATION: Final = "/repos/{owner}/{repo}/installation"
_TOKENS: Final = "/app/installations/{installation}/access_tokens"


class Credential(Protocol):
    """Gives what a request to a repository proves its right with."""

    async def secret(self, place: Place) -> Secret:
        """Return it.

        Raises:
            TrackerError: there is none; nothing was done with the repository.
        """
        ...

    def forget(self, place: Place) -> None:
        """Learn that GitHub does not take it any more."""
        ...


@dataclass(frozen=True)
class TokenCredential:
    """One token for everything."""

    token: SecretStr

    async def secret(self, _place: Place) -> Secret:
        """Return the token."""
        return Secret(token=self.token.get_secret_value())

    def forget(self, _place: Place) -> None:
        """Keep the token: there is no other."""


@dataclass(frozen=True)
class _Held:
    grant: Grant
    use_until: float


@dataclass(frozen=True, kw_only=True)
class App:
    """A GitHub App: its id, and the key that it signs with."""

    app_id: str
    private_key: SecretStr

    def secret(self) -> Secret:
        """Return a word that proves for nine minutes to be the App.

        Raises:
            TrackerRefused: the key cannot sign (``unauthorized``).
        """
        try:
            key = self.private_key.get_secret_value()
            signed = apps.get_jwt(app_id=self.app_id, private_key=key, expiration=_JWT_SECONDS)
            return Secret(jwt=signed)
        except Exception:  # noqa: BLE001 - each kind of wrong key has an error of its own
            raise TrackerRefused("unauthorized", "the App's private key cannot sign") from None

    def can_sign(self) -> bool:
        """Whether the key is one that signs."""
        try:
            self.secret()
        except TrackerRefused:
            return False
        return True


@dataclass(frozen=True, kw_only=True)
class AppCredential:
    """An App's tokens, each for one repository and for `permissions`, as long as they last."""

    wire: Wire
    app: App
    permissions: Mapping[str, str]
    _held: dict[Place, _Held] = field(default_factory=dict)
    _ids: dict[Place, int] = field(default_factory=dict)

    async def secret(self, place: Place) -> Secret:
        """Return a token for the repository, a new one before the last one expires."""
        repository = Place(place.owner, place.name)
        held = self._held.get(repository)
        if held is None or time.monotonic() >= held.use_until:
            held = await self._ask(repository)
            self._held[repository] = held
        return Secret(token=held.grant.token)

    def forget(self, place: Place) -> None:
        """Ask for a new token the next time."""
        self._held.pop(Place(place.owner, place.name), None)

    async def _ask(self, place: Place) -> _Held:
        try:
            async with connected(self.wire, self.app.secret()) as talk:
                found = await talk.get(_INSTALLATION, place.variables)
                installation = read(Installation, found.value, writing=False).id
                if place not in self._ids:
                    # A name may be given to another repository: only its id narrows for good.
                    first = await _token(talk, installation, _by_name(place))
                    self._ids[place] = _only_repository(first)
                narrow = self._narrow(place)
                return _kept(await _token(talk, installation, narrow))
        except TrackerError as error:
            _translate(error)

    def _narrow(self, place: Place) -> dict[str, JsonValue]:
        return {"repository_ids": [self._ids[place]], "permissions": {**self.permissions}}


@dataclass(frozen=True, kw_only=True)
class Credentials:
    """What each use proves its right with.

    Attributes:
        reads: for issues and labels.
        files: for files of the repository.
        writes: for labels on issues; None where nothing is written.
    """

    reads: Credential
    files: Credential
    writes: Credential | None = None

    def required_writes(self) -> Credential:
        """Return what a write needs.

        Raises:
            TrackerRefused: this process has no such right (``unauthorized``).
        """
        if self.writes is None:
            raise TrackerRefused("unauthorized", "this process has no right to write")
        return self.writes


async def _token(talk: Conversation, installation: int, body: dict[str, JsonValue]) -> Reply:
    """Ask for a token: that changes nothing that anybody sees."""
    names = {"installation": str(installation)}
    return await talk.send("POST", _TOKENS, names, about="repository", body=body)


def _by_name(place: Place) -> dict[str, JsonValue]:
    return {"repositories": [place.name], "permissions": {"metadata": "read"}}


def _only_repository(reply: Reply) -> int:
    grant = read(Grant, reply.value, writing=False)
    if len(grant.repositories) != 1:
        raise TrackerUnavailable("the token is not for one repository", effect_possible=False)
    return grant.repositories[0].id


def _kept(reply: Reply) -> _Held:
    """Note how long a token may be used, by GitHub's clock and not by ours."""
    grant = read(Grant, reply.value, writing=False)
    try:
        now = parsedate_to_datetime(reply.headers.get("date", ""))
    except ValueError:
        now = datetime.now(UTC)
    left = (grant.expires_at - now).total_seconds() - _SPARE_SECONDS
    return _Held(grant, time.monotonic() + left)


def _translate(error: TrackerError) -> NoReturn:
    """Say of any failure that nothing was done, and of a missing installation what it is."""
    match error:
        case TrackerTimeout():
            raise TrackerUnavailable(str(error), effect_possible=False) from None
        case TrackerRefused(code="repository_not_found"):
            message = "the App is not installed on the repository"
            raise TrackerRefused("forbidden", message) from None
        case TrackerRefused(code="validation_failed"):
            message = "the App was not given the repository or the permissions"
            raise TrackerRefused("forbidden", message) from None
        case _:
            raise error
