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

from triage.contracts import names
from triage.policy.tool_shapes import is_name
from triage.policy.tools import BUILTIN_TOOLS, ToolRegistry, ToolSpec

ATTRIBUTE: Final = "EXTENSION"
NAME: Final = re.compile(r"x-[a-z0-9][a-z0-9-]{0,30}")
"""How trackers and models of extensions are called, so that none can pass for one of ours."""

ACTIVITIES: Final = frozenset(
    value for name, value in vars(names).items() if name.startswith("ACTIVITY_")
)
"""What workers run of ours, so that no tool goes by such a name."""


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
        extension = getattr(import_module(name), ATTRIBUTE, None)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        # What a foreign module raises may quote anything, and it has no say in how we end.
        raise ExtensionError(f"{name} cannot be imported ({type(error).__name__})") from error
    if not isinstance(extension, Extension):
        raise ExtensionError(f"{name} has no {ATTRIBUTE} of the type triage.extensions.Extension")
    return extension


def _check(name: str, extension: Extension) -> None:
    for problem in _problems(extension):
        raise ExtensionError(f"{name}: {problem}")


def _problems(extension: Extension) -> Iterator[str]:
    for taken, added in ((trackers(), extension.trackers), (models(), extension.models)):
        yield from _misnamed(added, taken)
    tools: object = extension.tools
    if not isinstance(tools, tuple | list):
        yield "tools is a tuple of ReadTool"
    else:
        for tool in tools:
            yield from _unusable(tool)


def _misnamed(added: object, taken: Collection[str]) -> Iterator[str]:
    """Yield what is wrong with trackers or models."""
    if not isinstance(added, Mapping):
        yield "trackers and models are mappings of a name to what makes one"
        return
    for name, make in added.items():
        if not isinstance(name, str) or not NAME.fullmatch(name):
            yield "the name of a tracker or a model is x- and small letters, digits or dashes"
        elif name in taken:
            yield f"{name} is there already"
        elif not callable(make):
            yield f"what makes {name} cannot be called"


def _unusable(tool: object) -> Iterator[str]:
    """Yield what is wrong with a tool, beside what no tool may be."""
    spec: object = tool.spec if isinstance(tool, ReadTool) else None
    if not isinstance(tool, ReadTool) or not isinstance(spec, ToolSpec):
        yield "tools is a tuple of ReadTool, each with its ToolSpec"
        return
    name = spec.name if is_name(spec.name) else "without a usable name"
    handler: object = tool.handler
    if not callable(handler):
        yield f"the handler of the tool {name} cannot be called"
    if spec.side_effect:
        yield f"the tool {name} writes, and an extension only reads"
    if spec.about_issue or spec.remote is not None:
        yield f"the tool {name} asks the run's tracker, which only built-in ones do"
    if name in ACTIVITIES and BUILTIN_TOOLS.get(name) is None:
        yield f"the name {name} is one of our own activities'"


def _register(name: str, tool: ReadTool) -> None:
    try:
        # What every run asks of it: here a mistake is told, there it would stop runs.
        ToolRegistry(tool.spec).digest()
        tool.spec.snapshot()
        BUILTIN_TOOLS.register(tool.spec)
    except ValueError as error:
        raise ExtensionError(f"{name}: {error}") from None
