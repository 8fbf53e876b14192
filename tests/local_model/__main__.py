"""The sample requests, triaged by a real model on this machine: ``make demo-llm``.

Everything is as in `triage demo`, but for the model. It is small, so its answers are mostly wrong:
what is worth seeing is what the loop makes of them.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pydantic import SecretStr
from temporalio.client import Client

from tests.local_model.llama import MODEL, PRICES, llama_server
from triage.cli.clients import ask, silence_core
from triage.cli.demo_runs import Sample, _sample
from triage.cli.local import WORKER_LOG, demo_settings, no_configuration, server_options
from triage.cli.output import put, put_table, say
from triage.contracts.names import QUERY_STATE
from triage.contracts.state import StateView
from triage.embedded import EmbeddedServer, WorkerProcess
from triage.resources import fixtures_path
from triage.settings import Settings

HEADINGS: Final = ("REQUEST", "STATUS", "ROUTE", "LABELS", "STEPS", "TOKENS", "WHY")
WHY_CHARS: Final = 60
RUN_SECONDS: Final = 1_800.0


async def demo() -> None:
    """Start all three servers, triage the samples, print what came of them, and stop."""
    with tempfile.TemporaryDirectory(prefix="triage-demo-llm-") as name:
        folder = Path(name)
        say("starting llama.cpp with SmolLM2-135M")
        async with llama_server(folder / "llama.log") as address:
            settings = _settings(folder, address)
            say("starting a Temporal server and a worker")
            async with EmbeddedServer(server_options(folder)) as server:
                environment = server.environment() | no_configuration(folder)
                async with WorkerProcess(settings, environment, log=folder / WORKER_LOG):
                    say("triaging the samples; each answer takes seconds")
                    async with asyncio.timeout(RUN_SECONDS):
                        samples = await _one_by_one(server.client, settings)
                    rows = [await _row(server.client, sample) for sample in samples]
    put("", f"The sample requests, triaged by {MODEL}:", "")
    put_table(HEADINGS, rows)
    put("", "Nothing was written: no answer of a model is, before a person has approved it.")


def _settings(folder: Path, address: str) -> Settings:
    (folder / "prices.toml").write_text(PRICES, encoding="utf-8")
    changes = {
        "model": MODEL,
        "model_base_url": address,
        "model_api_key": SecretStr("none"),
        "model_timeout_seconds": 120.0,
        "model_max_tokens": 300,
        "model_prices": folder / "prices.toml",
    }
    return demo_settings(folder).model_copy(update=changes)


async def _one_by_one(client: Client, settings: Settings) -> list[Sample]:
    """Triage one sample after the other: the model answers one question at a time."""
    files = sorted(fixtures_path("requests").glob("*.json"))
    return [await _sample(client, settings, file) for file in files]


async def _row(client: Client, sample: Sample) -> Sequence[str]:
    handle = client.get_workflow_handle(sample.workflow_id)
    state = StateView.model_validate_json(await ask(handle, QUERY_STATE))
    response = sample.response
    faults = [f"{fault.fault}, {fault.then}" for fault in state.model_faults]
    why = "; ".join((*faults, response.reason))
    return (
        response.request_id,
        response.status.value,
        response.route or "-",
        ", ".join(response.labels) or "-",
        str(response.steps),
        str(state.spent.tokens),
        why if len(why) <= WHY_CHARS else why[: WHY_CHARS - 3] + "...",
    )


def main() -> int:
    """Run it.

    Returns:
        0 if every sample came to an end.
    """
    silence_core()
    asyncio.run(demo())
    return 0


if __name__ == "__main__":
    sys.exit(main())
