"""How workflows are isolated: alike in the worker and wherever a history is replayed.

Why it exists: the SDK's sandbox loads a workflow's module anew for every run. Our models, and the
parts that workflows are made of, keep nothing between runs; loading them once saves most of what
a run's beginning costs. Only the modules that define workflows are loaded for each.
"""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Iterator, Sequence
from typing import Final

from temporalio.worker.workflow_sandbox import SandboxRestrictions

from triage.early_queries import GuardedRunner

PACKAGE: Final = "workflows"
LOADED_ONCE: Final = "triage"


def sandbox_for(workflows: Sequence[type]) -> GuardedRunner:
    """Return what runs `workflows` in a worker, and what has to replay them."""
    definitions = {workflow.__module__ for workflow in workflows}
    parts = (name for name in _modules() if name not in definitions)
    return GuardedRunner(
        restrictions=SandboxRestrictions.default.with_passthrough_modules(LOADED_ONCE, *parts)
    )


def _modules() -> Iterator[str]:
    """Name the modules of the workflows' package, if it is in use."""
    package = sys.modules.get(PACKAGE)
    for found in pkgutil.iter_modules(package.__path__ if package else ()):
        yield f"{PACKAGE}.{found.name}"
