"""Everything that one call of the benchmark found, and where it was found."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from typing import Any

from benchmarks.arms import FLOOR_AGAIN
from benchmarks.cold_start import ColdStart
from benchmarks.measure import TOTAL, Measurement
from benchmarks.peers.loading import peer_versions
from benchmarks.plan import Plan
from benchmarks.procfs import Neighbours
from benchmarks.replay import Replay, Speed
from benchmarks.stats import Spread, counts
from benchmarks.waiting import Wait
from triage.embedded import temporal_program


@dataclass(slots=True)
class Results:
    """What was found, filled arm by arm.

    Attributes:
        others_during: the share of the machine's time that others used, for each arm without
            windows of its own that say so.
        partial: why it ended before its end, if it did.
    """

    environment: dict[str, str]
    measurements: list[Measurement] = field(default_factory=list)
    replay: Replay | None = None
    embedded: Speed | None = None
    waits: list[Wait] = field(default_factory=list)
    cold_starts: list[ColdStart] = field(default_factory=list)
    others_during: dict[str, float] = field(default_factory=dict)
    partial: str | None = None

    def put(self, found: Measurement) -> None:
        """Keep a measurement, in place of what there was of the same one."""
        if self.measurements and self.measurements[-1].shape == found.shape:
            self.measurements.pop()
        self.measurements.append(found)

    @contextmanager
    def watching(self, arm: str) -> Iterator[None]:
        """Note what others used of the machine while an arm is measured."""
        neighbours = Neighbours()
        yield
        self.others_during[arm] = neighbours.share()

    @property
    def anything(self) -> bool:
        """Whether anything was measured."""
        return bool(self.others_by_arm)

    @property
    def others_by_arm(self) -> dict[str, float]:
        """The share of the machine's time that others used, by what was measured."""
        return {found.shape: found.others for found in self.measurements} | self.others_during

    def speeds(self) -> Iterator[tuple[str, Speed]]:
        """Yield what was measured in something a second."""
        if self.replay:
            yield "replay of W: events a second of CPU time", self.replay.events
            yield "replay of W: histories a second of CPU time", self.replay.histories
        if self.embedded:
            yield "embedded profile: runs of W a second, each arm alone", self.embedded

    def against_itself(self) -> Iterator[tuple[str, Spread, bool]]:
        """Yield what the floor against itself came out as, and whether that is near enough to 1."""
        for found in self.measurements:
            again = found.spread(FLOOR_AGAIN, TOTAL)
            if again:
                yield found.shape, again, counts(again)
        for title, speed in self.speeds():
            spread = speed.spread(FLOOR_AGAIN)
            yield title, spread, counts(spread)

    @property
    def counts(self) -> bool | None:
        """Whether the floor came out as one against itself; None where it never was."""
        found = [fair for _, _, fair in self.against_itself()]
        return all(found) if found else None

    @property
    def others(self) -> float:
        """The largest share of the machine's time that others used during a measurement."""
        return max(self.others_by_arm.values(), default=0.0)

    def as_json(self) -> dict[str, Any]:
        """Return everything, window by window, beside the ratios that the tables show."""
        return {
            "environment": self.environment,
            "counts": self.counts,
            "others": self.others,
            "others_during": self.others_during,
            "partial": self.partial,
            "against_itself": [
                {"of": name, **asdict(spread), "fair": fair}
                for name, spread, fair in self.against_itself()
            ],
            "measurements": [_measurement(found) for found in self.measurements],
            "speeds": [_speed(title, speed) for title, speed in self.speeds()],
            "waiting": [asdict(wait) for wait in self.waits],
            "cold_starts": [asdict(start) for start in self.cold_starts],
        }


def _measurement(found: Measurement) -> dict[str, Any]:
    ratios = {
        arm: {
            part: asdict(spread)
            for part in found.windows[0].cpu_seconds[arm]
            if (spread := found.spread(arm, part))
        }
        for arm in found.arms
    }
    against = {peer: asdict(spread) for peer, spread in found.against_peers().items()}
    return {
        **asdict(found),
        "ratios": ratios,
        "product_against": against,
        "bytes_against_product": found.bytes_of_peers(),
    }


def _speed(title: str, speed: Speed) -> dict[str, Any]:
    ratios = {arm: asdict(speed.spread(arm)) for arm in speed.windows}
    against = {peer: asdict(spread) for peer, spread in speed.against_peers().items()}
    return {"of": title, "ratios": ratios, "product_against": against, **asdict(speed)}


def environment(plan: Plan, command: str) -> dict[str, str]:
    """Say on what, with which versions and with which switches a measurement is made.

    Raises:
        NoPeer: a peer is not there, or what it needs is not installed.
    """
    peers = {"peers": ", ".join(map(peer_versions, plan.peers))} if plan.peers else {}
    temporal = subprocess.run(  # noqa: S603 - the program of our own package
        [temporal_program(), "--version"], capture_output=True, text=True, check=True
    )
    return {
        "command": command,
        "product": f"bounded-triage {version('bounded-triage')}",
        "python": platform.python_version(),
        "temporalio": version("temporalio"),
        "server": temporal.stdout.strip(),
        "machine": f"{os.cpu_count()} processors, {platform.machine()}, {platform.system()}",
        "load": " ".join(f"{load:.1f}" for load in os.getloadavg()),
        "switches": _switches(plan),
        **peers,
    }


def _switches(plan: Plan) -> str:
    sandbox = "on" if plan.sandbox else "off (the product's alone)"
    roles = "two processes" if plan.two_roles else "one process"
    workers = f", {plan.workers} of each worker process" if plan.workers > 1 else ""
    place = "memory" if plan.in_memory else "a file"
    chosen = "".join(f", {name}={value}" for name, value in plan.settings)
    return (
        f"database {plan.database}, sandbox {sandbox}, roles in {roles}{workers},"
        f" server on {place}{chosen}"
    )
