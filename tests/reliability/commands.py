"""The real commands, typed at the server that the tests share, while its worker goes on."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from pydantic import JsonValue
from temporalio.client import Client

from tests.cli.conftest import TEMPORAL, TRIAGE, Answer, clean_environment

SECONDS = 90.0

KILLED = """
import os, signal, sys
from temporalio.client import Client

place, start = sys.argv.pop(1), Client.start_workflow

async def cut(*args, **kwargs):
    if place == "after":
        await start(*args, **kwargs)
    os.kill(os.getpid(), signal.SIGKILL)

Client.start_workflow = cut
from triage.cli.main import main
main()
"""
"""The command `triage`, which kills itself right before or right after it starts a run."""


@dataclass(frozen=True)
class Shell:
    """A folder, and commands that reach one server."""

    home: Path
    client: Client

    async def triage(self, *arguments: str | Path) -> Answer:
        """Run `triage` to its end."""
        return await self._run(TRIAGE, *map(str, arguments))

    async def killed_triage(self, place: str, *arguments: str | Path) -> Answer:
        """Run `triage`, which is killed ``before`` or ``after`` the start of a run."""
        return await self._run(sys.executable, "-c", KILLED, place, *map(str, arguments))

    async def temporal(self, *arguments: str) -> Answer:
        """Run the plain `temporal` program to its end."""
        address = self.client.service_client.config.target_host
        return await self._run(TEMPORAL, *arguments, "--address", address)

    async def signal(self, workflow_id: str, name: str, *inputs: str) -> Answer:
        """Send a signal with the plain `temporal` program, each input being JSON text."""
        given = [part for text in inputs for part in ("--input", text)]
        return await self.temporal(
            "workflow", "signal", "--workflow-id", workflow_id, "--name", name, *given
        )

    def request(self, **changes: JsonValue) -> Path:
        """Write a request with an id that no other has; the rules model completes it."""
        request_id = f"R-{uuid4().hex[:12]}"
        document = {
            "request_id": request_id,
            "title": "Orders fail",
            "body": "Every POST fails with status 500 since the last release.",
            "changed_paths": ["backend/api.py"],
            "source": "tests",
        }
        path = self.home / f"{request_id}.json"
        path.write_text(json.dumps({**document, **changes}), encoding="utf-8")
        return path

    async def _run(self, *command: str) -> Answer:
        address = self.client.service_client.config.target_host
        process = await asyncio.create_subprocess_exec(
            *command,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=clean_environment(self.home, TEMPORAL_ADDRESS=address),
            cwd=self.home,
        )
        try:
            async with asyncio.timeout(SECONDS):
                out, err = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        assert process.returncode is not None
        return Answer(process.returncode, out.decode(), err.decode())
