"""Thousands of random scripts through real workflows, against the independent model.

Run it with ``python -m tests.evaluation.differential --cases 3000 --seed 1``; it prints the first
cases that disagree, smallest first, and exits with 1 if there are any.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.evaluation.reference import Record, expected_run
from tests.evaluation.scripts import random_fixture
from triage.evaluation.report import Evaluation
from triage.evaluation.runner import evaluate_file
from triage.settings import Settings

SHOWN = 5


def evaluated(fixture: Mapping[str, Any], *, quiet: bool = True) -> Evaluation:
    """Evaluate a fixture as `triage evaluate` does, on a server of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "random.json"
        path.write_text(json.dumps(fixture), encoding="utf-8")
        settings = Settings(home=Path(folder) / "home")
        return asyncio.run(evaluate_file(path, settings, None if quiet else _tell))


def disagreements(fixture: Mapping[str, Any], evaluation: Evaluation) -> list[str]:
    """Return what differs from the model, one paragraph a case, the shortest first."""
    found = []
    for case, record in zip(fixture["cases"], evaluation.records, strict=True):
        response, mutations = expected_run(case)
        actual = {name: value for name, value in record.actual.items() if name != "reason"}
        ran = [item.model_dump(mode="json") for item in record.mutations]
        if (response, mutations) != (actual, ran) or record.failures:
            found.append(_paragraph(case, (response, mutations), (actual, ran), record.failures))
    return sorted(found, key=len)


def _paragraph(
    case: Mapping[str, Any],
    expected: tuple[Record, list[Record]],
    actual: tuple[Record, list[Record]],
    failures: Sequence[str],
) -> str:
    parts = {"case": case, "expected": expected, "actual": actual, "failures": failures}
    return "\n".join(f"{name}: {json.dumps(part)}" for name, part in parts.items())


def _tell(done: int, total: int) -> None:
    if done % 500 == 0:
        sys.stderr.write(f"{done} of {total}\n")


def main() -> int:
    """Compare as the arguments say, and report."""
    parser = argparse.ArgumentParser(prog="tests.evaluation.differential")
    parser.add_argument("--cases", type=int, default=3_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    fixture = random_fixture(options.seed, options.cases)
    began = time.monotonic()
    evaluation = evaluated(fixture, quiet=False)
    rate = options.cases / (time.monotonic() - began)
    found = disagreements(fixture, evaluation)
    sys.stdout.write("".join(f"{paragraph}\n\n" for paragraph in found[:SHOWN]))
    sys.stdout.write(
        f"seed={options.seed} cases={options.cases} disagreements={len(found)}"
        f" mutations={len(evaluation.mutations)} cases_per_second={rate:.1f}\n"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
