"""Reaching Temporal: one way to connect, with errors that say what to do.

Why it exists: the address, namespace, TLS and API key come from Temporal's own variables, file and
profile, exactly as the ``temporal`` CLI reads them, and what goes wrong there arrives from the SDK
as a handful of untyped errors, or as no answer at all. Here each becomes one typed error within a
bounded time. No error quotes what a server said.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import signal
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any, Final, TypeVar

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.envconfig import ClientConfig, ClientConnectConfig
from temporalio.service import RPCError, RPCStatusCode

from triage.converter import data_converter
from triage.leaving import end_leftovers
from triage.patient_queries import PatientQueries
from triage.search_attributes import ensure_search_attributes as ensure_search_attributes
from triage.settings import Settings, SettingsError, temporal_profile

T = TypeVar("T")

DEFAULT_ADDRESS: Final = "localhost:7233"
CONNECT_TIMEOUT_SECONDS: Final = 5.0
_EXIT_PAUSE_SECONDS: Final = 0.05
_ABANDON_PAUSE_SECONDS: Final = 0.3
"""What the SDK gets to drop an attempt: left alone it panics, or hangs, when the program ends."""
_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[^\s:/\[\]]+):\d{1,5}")
_TLS_SIGNS = ("InvalidCertificate", "InvalidMessage", "PrivateKeyParse", "tls", "Certificate")
_REASONS = {
    "ConnectionRefused": "connection refused",
    "dns error": "unknown host name",
    "after connection": "it does not answer as a Temporal server does, or it expects TLS",
}


class ServerUnreachable(Exception):  # noqa: N818 - reads as a state: it may pass
    """No usable Temporal server at the address; the message says why and what to do."""


class NamespaceNotFound(ServerUnreachable):
    """The server answers but does not have the namespace."""


class AccessRefused(ServerUnreachable):
    """The server answers but refuses the API key or certificate."""


class TlsFailed(ServerUnreachable):
    """The server is there, but no TLS session with it comes about."""


class BadConnectionSettings(SettingsError):  # noqa: N818 - reads as what was found
    """Temporal's variables, file or profile cannot be used."""


async def connect(
    settings: Settings | None = None,  # noqa: ARG001 - the keys of a codec will come from it
    *,
    timeout_seconds: float = CONNECT_TIMEOUT_SECONDS,
) -> Client:
    """Return a client of the server and namespace that Temporal's configuration names.

    The server was reached and the namespace was found when this returns. Without any
    configuration it is ``default`` on localhost:7233.

    Raises:
        ServerUnreachable: or one of its kinds, little after `timeout_seconds` at most.
        BadConnectionSettings: the configuration cannot be used.
    """
    config = _load()
    config.setdefault("target_host", DEFAULT_ADDRESS)
    address = _checked(config["target_host"])
    try:
        async with asyncio.timeout(timeout_seconds):
            client = await Client.connect(
                **config, data_converter=data_converter, interceptors=[PatientQueries()]
            )
            await _find_namespace(client, timeout_seconds)
    except TimeoutError:
        await asyncio.sleep(_ABANDON_PAUSE_SECONDS)
        raise _unreachable(address, f"no answer within {timeout_seconds:g} s") from None
    except ValueError:
        raise BadConnectionSettings(
            f"the connection settings for {address} cannot be used:"
            " check address, certificate and key with `temporal config list`"
        ) from None
    except RuntimeError as error:
        raise _translated(address, str(error)) from None
    return client


def is_configured() -> bool:
    """Tell whether an address or a profile is set; if not, commands may embed a server.

    A configuration that cannot be read counts: `connect` says what is wrong with it.
    """
    try:
        return temporal_profile() is not None or "target_host" in _load()
    except BadConnectionSettings:
        return True


def is_local_address(address: str) -> bool:
    """Tell whether ``host:port`` is on this machine, judging by the name alone."""
    host = address.rpartition(":")[0].strip("[]").lower()
    if host == "localhost":
        return True
    try:
        number = ipaddress.ip_address(host)
    except ValueError:
        return False
    return number.is_loopback or number.is_unspecified


def check_storage_is_reachable(settings: Settings, client: Client) -> None:
    """Refuse an SQLite file when workers on other machines may share the server.

    Raises:
        SettingsError: the server is not on this machine, and nobody said that this is fine.
    """
    address = client.service_client.config.target_host
    is_file = settings.database_url.startswith("sqlite")
    if is_file and not settings.allow_remote_sqlite and not is_local_address(address):
        raise SettingsError(
            f"TRIAGE_DATABASE_URL: is an SQLite file, which workers on other machines of {address}"
            " cannot share; set it to a PostgreSQL URL, or set TRIAGE_ALLOW_REMOTE_SQLITE to true"
            " if one machine runs every worker"
        )


