"""How workflows are isolated: alike in the worker and wherever a history is replayed.

Why it exists: the SDK's sandbox loads every module that it is not told to pass through anew for
each run. Ours keep nothing between runs, so they are loaded once: that saves most of what a run's
beginning costs. The sandbox still takes the builtins away that a workflow must not use. A worker
may go without it (``TRIAGE_WORKFLOW_SANDBOX``): what it would find, the lint of banned names, the
replay gate and the tests, which all run with it, have to find before a release does.
"""

from __future__ import annotations

from typing import Final

from temporalio.worker.workflow_sandbox import SandboxRestrictions

from triage.early_queries import BareRunner, GuardedRunner
from triage.kept_runs import KeptRuns

LOADED_ONCE: Final = ("triage", "workflows")
"""Packages that hold no state: `tests/unit/test_sandbox.py` keeps them so."""


def sandboxed(kept: KeptRuns | None = None) -> GuardedRunner:
    """Return what runs our workflows in the sandbox, and what replays them."""
    passed = SandboxRestrictions.default.with_passthrough_modules(*LOADED_ONCE)
    return GuardedRunner(restrictions=passed, kept=kept)


def bare(kept: KeptRuns | None = None) -> BareRunner:
    """Return what runs our workflows without it."""
    return BareRunner(kept)
