"""Everything that one call of the benchmark found, and where it was found."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from typing import Any

from benchmarks.arms import FLOOR_AGAIN
from benchmarks.cold_start import ColdStart
from benchmarks.measure import TOTAL, Measurement
from benchmarks.peers.loading import peer_versions
from benchmarks.plan import Plan
from benchmarks.replay import Replay, Speed
from benchmarks.stats import Spread, counts
from benchmarks.waiting import Wait
from triage.embedded import temporal_program


@dataclass(slots=True)
class Results:
    """What was found, filled arm by arm."""

    environment: dict[str, str]
    measurements: list[Measurement] = field(default_factory=list)
    replay: Replay | None = None
    embedded: Speed | None = None
    waits: list[Wait] = field(default_factory=list)
    cold_starts: list[ColdStart] = field(default_factory=list)

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
    def counts(self) -> bool:
        """Whether the floor against itself came out as one everywhere."""
        return all(fair for _, _, fair in self.against_itself())

    @property
    def others(self) -> float:
        """The largest share of the machine's time that others used during a measurement."""
        return max((found.others for found in self.measurements), default=0.0)

    def as_json(self) -> dict[str, Any]:
        """Return everything, window by window, beside the ratios that the tables show."""
        return {
            "environment": self.environment,
            "counts": self.counts,
            "others": self.others,
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
    place = "memory" if plan.in_memory else "a file"
    chosen = "".join(f", {name}={value}" for name, value in plan.settings)
    return (
        f"database {plan.database}, sandbox {sandbox}, roles in {roles}, server on {place}{chosen}"
    )
