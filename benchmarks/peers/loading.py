"""Finds a peer by its name, when it is asked for and not before."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

from benchmarks.arms import Arm
from benchmarks.plan import Plan

Opened = Callable[[Plan, Path], AbstractAsyncContextManager[Arm]]


class NoPeer(Exception):  # noqa: N818 - names what was found
    """A peer cannot be played; the message says what to do."""


def find_peer(name: str) -> Opened:
    """Return the function that ``MODULE:NAME`` names.

    Raises:
        NoPeer: there is none, or what it needs is not installed.
    """
    module, _, member = name.partition(":")
    opened: Opened | None = getattr(_module(module), member, None)
    if opened is None:
        raise NoPeer(f"{module} has no {member}")
    return opened


def peer_versions(name: str) -> str:
    """Name the packages that a peer says it measures, and their releases.

    Raises:
        NoPeer: there is no such peer, or what it needs is not installed.
    """
    packages = getattr(_module(name.partition(":")[0]), "PACKAGES", ())
    return ", ".join(f"{package} {version(package)}" for package in packages) or name


def _module(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ModuleNotFoundError as missing:
        raise NoPeer(
            f"{name} needs {missing.name}, which is not installed here: `make bench-peers` installs"
            " it in a place of its own and measures with it"
        ) from None
