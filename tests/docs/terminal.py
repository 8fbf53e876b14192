"""What a reader of README.md has in front of them: its lines, a folder and two terminals."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sysconfig
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.docs.pages import ROOT, Block, page
from tests.ports import kept_ports

UP: Final = "triage up"
LINE_SECONDS: Final = 120
_LINE: Final = re.compile(
    r"^\$ (?P<command>(?:.*\\\n)*.*)\n(?P<shown>(?:(?!\$ ).*\n)*)", re.MULTILINE
)
# These bring a server of their own where no address is set.
_ALONE: Final = re.compile(r"triage (demo|evaluate|investigate)\b")


@dataclass(frozen=True, slots=True)
class Line:
    """A command of a page and what is shown beneath it."""

    number: int
    command: str
    shown: str


def lines_of(name: str) -> list[Line]:
    """Return the lines of all ``console`` blocks of a page, in order."""
    return [line for block in page(name).blocks("console") for line in _lines_in(block)]


def _lines_in(block: Block) -> Iterator[Line]:
    for part in _LINE.finditer(block.body):
        number = block.line + block.body.count("\n", 0, part.start())
        yield Line(number, part["command"], part["shown"])


def is_shown(shown: str, printed: str) -> bool:
    """Tell whether all parts of `shown` were printed, in order; blanks count as one."""
    rest = " ".join(printed.split())
    for part in shown.split("…"):
        words = " ".join(part.split())
        if words not in rest:
            return False
        rest = rest[rest.index(words) + len(words) :]
    return True


@dataclass(frozen=True, slots=True)
class Terminal:
    """A folder with the fixtures, and an environment that finds our commands and one server."""

    folder: Path
    environment: dict[str, str]

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run a command line, with both of its outputs in one."""
        environment = dict(self.environment)
        if _ALONE.match(command):
            environment.pop("TEMPORAL_ADDRESS", None)
        return subprocess.run(
            ["/bin/bash", "-c", command],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LINE_SECONDS,
            check=False,
        )


@contextmanager
def opened_terminal(folder: Path) -> Iterator[Terminal]:
    """Open a terminal beside one in which README.md's `triage up` runs."""
    shutil.copytree(ROOT / "fixtures", folder / "fixtures")
    environment = {
        "PATH": os.pathsep.join((sysconfig.get_path("scripts"), "/usr/bin", "/bin")),
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "COLUMNS": "200",
    }
    with kept_ports(2) as ports, _up(Terminal(folder, environment), *ports) as address:
        yield Terminal(folder, environment | {"TEMPORAL_ADDRESS": address})


@contextmanager
def _up(terminal: Terminal, port: int, ui_port: int) -> Iterator[str]:
    """Run the line that stays up, and give the server's address; Ctrl-C ends it all cleanly."""
    [line] = [line for line in lines_of("README.md") if line.command == UP]
    shown = line.shown.replace("7233", str(port)).replace("8233", str(ui_port))
    with (terminal.folder / "up.log").open("w+") as log:
        process = subprocess.Popen(
            ["/bin/bash", "-c", f"exec {UP} --port {port} --ui-port {ui_port}"],
            cwd=terminal.folder,
            env=terminal.environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            _wait_until_shown(process, terminal.folder / "up.log", shown)
            yield f"127.0.0.1:{port}"
        finally:
            os.killpg(process.pid, signal.SIGINT)
            status = process.wait(timeout=LINE_SECONDS)
    assert 0 == status, (terminal.folder / "up.log").read_text()


def _wait_until_shown(process: subprocess.Popen[bytes], log: Path, shown: str) -> None:
    """Wait for the greeting; a file tells nobody that it grew, so it is read now and then."""
    deadline = time.monotonic() + LINE_SECONDS
    while not is_shown(shown, log.read_text()):
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.1)
