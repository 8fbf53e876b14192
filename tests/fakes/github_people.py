"""Who may call the fake GitHub, and as whom: accounts with a token, and an App with its tokens."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from typing import Any, Final

import jwt

from tests.fakes import github_shapes as shapes
from tests.fakes.http_server import Request, Response
from tests.fakes.openapi import description

_LEVELS: Final = ("read", "write", "admin")
JWT_DOTS: Final = 2
_GRANT: Final = "POST /app/installations/{installation_id}/access_tokens"
_EVERYTHING: Final[Mapping[str, str]] = {"issues": "write", "contents": "read", "metadata": "read"}


@dataclass(kw_only=True)
class App:
    """A GitHub App, and where it is installed.

    Attributes:
        id: its id.
        slug: its name.
        public_key: what its words are verified with.
        permissions: what it was given.
        repositories: where it is installed.
        lives: how long a token of it lasts.
    """

    id: int
    slug: str
    public_key: str
    permissions: Mapping[str, str] = field(default_factory=lambda: dict(_EVERYTHING))
    repositories: set[str] = field(default_factory=set)
    lives: timedelta = timedelta(hours=1)

    @property
    def login(self) -> str:
        """The account that its tokens act as."""
        return f"{self.slug}[bot]"

    def shape(self) -> dict[str, Any]:
        """Return it as answers show it."""
        return shapes.integration(self.id, self.slug, self.permissions)


@dataclass(frozen=True, kw_only=True)
class Caller:
    """Who a request is from, and what it may see and do; `repositories` None is all."""

    login: str
    permissions: Mapping[str, str] = field(default_factory=lambda: _EVERYTHING)
    repositories: frozenset[str] | None = None
    is_app: bool = False
    is_installation: bool = False

    def sees(self, repository: str) -> bool:
        """Whether a repository exists for it."""
        return not self.is_app and (self.repositories is None or repository in self.repositories)

    def may(self, permission: str, level: str) -> bool:
        """Whether it has a permission, at least at a level."""
        given = self.permissions.get(permission)
        return given is not None and _LEVELS.index(given) >= _LEVELS.index(level)


class People:
    """All callers: a token that is not listed belongs to an account of its own name.

    Attributes:
        app: the App, if there is one.
        callers: those whose token says less, or something else.
        grants: what each token of the App was asked to be for, in order.
        rights: what people may do, by repository and login: a role's name, and what it contains
            where that is a role of an organisation's own.
    """

    def __init__(self, app: App | None) -> None:
        self.app = app
        self.callers: dict[str, Caller] = {}
        self.grants: list[dict[str, Any]] = []
        self.rights: dict[tuple[str, str], tuple[str, str]] = {}
        self._numbers = count(1)

    def who(self, authorization: str) -> Caller | None:
        """Return who a header stands for; None for nobody."""
        kind, _, token = authorization.partition(" ")
        if not token:
            return None
        if kind.lower() == "bearer" and token.count(".") == JWT_DOTS:
            return self._app_of(token)
        if token.startswith("ghs_") and token not in self.callers:
            return None
        return self.callers.get(token) or Caller(login=token)

    def permission(self, repository: str, login: str) -> dict[str, Any]:
        """Return what somebody may do: nothing but to read, unless `rights` says more."""
        role, contains = self.rights.get((repository, login), ("read", "read"))
        basic = {"triage": "read", "maintain": "write"}.get(role, contains)
        person = {**shapes.user(login), "role_name": role}
        return {"permission": basic, "role_name": role, "user": person}

    def answer(self, request: Request, parts: list[str], caller: Caller) -> Response | None:
        """Return what is asked about the caller itself; None if that is nothing."""
        match (request.method, parts):
            case ("GET", ["user"]) if caller.is_installation or caller.is_app:
                return Response.of({"message": "Resource not accessible by integration"}, 403)
            case ("GET", ["user"]):
                headers = {"X-OAuth-Scopes": "repo, read:org"}
                return Response.of(shapes.account(caller.login), headers=headers)
            case ("GET", ["rate_limit"]):
                return Response.of(shapes.rate())
            case ("GET", ["app"]) if self.app and caller.is_app:
                return Response.of(self.app.shape())
            case ("POST", ["app", "installations", _, "access_tokens"]) if self.app:
                return self._grant(self.app, request.json()) if caller.is_app else None
        return None

    def installation(self, caller: Caller, repository: str) -> Response | None:
        """Return where the App is installed; None if it is not."""
        if self.app is None or not caller.is_app or repository not in self.app.repositories:
            return None
        return Response.of(shapes.installation(77, self.app.id, self.app.permissions))

    def _app_of(self, token: str) -> Caller | None:
        if self.app is None:
            return None
        try:
            jwt.decode(
                token, self.app.public_key, algorithms=["RS256"], issuer=str(self.app.id), leeway=5
            )
        except jwt.PyJWTError:
            return None
        return Caller(login=self.app.slug, is_app=True)

    def _grant(self, app: App, asked: dict[str, Any]) -> Response:
        """Give a token for what is asked, if the App has that."""
        self.grants.append(asked)
        wanted = {
            name
            for name in app.repositories
            if name.partition("/")[2] in asked.get("repositories", [])
            or shapes.number_of(name) in asked.get("repository_ids", [])
        }
        has = Caller(login=app.login, permissions=app.permissions)
        if not wanted or not all(has.may(*pair) for pair in asked["permissions"].items()):
            message = "The permissions requested are not granted to this installation."
            return Response.of({"message": message, "documentation_url": ""}, 422)
        token = f"ghs_{next(self._numbers)}"
        self.callers[token] = Caller(
            login=app.login,
            permissions=asked["permissions"],
            repositories=frozenset(wanted),
            is_installation=True,
        )
        shape = shapes.token(token, asked["permissions"], app.lives)
        return Response.of({**shape, "repositories": [_repository(n) for n in wanted]}, 201)


def _repository(name: str) -> dict[str, Any]:
    example = description()["operations"][_GRANT]["example"]["repositories"][0]
    shape: dict[str, Any] = copy.deepcopy(example)
    return {**shape, "id": shapes.number_of(name), "full_name": name}
