"""Runs the real command in processes of its own, each with a folder and settings of its own."""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sysconfig
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar
from uuid import uuid4

import pytest

from tests.cli.forked import ForkServer, can_fork
from tests.ports import kept_ports

T = TypeVar("T")
SCRIPTS: Final = Path(sysconfig.get_path("scripts"))
TRIAGE: Final = str(SCRIPTS / "triage")
TEMPORAL: Final = str(SCRIPTS / "temporal")
FIXTURES: Final = Path(__file__).parents[2] / "fixtures"
NOWHERE: Final = "127.0.0.1:1"
"""An address at which nothing listens."""

MARK: Final = "BOUNDED_TRIAGE_TEST"
"""A variable by which the processes that a test caused can be found."""

GREETED: Final = "Ctrl-C ends everything."

MOST_SECONDS: Final = 120.0
"""For a command that would hang: far longer than one ever takes, on any machine."""


@dataclass(frozen=True)
class Answer:
    """What a command did."""

    status: int
    out: str
    err: str

    def json(self) -> Any:  # noqa: ANN401 - any JSON value
        """Return the one JSON document on stdout; anything beside it is an error."""
        return json.loads(self.out)


class Triage(Protocol):
    """Runs ``triage`` with arguments, to its end."""

    def __call__(
        self,
        *arguments: str | Path,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        timeout: float = MOST_SECONDS,
    ) -> Answer:
        """Return what the command did."""
        ...


def clean_environment(home: Path, **more: str) -> dict[str, str]:
    """Return an environment in which only `more` configures anything of ours or Temporal's."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("TRIAGE_", "TEMPORAL_"))
    }
    return {**kept, "HOME": str(home), "TRIAGE_HOME": str(home), **more}


@cache
def _fork_server() -> ForkServer:
    server = ForkServer()
    atexit.register(server.close)
    return server


def run_triage(
    *arguments: str | Path,
    env: Mapping[str, str],
    stdin: bytes = b"",
    timeout: float = MOST_SECONDS,
) -> Answer:
    """Run one command to its end; `tests.cli.fork_server` says what is saved by that."""
    if can_fork(env):
        words = [TRIAGE, *map(str, arguments)]
        status, out, err = _fork_server().run(words, env, stdin, timeout)
        return Answer(status, out.decode(), err.decode())
    done = subprocess.run(
        [TRIAGE, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        env=dict(env),
        cwd=env["HOME"],
        timeout=timeout,
        check=False,
    )
    return Answer(done.returncode, done.stdout.decode(), done.stderr.decode())


def runner(base: Mapping[str, str]) -> Triage:
    """Return what runs commands in the environment `base`."""

    def call(
        *arguments: str | Path,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        timeout: float = MOST_SECONDS,
    ) -> Answer:
        return run_triage(*arguments, stdin=stdin, env={**base, **(env or {})}, timeout=timeout)

    return call


@pytest.fixture
def triage(tmp_path: Path) -> Triage:
    """Run commands where no server is."""
    return runner(clean_environment(tmp_path, TEMPORAL_ADDRESS=NOWHERE))


def processes_with(mark: str) -> set[int]:
    """Return the running processes that inherited `mark`."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}".encode() in (folder / "environ").read_bytes():
                found.add(int(folder.name))
        except OSError:
            continue
    return found


class Up:
    """A running ``triage up``."""

    def __init__(self, home: Path, **more: str) -> None:
        self._kept = ExitStack()
        port, ui_port = self._kept.enter_context(kept_ports(2))
        self.home = home
        self.mark = uuid4().hex
        self.address = f"127.0.0.1:{port}"
        self.ui = f"http://127.0.0.1:{ui_port}"
        self.environment = clean_environment(
            home, TEMPORAL_ADDRESS=self.address, **{MARK: self.mark}, **more
        )
        self.log = home / "up.err"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [TRIAGE, "up", "--port", str(port), "--ui-port", str(ui_port), "--data", str(home)],
                env=self.environment,
                cwd=home,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self.greeting = list(self._read_greeting())

    def _read_greeting(self) -> Iterator[str]:
        """Read what it prints until it is ready."""
        assert self.process.stdout
        for line in self.process.stdout:
            yield line.rstrip("\n")
            if GREETED in line:
                return
        raise AssertionError(self.log.read_text())

    def end(self, number: int = signal.SIGINT) -> int:
        """Send a signal and return the exit status."""
        self.process.send_signal(number)
        status = self.process.wait(MOST_SECONDS)
        if self.process.stdout:
            self.process.stdout.close()
        self._kept.close()
        return status


