"""Where settings come from besides the environment: secret files and ``triage.toml``.

Why it exists: both are read by hand so that every mistake in them ends as one line that names the
variable or key and quotes nothing. The environment is passed in; only `triage.settings` reads it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from triage.policy.rules_file import TABLES
from triage.policy.toml_text import LARGEST, TomlError, toml_table

PREFIX: Final = "TRIAGE_"
CONFIG_FILE: Final = "triage.toml"
CONFIG_VARIABLE: Final = "TRIAGE_CONFIG"
SECRETS: Final = (
    "anthropic_api_key",
    "database_url",
    "github_private_key",
    "github_token",
    "github_write_token",
    "model_api_key",
    "openai_api_key",
    "webhook_secret",
    "webhook_secret_previous",
)
"""Settings that a ``..._FILE`` variable may hold."""

ENVIRONMENT_ONLY: Final = frozenset({"extensions"})
"""Settings that no file can hold: a folder may be somebody else's."""

OTHERS: Final = frozenset({"db_password", "debug", "keyring_folder", "service_key_folder"})
"""Variables that are no settings: the command line's, and those of ``docker-compose.yml``."""

_SERVICE_LINK: Final = re.compile(
    r"(?:[a-z0-9_]+_)?(?:service_host|service_port(?:_[a-z0-9_]+)?|port)"
    r"|(?:[a-z0-9_]+_)?port_[0-9]+_(?:tcp|udp|sctp)(?:_(?:proto|port|addr))?"
)
"""What Kubernetes sets in each container for a service that is called triage, or triage-…."""

MAX_FILE_BYTES: Final = 1_048_576
MAX_PROBLEMS: Final = 20
"""How many keys that are wrong are told of at once."""


class SettingsError(Exception):
    """The settings cannot be used.

    Attributes:
        problems: one line each: which variable or key, what is wrong, what to do. None quotes
            a value.
    """

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def variable(name: str) -> str:
    """Return the environment variable of the setting `name`."""
    return f"{PREFIX}{name.upper()}"


def strange_variables(environ: Mapping[str, str], known: Collection[str]) -> Iterator[str]:
    """Yield a sentence for each variable of ours that nothing reads; values are never shown."""
    also = {"config", *OTHERS, *(f"{name}_file" for name in SECRETS)}
    names = {*known, *also}
    for full in sorted(name for name, value in environ.items() if value):
        name = full.removeprefix(PREFIX).lower()
        if not full.startswith(PREFIX) or name in names or _SERVICE_LINK.fullmatch(name):
            continue
        shown = full if re.fullmatch(r"[A-Za-z0-9_]{1,60}", full) else f"a variable {PREFIX}…"
        close = difflib.get_close_matches(name, sorted(names - OTHERS), 1)
        advice = f"; did you mean {variable(close[0])}?" if close else ""
        yield f"{shown} is no setting{advice}"


def config_path(environ: Mapping[str, str]) -> Path | None:
    """Return the ``triage.toml`` in force, if there is one.

    Raises:
        SettingsError: ``TRIAGE_CONFIG`` names a file that does not exist.
    """
    named = environ.get(CONFIG_VARIABLE)
    path = Path(named or CONFIG_FILE).expanduser().absolute()
    if path.is_file():
        return path
    if named:
        raise SettingsError(f"{CONFIG_VARIABLE}: names no file; set it to the path of one")
    return None


def secret_files(environ: Mapping[str, str]) -> dict[str, Path]:
    """Return the secrets that ``..._FILE`` variables hold, with their files.

    Raises:
        SettingsError: a secret is given both ways.
    """
    files = {}
    for name in SECRETS:
        if file := environ.get(f"{variable(name)}_FILE"):
            files[name] = Path(file).expanduser().absolute()
            if environ.get(variable(name)):
                raise SettingsError(
                    f"{variable(name)}: is set, and {variable(name)}_FILE too; unset one of them"
                )
    return files


def read_secret(name: str, file: Path) -> str:
    """Return the content of a secret's file without its last line break.

    Raises:
        SettingsError: the file cannot be read, or holds no text.
    """
    text = _read(file, f"{variable(name)}_FILE").rstrip("\r\n")
    if not text:
        raise SettingsError(f"{variable(name)}_FILE: names an empty file; put the secret into it")
    return text


def config_values(file: Path, known: Collection[str]) -> dict[str, object]:
    """Return the settings that ``triage.toml`` holds.

    Scalars come as text, so that they mean the same as in a variable.

    Raises:
        SettingsError: the file is no TOML, or holds a key that is no setting, or a secret.
    """
    settings = {k: v for k, v in _table(file).items() if not _is_rules(k, v)}
    if problems := [*islice(_problems(file.name, settings, known), MAX_PROBLEMS)]:
        raise SettingsError(*problems)
    return {name: _as_text(value) for name, value in settings.items()}


def _table(file: Path) -> dict[str, object]:
    try:
        return toml_table(_read(file, file.name))
    except TomlError as error:
        raise SettingsError(f"{file.name}: {error.told()}; correct it there") from None


def _read(file: Path, where: str) -> str:
    try:
        with file.open("rb") as stream:
            content = stream.read(MAX_FILE_BYTES + 1)
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SettingsError(f"{where}: names a file that is not UTF-8 text") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "no such path"
        raise SettingsError(f"{where}: cannot be read ({why}); check path and rights") from None
    if len(content) > MAX_FILE_BYTES:
        raise SettingsError(f"{where}: names a file of more than {MAX_FILE_BYTES} bytes")
    return text


def _is_rules(key: str, value: object) -> bool:
    return key in TABLES and isinstance(value, dict | list)


def _problems(file: str, table: Mapping[str, object], known: Collection[str]) -> Iterator[str]:
    for key, value in table.items():
        if key not in known:
            yield f"{file}: {_hint(key, value, known)}"
        elif key in ENVIRONMENT_ONLY:
            yield f"{file}: {key} names code to run, so {variable(key)} alone can set it"
        elif key == "database_url" and _has_password(value):
            yield f"{file}: {key} holds a password; set {variable(key)}_FILE or {variable(key)}"
        elif isinstance(value, int) and abs(value) > LARGEST:
            yield f"{file}: {key}: is too large a number; correct it"
        elif key in SECRETS and key != "database_url":
            yield f"{file}: {key} is a secret; set {variable(key)}_FILE or {variable(key)} instead"


def _hint(key: str, value: object, known: Collection[str]) -> str:
    shown = key if re.fullmatch(r"[A-Za-z0-9_-]{1,40}", key) else "a key"
    close = difflib.get_close_matches(key.lower().removeprefix("triage_"), known, 1)
    if close:
        return f"{shown} is no setting; did you mean {close[0]}?"
    if isinstance(value, dict):
        known_tables = ", ".join(sorted(TABLES))
        return f"[{shown}] is no table of the rules, which are {known_tables}; settings stand above"
    return f"{shown} is no setting; remove it, or put it into its table if it is a rule"


def _has_password(value: object) -> bool:
    try:
        return urlsplit(str(value)).password is not None
    except ValueError:
        return False


def _as_text(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value
