"""Shows a report, and saves it where ``--output`` says."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.plan import Plan
from benchmarks.report import as_text
from benchmarks.results import Results


def output_files(plan: Plan) -> list[Path]:
    """Return the files that a plan's report goes to: the table, then the JSON."""
    base = plan.output
    return [base.with_name(base.name + end) for end in (".txt", ".json")] if base else []


def show(plan: Plan, results: Results) -> Iterator[str]:
    """Write the report to stdout and to its files, and yield what could not be written."""
    text, data = as_text(results), json.dumps(results.as_json(), indent=2, sort_keys=True) + "\n"
    try:
        sys.stdout.write(data if plan.as_json else text)
        sys.stdout.flush()
    except OSError as error:
        yield f"the report cannot be written: {error.strerror}"
    for file, content in zip(output_files(plan), (text, data), strict=False):
        try:
            file.write_text(content, encoding="utf-8")
        except OSError as error:
            yield f"--output: {file} cannot be written: {error.strerror}"