def eventually(look: Callable[[], T]) -> T:
    """Return what is found, once anything is: what only a server or a file tells has no event."""
    deadline = time.monotonic() + MOST_SECONDS
    while not (found := look()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


class Stack:
    """A server and a worker for all tests of a process, with ways to type at them."""

    def __init__(self, up: Up) -> None:
        self.up = up
        self.triage = runner(up.environment)

    def temporal(self, *arguments: str) -> Any:  # noqa: ANN401 - any JSON value
        """Run the ``temporal`` program and return its JSON."""
        done = subprocess.run(
            [TEMPORAL, *arguments, "--address", self.up.address, "--output", "json"],
            env=self.up.environment,
            capture_output=True,
            check=True,
            timeout=MOST_SECONDS,
        )
        return json.loads(done.stdout) if done.stdout else None

    def listed(self, workflow_id: str, *flags: str) -> Any:  # noqa: ANN401 - any JSON value
        """Return a run's row of `triage list` once it has one; the server's list lags behind."""
        rows = eventually(lambda: self.rows(workflow_id, *flags))
        assert 1 == len(rows)
        return rows[0]

    def rows(self, workflow_id: str, *flags: str) -> list[Any]:
        """Return the rows that `triage list` has of a run."""
        listed = self.triage("list", *flags, "--format", "json").json()
        return [row for row in listed if row["workflow_id"] == workflow_id]

    def waiting(self, request: Path, workflow_id: str) -> Follower:
        """Start a run that waits for an approval, and return once it waits."""
        return Follower(self.up.environment, request, workflow_id)


class Follower:
    """A ``triage start --wait`` of a run that waits for a person."""

    def __init__(self, env: Mapping[str, str], request: Path, workflow_id: str) -> None:
        arguments = ["start", str(request), "--mode", "approve", "--id", workflow_id, "--wait"]
        self._process = subprocess.Popen(
            [TRIAGE, *arguments, "--format", "json"],
            env=dict(env),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            self.told = list(self._read())
        except BaseException:
            self._process.kill()
            self._process.communicate()
            raise

    def _read(self) -> Iterator[str]:
        assert self._process.stderr
        for line in self._process.stderr:
            yield line.rstrip("\n")
            if "waits for a person" in line:
                return
        raise AssertionError("the run did not wait for a person")

    def finish(self) -> Answer:
        """Return what the command did in the end."""
        out, err = self._process.communicate(timeout=MOST_SECONDS)
        return Answer(self._process.returncode, out, err)


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Share one ``triage up`` among the tests of this process."""
    up = Up(tmp_path_factory.mktemp("up"))
    yield Stack(up)
    up.end()


@pytest.fixture
def request_file(tmp_path: Path) -> Path:
    """Write a request of its own, which the rules model completes."""
    return write_request(tmp_path)


def write_request(folder: Path, **changes: object) -> Path:
    """Write a request with an id that no other has."""
    document = {
        "request_id": f"R-{uuid4().hex[:12]}",
        "title": "Orders fail",
        "body": "Every POST fails with status 500 since the last release.",
        "changed_paths": ["backend/api.py"],
        "source": "test",
    }
    path = folder / f"request-{uuid4().hex[:8]}.json"
    path.write_text(json.dumps({**document, **changes}))
    return path


def id_in(request: Path) -> str:
    """Return the request id in a request file."""
    return str(json.loads(request.read_text())["request_id"])
