"""What the values of settings have to be; each check says what is wrong and quotes nothing."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import SecretStr

_DRIVERS = {
    "sqlite": "sqlite",
    "sqlite+aiosqlite": "sqlite",
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}
MIN_WEBHOOK_SECRET_CHARS = 16
_MODELS = (
    r"rules|recorded|recorded:(sha256:)?[0-9a-f]{64}|learned:(sha256:)?[0-9a-f]{64}(:\S+)?"
    r"|(openai|anthropic):\S+|x-[a-z0-9-]+(:\S+)?"
)
_TRACKERS = r"local|github|x-[a-z0-9-]+"
_MODULE = r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*"


def split(value: object) -> object:
    """Split a list that is written with commas."""
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else value


def absolute(path: Path) -> Path:
    """Return the path from the root."""
    return path.expanduser().absolute()


def existing_file(path: Path) -> Path:
    """Return the path of a file that there is."""
    if not absolute(path).is_file():
        raise ValueError("names no file")
    return absolute(path)


def model_name(name: str) -> str:
    """Take the name of a kind of model."""
    if not re.fullmatch(_MODELS, name):
        raise ValueError("names no known kind of model")
    return name


def tracker_name(name: str) -> str:
    """Take the name of a tracker."""
    if not re.fullmatch(_TRACKERS, name):
        raise ValueError("names no known tracker")
    return name


def module_name(name: str) -> str:
    """Take the name of a Python module."""
    if not re.fullmatch(_MODULE, name):
        raise ValueError("is no name of a Python module")
    return name


def base_url(url: str) -> str:
    """Take the address of an API, without credentials."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("is no http or https URL")
    if parts.username or parts.password:
        raise ValueError("holds credentials, which belong into TRIAGE_MODEL_API_KEY")
    return url


def database_url(url: str) -> str:
    """Add the asynchronous driver, which people leave out."""
    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in _DRIVERS:
        raise ValueError("is neither an SQLite nor a PostgreSQL URL")
    return f"{_DRIVERS[scheme]}://{rest}"


def queue_name(name: str) -> str:
    """Take the name of a task queue."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", name):
        raise ValueError("is not 1 to 100 letters, digits, dots, dashes or underscores")
    return name


def token(token: SecretStr) -> SecretStr:
    """Take what may stand in a header."""
    if not re.fullmatch(r"[\x21-\x7e]{1,4096}", token.get_secret_value()):
        raise ValueError("is no token, which has neither spaces nor line breaks")
    return token


def webhook_secret(secret: SecretStr) -> SecretStr:
    """Take a secret that cannot be guessed."""
    if len(secret.get_secret_value()) < MIN_WEBHOOK_SECRET_CHARS:
        raise ValueError(f"has fewer than {MIN_WEBHOOK_SECRET_CHARS} characters, so it is guessed")
    return secret


def app_id(app_id: str) -> str:
    """Take the id of an App."""
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", app_id):
        raise ValueError("is no App's id")
    return app_id