def run_async(main: Coroutine[Any, Any, T]) -> T:
    """Run a program's coroutine to its end, as `asyncio.run` does, and leave in order.

    SIGTERM unwinds `main` as Ctrl-C does, and the program then exits with 143. The pause before
    the loop closes lets the SDK's threads let go of the interpreter: without it a short program
    that had connected crashes, or hangs, at its exit (temporalio/sdk-python#300).
    """
    terminated = False

    async def unwind() -> T:
        task = asyncio.current_task()

        def stop() -> None:
            nonlocal terminated
            terminated = True
            if task:
                task.cancel()

        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop)
        try:
            return await main
        finally:
            await end_leftovers()
            await asyncio.sleep(_EXIT_PAUSE_SECONDS)

    try:
        return asyncio.run(unwind())
    except asyncio.CancelledError:
        if terminated:
            raise SystemExit(128 + signal.SIGTERM) from None
        raise


def _load() -> ClientConnectConfig:
    try:
        return ClientConfig.load_client_connect_config()
    except OSError as error:
        raise BadConnectionSettings(
            f"a file of Temporal's configuration cannot be read: {_shown(str(error.filename))};"
            " check TEMPORAL_TLS_... and the profile"
        ) from None
    except Exception as error:  # noqa: BLE001 - the SDK's ConfigError has no public name
        raise BadConnectionSettings(_config_problem(str(error))) from None


def _config_problem(message: str) -> str:
    if re.fullmatch(r"Profile '.*' not found", message):
        name = _shown(temporal_profile() or "default")
        return f"Temporal has no profile {name}: see `temporal config list`, set TEMPORAL_PROFILE"
    place = re.search(r"at (line \d+, column \d+)", message)
    where = f" at {place[1]}" if place else ""
    return f"Temporal's configuration file cannot be read{where}: correct or remove it"


def _checked(address: str) -> str:
    if not _ADDRESS.fullmatch(address):
        raise BadConnectionSettings(
            f"the address of the Temporal server is not HOST:PORT: {_shown(address)};"
            " set TEMPORAL_ADDRESS, without a scheme"
        )
    return address


async def _find_namespace(client: Client, timeout_seconds: float) -> None:
    """Ask for the namespace: a wrong one otherwise shows up only in some later call."""
    address = client.service_client.config.target_host
    request = DescribeNamespaceRequest(namespace=client.namespace)
    try:
        await client.workflow_service.describe_namespace(
            request, timeout=timedelta(seconds=timeout_seconds)
        )
    except RPCError as error:
        match error.status:
            case RPCStatusCode.UNIMPLEMENTED:
                return
            case RPCStatusCode.NOT_FOUND:
                raise NamespaceNotFound(
                    f"the server at {address} has no namespace {_shown(client.namespace)}:"
                    " set TEMPORAL_NAMESPACE, or run `temporal operator namespace create`"
                ) from None
            case RPCStatusCode.PERMISSION_DENIED | RPCStatusCode.UNAUTHENTICATED:
                raise _refused(address) from None
            case _:
                raise _unreachable(address, error.status.name.lower().replace("_", " ")) from None


def _translated(address: str, message: str) -> ServerUnreachable:
    """Turn the SDK's one error for every failed connection into ours, by the signs in its text."""
    if "Unauthenticated" in message or "PermissionDenied" in message:
        return _refused(address)
    if any(sign in message for sign in _TLS_SIGNS):
        return TlsFailed(
            f"no TLS session with {address}: check that the server uses TLS, its name, and the"
            " certificates in TEMPORAL_TLS_... or the profile"
        )
    reasons = (reason for sign, reason in _REASONS.items() if sign in message)
    return _unreachable(address, next(reasons, "connection failed"))


def _refused(address: str) -> AccessRefused:
    return AccessRefused(
        f"the server at {address} refuses access: check TEMPORAL_API_KEY or the client"
        " certificate, and their rights in the namespace"
    )


def _unreachable(address: str, reason: str) -> ServerUnreachable:
    return ServerUnreachable(
        f"no Temporal server at {address} ({reason}): start one with `triage up`,"
        " or set TEMPORAL_ADDRESS"
    )


def _shown(text: str) -> str:
    """Make text from the environment safe to print."""
    return ascii(text)[1:-1][:200]
