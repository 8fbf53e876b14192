"""The product's worker without the workflow sandbox: ``python -m benchmarks.unsandboxed``.

Why it exists: half of a sandboxed run's worker time is the sandbox, and the worker has no setting
that takes it away. So the one function that builds it is replaced before the worker is loaded.
"""

from __future__ import annotations

import runpy
from collections.abc import Sequence

from temporalio.worker import UnsandboxedWorkflowRunner

from triage import sandbox


def _none_for(_workflows: Sequence[type]) -> UnsandboxedWorkflowRunner:
    return UnsandboxedWorkflowRunner()


if __name__ == "__main__":
    sandbox.sandbox_for = _none_for  # type: ignore[assignment]  # the worker takes any runner
    runpy.run_module("worker", run_name="__main__")
