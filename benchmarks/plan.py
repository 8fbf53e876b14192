"""What is to be measured, as the command line says."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from triage.contracts.options import MAX_STEPS_LIMIT

ARMS: Final = ("W", "A", "W-API", "steps", "waiting", "replay", "embedded", "cold")
_PEER_HELP: Final = "another arm, see arms.py; `make bench-peers` has some"
QUICK_ARMS: Final = ("W", "A", "replay", "cold")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What one run consists of.

    Attributes:
        name: as the report calls it.
        steps: questions to the model; between two of them there is a read.
        waits: whether a person approves a write at the end.
        recorded: whether the answers come from a script, and not from the rules.
    """

    name: str
    steps: int = 2
    waits: bool = False
    recorded: bool = False

    @property
    def activities(self) -> int:
        """The activities of the floor's run: one a question, and one a read."""
        return 2 * self.steps - 1


W: Final = Shape(name="W")
A: Final = Shape(name="A", waits=True)
W_API: Final = Shape(name="W-API", recorded=True)
"""W as a model behind an API has it: each question is an ordinary activity, here of a script."""


def long_run(steps: int) -> Shape:
    """Return a run of that many steps, each but the last with a read."""
    return Shape(name=f"{steps} steps", steps=steps, recorded=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that the command line can say; see ``--help``."""

    arms: tuple[str, ...] = ARMS
    windows: int = 8
    seconds: float = 4.0
    slots: int = 4
    steps: tuple[int, ...] = (3, 10, 30, 100)
    waiting: int = 100
    kill: bool = False
    database: str = "sqlite"
    sandbox: bool = True
    two_roles: bool = False
    workers: int = 1
    in_memory: bool = False
    settings: tuple[tuple[str, str], ...] = ()
    peers: tuple[str, ...] = ()
    as_json: bool = False
    output: Path | None = None


def read_plan(arguments: Sequence[str] | None = None) -> Plan:
    """Read the command line; it ends the process where that says something else."""
    parser = _parser()
    given = parser.parse_args(arguments)
    quick = given.quick
    arms = given.arms or (QUICK_ARMS if quick else ARMS)
    if given.kill and "waiting" not in arms:
        parser.error("argument --kill: kills workers while runs wait: it needs --arms waiting")
    return Plan(
        arms=arms,
        windows=given.windows or (6 if quick else 8),
        seconds=given.seconds or (3.0 if quick else 4.0),
        slots=given.slots,
        steps=given.steps,
        waiting=given.waiting,
        kill=given.kill,
        database=given.database,
        sandbox=given.sandbox == "on",
        two_roles=given.roles == "two",
        workers=given.workers,
        in_memory=given.server == "memory",
        settings=tuple(given.set),
        peers=tuple(given.peer),
        as_json=given.format == "json",
        output=given.output,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="benchmarks",
        description="Measure a triage against the smallest durable workflow, at the same time.",
        epilog="Exits with 1 if the floor, measured against itself, does not come out as 1, and"
        " with 2 if the measurement could not be made or saved.",
    )
    _add_what(parser)
    _add_switches(parser)
    return parser


def _add_what(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--quick", action="store_true", help="W, A, replay and cold start, in fewer windows")
    add("--arms", type=_arms, help=f"some of {','.join(ARMS)}")
    add("--windows", type=_positive, help="windows of each arm (8, quick 6)")
    add("--seconds", type=_seconds, help="how long a window is at least (4, quick 3)")
    add("--slots", type=_positive, default=4, help="runs of each arm that are in flight (4)")
    add("--steps", type=_steps, default=(3, 10, 30, 100), help="the long runs (3,10,30,100)")
    add(
        "--waiting",
        type=_positive,
        default=100,
        help="runs that wait at a time (100; try 2000, 10000)",
    )
    add("--kill", action="store_true", help="kill the worker when half of them are approved")
    add("--peer", type=_peer, action="append", default=[], metavar="MODULE:NAME", help=_PEER_HELP)
    add("--format", choices=("table", "json"), default="table")
    add("--output", type=_output, help="also write table and JSON to this path, .txt and .json")


def _add_switches(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--database", choices=("sqlite", "postgresql"), default="sqlite")
    add("--sandbox", choices=("on", "off"), default="on", help="the product's; the floor's is on")
    add("--roles", choices=("one", "two"), default="one", help="processes for decide and write")
    add("--workers", type=_positive, default=1, help="of each of the product's processes (1)")
    add("--server", choices=("file", "memory"), default="file", help="where it keeps its data")
    add(
        "--set",
        type=_setting,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of the product's workers, such as log_level=error",
    )


def _arms(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    if unknown := set(names) - set(ARMS):
        shown = ", ".join(sorted(map(repr, unknown)))
        raise argparse.ArgumentTypeError(f"no arm is called {shown}: there are {', '.join(ARMS)}")
    return names


def _steps(text: str) -> tuple[int, ...]:
    numbers = tuple(map(_positive, text.split(",")))
    if max(numbers) > MAX_STEPS_LIMIT:
        # The product refuses such a run, but not before its first window is over.
        raise argparse.ArgumentTypeError(f"{max(numbers)} is not within 1..{MAX_STEPS_LIMIT}")
    return numbers


def _positive(text: str) -> int:
    if not (text.isdecimal() and (number := int(text)) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 1 or more")
    return number


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return seconds


def _output(text: str) -> Path:
    if not (path := Path(text)).name:
        raise argparse.ArgumentTypeError(f"{text!r} is not the name of a file")
    return path


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError("is not NAME=VALUE")
    return name, value


def _peer(text: str) -> str:
    module, _, member = text.partition(":")
    if not (module and member):
        raise argparse.ArgumentTypeError("is not MODULE:NAME")
    return text


def as_settings(plan: Plan) -> dict[str, Any]:
    """Return what ``--set`` gave, for `Settings` to read."""
    return dict(plan.settings)
