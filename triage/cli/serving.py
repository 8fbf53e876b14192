"""`triage serve`: GitHub's deliveries in, runs out, until somebody ends it."""

from __future__ import annotations

import socket
from functools import partial

from triage import logs
from triage.cli.comment_check import UNSET
from triage.cli.errors import InputError, StoppedError
from triage.cli.output import put, say
from triage.cli.running import run
from triage.ingest.companions import companions, service_key
from triage.settings import load_settings, strange
from triage.signing.keys import SigningKey
from triage.web import serving


def serve(host: str, port: int) -> None:
    """Serve until Ctrl-C or SIGTERM; then answer what is being asked, and end.

    Raises:
        CliError: the address cannot be listened on.
        SettingsError: there is no secret, or what is set does not fit together.
        StorageError: the database cannot be used.
    """
    settings = load_settings()
    serving.secrets_of(settings)
    key = service_key(settings)
    logs.configure(settings.log_level)
    logs.tell_once(__name__, strange())
    with _listening(host, port) as listening:
        told = (f"serving on {_shown(listening)}", _about_comments(key))
        try:
            beside = partial(companions, settings)
            run(serving.serve(settings, listening, lambda: put(*told), beside))
        except StoppedError:
            say("stopped")


def _about_comments(key: SigningKey | None) -> str:
    if key is None:
        return f"orders in comments are ignored: {UNSET}"
    return f"orders in comments count, signed by {key.approver}"


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        why = error.strerror or "no such address"
        raise InputError(
            f"cannot listen on {host} port {port}: {why}", "name another with --host and --port"
        ) from None


def _shown(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
