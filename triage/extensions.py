"""Tools, trackers and models that are not ours: a module each, named by one setting.

Why it exists: whoever adds one changes nothing here. Loading a module runs it, so modules are
named by the environment alone, never by a file in a folder that somebody else may have written,
and what a model says names none. An extension can read and propose; a write needs an activity, a
ledger and a reconcile of its own, so it is no extension.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final

from triage.policy.tools import BUILTIN_TOOLS, ToolSpec

ATTRIBUTE: Final = "EXTENSION"
NAME: Final = re.compile(r"x-[a-z0-9][a-z0-9-]{0,30}")
"""How trackers and models of extensions are called, so that none can pass for one of ours."""


class ExtensionError(Exception):
    """A module cannot be used as an extension; the message says why and quotes nothing of it."""


@dataclass(frozen=True, slots=True)
class ReadTool:
    """A tool that reads.

    Attributes:
        spec: its name, purpose, argument schema, timeout, retry rule, effect and normaliser.
        handler: a coroutine function of the arguments and the run's rules, that returns what it
            found and where (`activities.raw_reads.RawRead`). It may raise `TransientReadError`.
    """

    spec: ToolSpec
    handler: Callable[..., Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Extension:
    """What a module adds; it stands in the module under the name ``EXTENSION``.

    Attributes:
        tools: tools that read.
        trackers: by name, a function of the settings and the store that makes a
            `triage.trackers.base.Tracker`.
        models: by name, a function of what follows the colon of a model's name that makes a
            `triage.models.base.ModelAdapter`.
    """

    tools: tuple[ReadTool, ...] = ()
    trackers: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    models: Mapping[str, Callable[[str], Any]] = field(default_factory=dict)


_INSTALLED: Final[dict[str, Extension]] = {}


def install(modules: Collection[str]) -> None:
    """Load the modules and register what they add; one that was loaded already stays as it is.

    Raises:
        ExtensionError: one cannot be loaded, or adds what cannot be registered.
    """
    for name in modules:
        if name not in _INSTALLED:
            extension = _load(name)
            _check(name, extension)
            for tool in extension.tools:
                _register(name, tool)
            _INSTALLED[name] = extension


def handlers() -> dict[str, Callable[..., Awaitable[Any]]]:
    """Return the handler of each tool that was added."""
    return {tool.spec.name: tool.handler for one in _INSTALLED.values() for tool in one.tools}


def trackers() -> dict[str, Callable[..., Any]]:
    """Return the maker of each tracker that was added."""
    return {name: make for one in _INSTALLED.values() for name, make in one.trackers.items()}


def models() -> dict[str, Callable[[str], Any]]:
    """Return the maker of each model that was added."""
    return {name: make for one in _INSTALLED.values() for name, make in one.models.items()}


def _load(name: str) -> Extension:
    try:
        module = import_module(name)
    except Exception as error:
        # What a foreign module raises may quote anything.
        raise ExtensionError(f"{name} cannot be imported ({type(error).__name__})") from error
    extension = getattr(module, ATTRIBUTE, None)
    if not isinstance(extension, Extension):
        raise ExtensionError(f"{name} has no {ATTRIBUTE} of the type triage.extensions.Extension")
    return extension


def _check(name: str, extension: Extension) -> None:
    for problem in _problems(extension):
        raise ExtensionError(f"{name}: {problem}")


def _problems(extension: Extension) -> Iterator[str]:
    for taken, added in ((trackers(), extension.trackers), (models(), extension.models)):
        for name in added:
            if not NAME.fullmatch(name):
                yield "the name of a tracker or a model is x- and small letters, digits or dashes"
            elif name in taken:
                yield f"{name} is there already"
    for tool in extension.tools:
        if tool.spec.side_effect:
            yield f"the tool {tool.spec.name} writes, and an extension only reads"
        elif tool.spec.about_issue or tool.spec.remote is not None:
            yield f"the tool {tool.spec.name} asks the run's tracker, which only built-in ones do"


def _register(name: str, tool: ReadTool) -> None:
    try:
        BUILTIN_TOOLS.register(tool.spec)
    except ValueError as error:
        raise ExtensionError(f"{name}: {error}") from None
