"""The trackers that there are, by the name that settings and operations give them.

Why it exists: whoever writes and whoever reads back must mean the same far end by a name. A new
tracker is one entry of `MAKERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from triage.settings import Settings
from triage.storage.engine import Store
from triage.trackers.base import Tracker
from triage.trackers.local import LocalTracker

MAKERS: Final[Mapping[str, Callable[[Settings, Store], Tracker]]] = {
    # By name at the moment of the call: tests put another far end in its place.
    "local": lambda _settings, store: LocalTracker(store),
}


def open_trackers(settings: Settings, store: Store) -> dict[str, Tracker]:
    """Return every tracker that this process can reach, by name.

    Args:
        settings: where they are and who we are there.
        store: where the local one keeps its issues; it must outlive the trackers.
    """
    return {name: make(settings, store) for name, make in MAKERS.items()}
