"""Every setting of this system; the only reader of the environment for them.

Why it exists: one place says which settings there are, where they come from and what is wrong
with them. The environment wins over ``triage.toml``; secrets come from the environment or from
the file that a ``..._FILE`` variable names, never from ``triage.toml``. How to reach Temporal is
not here: that is Temporal's own configuration, read in `triage.connection`.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
)
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from triage import settings_values as values
from triage.addresses import api_address
from triage.contracts.names import TASK_QUEUE
from triage.contracts.wording import in_words
from triage.extensions import ExtensionError, install
from triage.settings_sources import (
    CONFIG_VARIABLE,
    MAX_PROBLEMS,
    PREFIX,
    SettingsError,
    config_path,
    config_values,
    read_secret,
    secret_files,
    strange_variables,
    variable,
)

__all__ = [
    "Role",
    "Settings",
    "SettingsError",
    "as_environment",
    "config_file",
    "held_in_files",
    "load_settings",
    "process_environment",
    "strange",
    "temporal_profile",
    "worker_environment",
]


class Role(StrEnum):
    """What a worker process runs."""

    DECIDE = "decide"
    WRITE = "write"


def _writers_only(token: SecretStr, info: ValidationInfo) -> SecretStr:
    if Role.WRITE not in info.data.get("roles", Role):
        raise ValueError("is given to a process that TRIAGE_ROLES does not let write")
    return token


Token = Annotated[SecretStr, AfterValidator(values.token)]
WebhookSecret = Annotated[SecretStr, AfterValidator(values.webhook_secret)]
Logins = Annotated[tuple[str, ...], NoDecode, BeforeValidator(values.split)]
Modules = Annotated[
    tuple[Annotated[str, AfterValidator(values.module_name)], ...],
    NoDecode,
    BeforeValidator(values.split),
]
Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]
Roles = Annotated[tuple[Role, ...], NoDecode, BeforeValidator(values.split), Field(min_length=1)]


class Settings(BaseSettings):
    """The settings in force; frozen, with absolute paths.

    Prefer `load_settings`, whose errors are meant for people. A description completes the
    sentence "set it to ...".
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, extra="forbid", frozen=True
    )

    home: Annotated[Path, AfterValidator(values.absolute)] = Field(
        Path(".triage"), validate_default=True, description="the folder for this system's data"
    )
    database_url: Annotated[str, AfterValidator(values.database_url)] = Field(
        default_factory=lambda data: f"sqlite:///{data['home'] / 'triage.db'}",
        description="sqlite:///PATH or postgresql+psycopg://USER@HOST/NAME",
        repr=False,
    )
    policy: Annotated[Path, AfterValidator(values.existing_file)] | None = Field(
        None, description="the path of a rules file"
    )
    model: Annotated[str, AfterValidator(values.model_name)] = Field(
        "rules",
        description="rules, recorded, learned:sha256:DIGEST, openai:NAME or anthropic:NAME",
    )
    model_base_url: Annotated[str, AfterValidator(values.base_url)] | None = Field(
        None, description="the address of the model's API, such as http://localhost:8080/v1"
    )
    model_api_key: SecretStr | None = Field(None, description="the key of the model's API")
    openai_api_key: SecretStr | None = Field(
        None, description="OpenAI's key, for its own address where another model is the default"
    )
    anthropic_api_key: SecretStr | None = Field(
        None, description="Anthropic's key, for its own address where another model is the default"
    )
    model_timeout_seconds: Annotated[float, Field(ge=1, le=300, allow_inf_nan=False)] = Field(
        60.0, description="the seconds that one call of a model behind an API may take"
    )
    model_max_tokens: Annotated[int, Field(ge=64, le=65_536)] = Field(
        2_048, description="the tokens that a model behind an API may answer with"
    )
    model_prices: Annotated[Path, AfterValidator(values.existing_file)] | None = Field(
        None, description="the path of a file of prices that come before the built-in ones"
    )
    tracker: Annotated[str, AfterValidator(values.tracker_name)] = Field(
        "local", description="local or github"
    )
    extensions: Modules = Field(
        (), description="the Python modules that add tools, trackers or models, such as my_tools"
    )
    roles: Roles = Field(tuple(Role), description="decide, write or decide,write")
    github_base_url: Annotated[str, AfterValidator(api_address)] = Field(
        "https://api.github.com",
        description="the address of GitHub's API, such as https://github.example.com/api/v3",
    )
    github_token: Token | None = Field(None, description="a token for GitHub")
    github_write_token: Annotated[Token, AfterValidator(_writers_only)] | None = Field(
        None, description="the token that puts labels on, for workers with the role write alone"
    )
    github_app_id: Annotated[str, AfterValidator(values.app_id)] | None = Field(
        None, description="the id or the client id of a GitHub App, in place of a token"
    )
    github_private_key: SecretStr | None = Field(
        None, description="the private key of that App, as GitHub gave it"
    )
    webhook_secret: WebhookSecret | None = Field(
        None, description="the secret that GitHub signs its deliveries with, 16 characters or more"
    )
    webhook_secret_previous: WebhookSecret | None = Field(
        None, description="the secret before it, for as long as deliveries signed with it arrive"
    )
    webhook_ignored_senders: Logins = Field(
        (), description="the logins whose deliveries are ignored, such as your-app[bot]"
    )
    webhook_rate_per_minute: Annotated[int, Field(ge=1, le=100_000)] = Field(
        120,
        description="the deliveries that one repository may send at once, and again in a minute",
    )
    service_key: Annotated[Path, AfterValidator(values.absolute)] | None = Field(
        None, description="the path of the key file that answers for people who comment"
    )
    poll_repositories: Logins = Field(
        (), description="the repositories that are looked through for what was missed"
    )
    local_trust: bool | None = Field(
        None, description="true or false (unset: true with the embedded server only)"
    )
    task_queue: Annotated[str, AfterValidator(values.queue_name)] = Field(
        TASK_QUEUE, description="the name of a task queue, such as triage"
    )
    workflow_sandbox: bool = Field(
        default=True, description="true or false (false: quicker, once tests and replays passed)"
    )
    cached_runs: Annotated[int, Field(ge=10, le=100_000)] = Field(
        1_000,
        description="the runs kept in memory, 0.1 MB each; others are replayed when needed",
    )
    quiet_period_seconds: Seconds = Field(
        120.0, description="the seconds before a write that was found absent is sent again"
    )
    lease_seconds: Seconds = Field(60.0, description="the seconds that a dispatched write is held")
    sweep_period_seconds: Seconds = Field(
        30.0, description="the seconds between two looks for writes whose run is over"
    )
    write_timeout_seconds: Seconds = Field(20.0, description="the seconds that a write may take")
    sticky_timeout_seconds: Seconds = Field(
        10.0, description="the seconds before another worker takes over a lost worker's run"
    )
    shutdown_grace_seconds: Seconds = Field(
        10.0, description="the seconds that running activities get when a worker stops"
    )
    evidence_retention_days: Annotated[int, Field(ge=1, le=3_650)] = Field(
        30, description="the days that evidence content is kept"
    )
    ledger_retention_days: Annotated[int, Field(ge=7, le=36_500)] = Field(
        90, description="the days that a settled write is kept before its digests alone are"
    )
    keyring: Annotated[Path, AfterValidator(values.absolute)] | None = Field(
        None, description="the path of the file with the public keys of approvers"
    )
    signing_key: Annotated[Path, AfterValidator(values.absolute)] | None = Field(
        None, description="the path of the file with your own private key"
    )
    approval_skew_seconds: Annotated[float, Field(ge=0, le=300, allow_inf_nan=False)] = Field(
        0.0, description="the seconds that an approver's clock may be ahead"
    )
    allow_remote_sqlite: bool = Field(
        default=False, description="true or false (true only if one machine runs every worker)"
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="debug, info, warning or error"
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - pydantic passes it by name
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - likewise
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Order the sources: arguments, environment, secret files, ``triage.toml``."""
        return init_settings, env_settings, _SecretFiles(settings_cls), _ConfigFile(settings_cls)


class _Source(PydanticBaseSettingsSource):
    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """Return nothing: both sources answer for all fields at once."""
        raise NotImplementedError


class _SecretFiles(_Source):
    def __call__(self) -> dict[str, Any]:
        """Return the secrets that files hold."""
        return {name: read_secret(name, file) for name, file in secret_files(os.environ).items()}


class _ConfigFile(_Source):
    def __call__(self) -> dict[str, Any]:
        """Return what ``triage.toml`` holds."""
        path = config_path(os.environ)
        return config_values(path, self.settings_cls.model_fields) if path else {}


def load_settings() -> Settings:
    """Read the settings from the environment and ``triage.toml``, and load the extensions.

    Raises:
        SettingsError: with one line a problem, meant for people.
    """
    try:
        settings = Settings()
        install(settings.extensions)
    except ExtensionError as error:
        raise SettingsError(f"{variable('extensions')}: {error}") from None
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        problems = [_describe(p) for p in found if p["type"] != "default_factory_not_called"]
        raise SettingsError(*dict.fromkeys(problems)) from None
    else:
        return settings


NOT_FOR_WORKERS = frozenset(
    {"webhook_secret", "webhook_secret_previous", "signing_key", "service_key"}
)
"""Settings that only whoever takes deliveries or signs approvals has a use for."""
_MODEL_KEYS = dict.fromkeys(("anthropic_api_key", "model_api_key", "openai_api_key"), Role.DECIDE)
FOR_ONE_ROLE = {"github_write_token": Role.WRITE, **_MODEL_KEYS}
"""Settings that only workers with this role have a use for."""


def worker_environment(settings: Settings) -> dict[str, str]:
    """Return the variables that give a worker these settings, with the secrets of its roles alone.

    Only GitHub's reading token and the App's key go to every worker: each role reads with them.
    """
    others = {name for name, role in FOR_ONE_ROLE.items() if role not in settings.roles}
    return as_environment(settings, without=NOT_FOR_WORKERS | others)


def as_environment(settings: Settings, *, without: Collection[str] = ()) -> dict[str, str]:
    """Return the variables that give a child process these settings, but those of `without`.

    A secret that came from a file is passed on as that file's path.
    """
    held = secret_files(os.environ)
    values = {CONFIG_VARIABLE: str(path)} if (path := config_file()) else {}
    for name in Settings.model_fields.keys() - set(without):
        text = _as_variable(getattr(settings, name))
        if name in held and text == read_secret(name, held[name]):
            values[f"{variable(name)}_FILE"] = str(held[name])
        elif text:
            values[variable(name)] = text
    return values


def process_environment() -> dict[str, str]:
    """Return this process's environment without our settings, to start a child process with."""
    return {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}


def temporal_profile() -> str | None:
    """Return the profile of Temporal's configuration that the environment names, if any."""
    return os.environ.get("TEMPORAL_PROFILE") or None


def strange() -> tuple[str, ...]:
    """Return a sentence for each ``TRIAGE_...`` variable that no setting has, by its name alone."""
    return tuple(islice(strange_variables(os.environ, Settings.model_fields), MAX_PROBLEMS))


def config_file() -> Path | None:
    """Return the ``triage.toml`` in force, which may also hold rules, if there is one.

    Raises:
        SettingsError: ``TRIAGE_CONFIG`` names a file that does not exist.
    """
    return config_path(os.environ)


def held_in_files() -> dict[str, Path]:
    """Return the file of each secret that the environment takes from one.

    Raises:
        SettingsError: a secret is given both ways.
    """
    return secret_files(os.environ)


def _describe(problem: ErrorDetails) -> str:
    name = str(problem["loc"][0])
    where = _origin(name)
    return f"{where}: {in_words(problem)}; set it to {Settings.model_fields[name].description}"


def _origin(name: str) -> str:
    """Say where the value of `name` was taken from, in the order of the sources."""
    if os.environ.get(variable(name)):
        return variable(name)
    if name in secret_files(os.environ):
        return f"{variable(name)}_FILE"
    path = config_file()
    return f"{path.name}: {name}" if path else variable(name)


def _as_variable(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case SecretStr():
            return value.get_secret_value()
        case tuple():
            return ",".join(value)
        case _:
            return str(value)
