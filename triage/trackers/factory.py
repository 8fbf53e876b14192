"""The trackers that there are, by the name that settings and operations give them.

Why it exists: whoever writes and whoever reads back must mean the same far end by a name. A new
tracker is one entry of `MAKERS`, or an extension.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from triage import extensions
from triage.settings import Settings, SettingsError
from triage.storage.engine import Store
from triage.trackers.base import Tracker
from triage.trackers.local import LocalTracker


def _github(settings: Settings, _store: Store) -> Tracker:
    # What speaks HTTP is slow to load, and most commands never ask for it.
    from triage.trackers.github_setup import open_github  # noqa: PLC0415 - see above

    return open_github(settings)


MAKERS: Final[Mapping[str, Callable[[Settings, Store], Tracker]]] = {
    # By name at the moment of the call: tests put another far end in its place.
    "local": lambda _settings, store: LocalTracker(store),
    "github": _github,
}


def open_trackers(settings: Settings, store: Store) -> dict[str, Tracker]:
    """Return every tracker that this process can reach, by name: those that are set up.

    Args:
        settings: where they are and who we are there.
        store: where the local one keeps its issues; it must outlive the trackers.

    Raises:
        SettingsError: one is set up by half or cannot be made, or the one that is named is not
            there.
    """
    added = extensions.trackers()
    if problem := missing(settings):
        raise SettingsError(problem)
    ours = {
        name: make(settings, store) for name, make in MAKERS.items() if is_set_up(name, settings)
    }
    return {**ours, **{name: _added(name, make, settings, store) for name, make in added.items()}}


def missing(settings: Settings) -> str | None:
    """Return what to say where the settings name a tracker that there is not, else None."""
    known = (*MAKERS, *extensions.trackers())
    if settings.tracker in known:
        return None
    return (
        f"TRIAGE_TRACKER: there is no tracker {settings.tracker}; there are {', '.join(known)}, and"
        " TRIAGE_EXTENSIONS names the modules that add more"
    )


def _added(name: str, make: Callable[..., Any], settings: Settings, store: Store) -> Tracker:
    try:
        tracker: Tracker = make(settings, store)
    except SettingsError:
        raise
    except Exception as error:
        # What foreign code raises may quote anything.
        problem = f"the tracker {name} cannot be made ({type(error).__name__})"
        raise SettingsError(f"TRIAGE_EXTENSIONS: {problem}") from error
    return tracker


def is_set_up(name: str, settings: Settings) -> bool:
    """Whether the settings say who we are at a tracker, or name it."""
    given = (settings.github_token, settings.github_write_token, settings.github_app_id)
    return name != "github" or settings.tracker == name or any(given)
