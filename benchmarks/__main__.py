"""``python -m benchmarks``: what a triage costs against the smallest durable workflow.

Exits with 1 if the measurement does not count, and with 2 if it could not be made.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
from collections.abc import Sequence
from typing import Final

from benchmarks.arms import WrongEnd
from benchmarks.driver import play
from benchmarks.peers.loading import NoPeer
from benchmarks.plan import Plan, read_plan
from benchmarks.replay import ReplayFailed
from benchmarks.report import as_text
from benchmarks.results import Results
from tests.postgres_server import NoPostgresError
from triage.embedded import EmbeddedError

_NOT_MADE: Final = (EmbeddedError, NoPeer, NoPostgresError, ReplayFailed, TimeoutError, WrongEnd)
"""Why a measurement could not be made."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure as the command line says."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    plan = read_plan(given)
    command = shlex.join(["python", "-m", "benchmarks", *given])
    try:
        results = asyncio.run(play(plan, command))
    except _NOT_MADE as error:
        print(f"bench: {type(error).__name__}: {error}", file=sys.stderr)  # noqa: T201 - for people
        return 2
    _show(plan, results)
    return 0 if results.counts else 1


def _show(plan: Plan, results: Results) -> None:
    text, data = as_text(results), json.dumps(results.as_json(), indent=2, sort_keys=True) + "\n"
    sys.stdout.write(data if plan.as_json else text)
    if plan.output:
        plan.output.with_suffix(".txt").write_text(text, encoding="utf-8")
        plan.output.with_suffix(".json").write_text(data, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
