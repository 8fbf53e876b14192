"""What `up` and `demo` share: a folder, settings of its own, a server and a worker in it."""

from __future__ import annotations

import fcntl
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from triage.cli.errors import InputError
from triage.embedded import ServerOptions
from triage.resources import fixtures_path
from triage.settings import Role, Settings, load_settings
from triage.settings_sources import CONFIG_FILE, CONFIG_VARIABLE

SERVER_DATA: Final = "temporal.db"
SERVER_LOG: Final = "temporal.log"
WORKER_LOG: Final = "worker.log"
LOCK: Final = "up.lock"


def up_settings(folder: Path | None) -> Settings:
    """Return the user's settings, in `folder` if one is named, with local trust by default.

    Raises:
        SettingsError: the user's settings cannot be used.
    """
    settings = load_settings()
    trust = True if settings.local_trust is None else settings.local_trust
    if folder is None:
        return Settings(local_trust=trust)
    return Settings(home=folder, local_trust=trust)


def demo_settings(folder: Path) -> Settings:
    """Return settings that touch nothing outside `folder`, whatever the user's own are.

    Raises:
        SettingsError: the user's settings cannot be used.
    """
    level = load_settings().log_level
    return Settings(
        home=folder,
        database_url=f"sqlite:///{folder / 'triage.db'}",
        policy=None,
        model="rules",
        model_base_url=None,
        model_api_key=None,
        openai_api_key=None,
        anthropic_api_key=None,
        model_prices=None,
        tracker="local",
        github_token=None,
        github_write_token=None,
        github_app_id=None,
        github_private_key=None,
        roles=tuple(Role),
        local_trust=True,
        shutdown_grace_seconds=2,
        log_level=level,
    )


def no_configuration(folder: Path) -> dict[str, str]:
    """Return the variable that keeps a worker from reading any ``triage.toml`` of the user's."""
    empty = folder / CONFIG_FILE
    empty.touch()
    return {CONFIG_VARIABLE: str(empty)}


def server_options(folder: Path, port: int = 0, ui_port: int | None = None) -> ServerOptions:
    """Return how to run a server that keeps its data and its log in `folder`."""
    return ServerOptions(
        port=port,
        ui_port=ui_port,
        db_filename=folder / SERVER_DATA,
        log=folder / SERVER_LOG,
    )


@contextmanager
def sole_use(folder: Path) -> Iterator[None]:
    """Hold `folder` for this process: two servers on one file would not refuse each other.

    Raises:
        InputError: another process holds it, or the folder cannot be written.
    """
    try:
        lock = (folder / LOCK).open("a")
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {error.strerror}") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            message = f"{folder}: another 'triage up' uses this folder"
            raise InputError(message, "stop it, or name another folder with --data") from None
        yield


def remove_unused(folder: Path) -> None:
    """Remove a folder that holds nothing but the lock of a server that did not start."""
    with suppress(OSError):
        (folder / LOCK).unlink()
        folder.rmdir()


def command_name() -> str:
    """Return what to type for this command: its name if the shell finds it, else its path."""
    return "triage" if shutil.which("triage") else shlex.quote(sys.argv[0])


def sample(*parts: str) -> str:
    """Return the path of a fixture as one would type it from here."""
    path = fixtures_path(*parts)
    here = Path.cwd()
    return shlex.quote(str(path.relative_to(here) if path.is_relative_to(here) else path))
