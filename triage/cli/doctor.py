"""`triage doctor`: checks what everything else needs, and says what to do.

Why it exists: most of what goes wrong on a new machine is one of a few things, and each has one
remedy. Nothing is changed by looking, and nothing here waits for longer than its bound.
"""

from __future__ import annotations

import asyncio
import platform
import shutil
import sys
import sysconfig
from collections.abc import Awaitable, Iterator
from typing import Final

import typer

from triage import extensions
from triage.cli.findings import Finding, Level
from triage.cli.output import Format, put, put_json
from triage.cli.running import run
from triage.settings import (
    Settings,
    SettingsError,
    config_file,
    held_in_files,
    load_settings,
    strange,
)

OLDEST_PYTHON: Final = (3, 11)
CHECK_SECONDS: Final = 8.0
FAILED: Final = 1
UNREACHABLE: Final = 3


def doctor(format_: Format) -> None:
    """Print one row for each check.

    Raises:
        typer.Exit: with 3 when a service is unreachable, with 1 when something else is wrong.
    """
    findings = [*_machine(), *_strange(), *_configured()]
    if format_ is Format.JSON:
        put_json([finding.to_json() for finding in findings])
    else:
        for finding in findings:
            put(*finding.lines())
    failed = [finding for finding in findings if finding.level is Level.FAIL]
    if failed:
        raise typer.Exit(UNREACHABLE if any(f.is_service for f in failed) else FAILED)


def _machine() -> Iterator[Finding]:
    version = platform.python_version()
    if sys.version_info >= OLDEST_PYTHON:
        yield Finding("python", Level.OK, version)
    else:
        yield Finding("python", Level.FAIL, version, "use Python 3.11 or newer")
    scripts = sysconfig.get_path("scripts")
    binary = shutil.which("temporal", path=scripts) or shutil.which("temporal")
    if binary:
        yield Finding("temporal", Level.OK, binary)
    else:
        advice = "'make setup' installs it; demo, up and evaluate start a server with it"
        yield Finding("temporal", Level.WARN, "the temporal program is not there", advice)


def _strange() -> Iterator[Finding]:
    """Yield the variables that look like ours and are read by nobody."""
    for problem in strange():
        yield Finding(
            "settings", Level.WARN, problem, "nothing reads it; correct its name or unset it"
        )


def _configured() -> Iterator[Finding]:
    """Check what the settings name, if the settings themselves can be used."""
    try:
        settings = load_settings()
        file = config_file()
    except SettingsError as error:
        for problem in error.problems:
            yield Finding("settings", Level.FAIL, problem, "correct it; the rest was not checked")
        return
    source = f"the environment and {file}" if file else "the environment alone"
    there = "" if settings.home.exists() else ", which is not there yet"
    yield Finding("settings", Level.OK, f"from {source}; data in {settings.home}{there}")
    yield from _extensions(settings)
    yield from run(_services(settings))


def _extensions(settings: Settings) -> Iterator[Finding]:
    """Yield what was added by modules that are not ours, if any were."""
    if not settings.extensions:
        return
    added = {
        "tools": extensions.handlers(),
        "trackers": extensions.trackers(),
        "models": extensions.models(),
    }
    told = [f"{what} {', '.join(sorted(names))}" for what, names in added.items() if names]
    modules = ", ".join(settings.extensions)
    yield Finding("extensions", Level.OK, f"{modules}: {'; '.join(told) or 'nothing is added'}")


async def _services(settings: Settings) -> list[Finding]:
    """Check everything that may take time, side by side."""
    # Slow to load, and of no use while the settings cannot be read.
    from triage.cli import (  # noqa: PLC0415 - see above
        comment_check,
        database_check,
        model_probe,
        rules_check,
        temporal_check,
        tracker_check,
        weights_check,
    )

    found = await asyncio.gather(
        _within("server", temporal_check.check(settings)),
        _within("database", database_check.check(settings)),
        _within("rules", rules_check.check(settings)),
        _within("tracker", tracker_check.check(settings)),
        _within("comments", comment_check.check(settings)),
        _within("weights", weights_check.check(settings)),
        _within("model", model_probe.check(settings)),
    )
    return [finding for findings in found for finding in findings] + [*_adapters(settings)]


async def _within(name: str, check: Awaitable[list[Finding]]) -> list[Finding]:
    try:
        return await asyncio.wait_for(check, CHECK_SECONDS)
    except TimeoutError:
        detail = f"no answer within {CHECK_SECONDS:.0f} seconds"
        return [Finding(name, Level.FAIL, detail, "check that it is up", is_service=True)]


def _adapters(settings: Settings) -> Iterator[Finding]:
    from triage.cli import (  # noqa: PLC0415 - as above
        keyring_check,
        model_check,
        secrets_check,
        webhook_check,
    )

    yield from model_check.check(settings)
    trust = {
        None: "count with the embedded server only",
        True: "count, and no signature of an approval is checked",
        False: "never count: sign them with --sign",
    }[settings.local_trust]
    yield Finding("approvals", Level.OK, f"unsigned ones {trust}")
    yield keyring_check.check(settings)
    yield webhook_check.check(settings)
    yield from secrets_check.check(held_in_files())
