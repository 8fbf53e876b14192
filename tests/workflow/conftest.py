"""Servers and a worker for all tests of the workflows: started once a session."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from hypothesis import settings
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment

from tests.workflow.world import (
    SERVER_FLAGS,
    STARTUP,
    World,
    binary,
    dev_server,
    opened_services,
    opened_world,
)
from triage.contracts.search_attributes import SEARCH_ATTRIBUTES
from triage.converter import data_converter
from triage.patient_queries import PatientQueries

# Chosen by name: see test_properties.py.
settings.register_profile("deep")


@pytest.fixture(scope="session")
async def server() -> AsyncIterator[Client]:
    """A client of a dev server, with the production converter."""
    async with await dev_server() as env:
        yield env.client


@pytest.fixture(scope="session")
async def world(server: Client, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """The production workers on that server, on a new SQLite database."""
    home = tmp_path_factory.mktemp("world")
    async with opened_services(home) as services, opened_world(server, services, home) as opened:
        yield opened


@pytest.fixture(scope="session")
async def skipping() -> AsyncIterator[WorkflowEnvironment]:
    """A server on which each run has a clock of its own, which skips every wait."""
    async with await WorkflowEnvironment.start_time_skipping_v2(
        data_converter=data_converter,
        interceptors=[PatientQueries()],
        search_attributes=SEARCH_ATTRIBUTES,
        dev_server_existing_path=binary(),
        dev_server_extra_args=[
            *SERVER_FLAGS,
            "--dynamic-config-value",
            "frontend.WorkflowTimeSkippingEnabled=true",
        ],
        dev_server_startup_timeout=STARTUP,
    ) as env:
        yield env


@pytest.fixture(scope="session")
async def skipping_world(
    skipping: WorkflowEnvironment, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[World]:
    """The production workers on the server that skips time."""
    home = tmp_path_factory.mktemp("skipping")
    async with (
        opened_services(home) as services,
        opened_world(skipping.client, services, home) as opened,
    ):
        yield opened
