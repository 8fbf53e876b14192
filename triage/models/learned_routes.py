"""From the labels that a classifier was taught to the routes that a run's rules have. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from triage.models import rules_keywords as table


def route_of(label: str, routes: Sequence[str]) -> str | None:
    """Return the route that a label stands for: its own name, or the class that it is a name of.

    Returns:
        None where the rules have no such route, so that it is never proposed.
    """
    if label in routes:
        return label
    if is_security(label):
        return next(filter(is_security, routes), None)
    folded = label.casefold()
    for route, names in table.CLASS_LABELS.items():
        if route in routes and folded in names:
            return route
    return next((route for route in routes if route.casefold() == folded), None)


def is_security(route: str) -> bool:
    """Whether a route is one that nothing may lower an issue from."""
    return "security" in route.casefold()
