"""What a benchmark says of made-up figures: ratios with their spread, and whether they count."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from benchmarks.arms import FLOOR, FLOOR_AGAIN, PRODUCT
from benchmarks.measure import TOTAL, Counted, Measurement, Window
from benchmarks.procfs import Opened
from benchmarks.replay import Replay, Speed
from benchmarks.report import as_text
from benchmarks.results import Results
from benchmarks.waiting import Held, Wait

COUNTED = Counted(events=23, bytes=2_236, actions=4, kinds={"started": (1, 248)})


def a_window(again: float = 1.0, product: float = 1.5, others: float = 0.0) -> Window:
    """A window in which the floor took 10 ms in its worker and 30 ms in its server."""
    shares = {FLOOR: 1.0, FLOOR_AGAIN: again, PRODUCT: product}
    parts = {"worker": 0.01, "server": 0.03, TOTAL: 0.04}
    cpu = {
        arm: {part: share * each for part, each in parts.items()} for arm, share in shares.items()
    }
    cpu[PRODUCT]["database"] = 0.002
    return Window(runs=8, cpu_seconds=cpu, others=others)


def a_measurement(*windows: Window) -> Measurement:
    """A measurement of W."""
    arms = (FLOOR, FLOOR_AGAIN, PRODUCT)
    return Measurement("W", arms, windows, dict.fromkeys(arms, COUNTED))


def test_each_arm_stands_against_the_floor_s_same_window() -> None:
    """The floor's row has its own milliseconds, the others' have ratios with their spread."""
    found = a_measurement(a_window(product=1.5), a_window(product=2.0), a_window(product=1.6))
    text = as_text(Results({"load": "0.1"}, [found]))
    lines = {line.split("  ")[0]: line for line in text.splitlines()}
    assert "40.0 ms" in lines["floor"]
    assert "1.60 (1.50..2.00)" in lines["product"]
    assert "3 windows, 24 runs of each arm" in text
    assert "It counts" in text


def test_the_product_stands_against_each_peer() -> None:
    """A peer has a row beside the floor; time and bytes are compared with the product's, too."""
    windows = [a_window(product=product) for product in (1.0, 1.5, 1.2)]
    for window in windows:
        window.cpu_seconds["peer"] = {"worker": 0.05, "server": 0.03, TOTAL: 0.08}
    arms = (FLOOR, FLOOR_AGAIN, PRODUCT, "peer")
    counted = dict.fromkeys(arms, COUNTED) | {"peer": replace(COUNTED, bytes=22_360)}
    results = Results({}, [Measurement("W", arms, tuple(windows), counted)])
    lines = {line.split("  ")[0]: line for line in as_text(results).splitlines()}
    assert "2.00 (2.00..2.00)" in lines["peer"]
    assert "product, total, against: peer 0.60 (0.50..0.75)" in lines
    assert "bytes against the product's: peer 10.0" in lines
    (found,) = results.as_json()["measurements"]
    assert 0.6 == found["product_against"]["peer"]["median"]
    assert {"peer": 10.0} == found["bytes_against_product"]


def test_the_product_s_speed_stands_against_each_peer_s() -> None:
    """Runs a second of the embedded profile are compared in the same windows; more is faster."""
    floor = dict.fromkeys((FLOOR, FLOOR_AGAIN), (20.0, 10.0, 20.0))
    speed = Speed({**floor, PRODUCT: (30.0, 12.0, 33.0), "peer": (40.0, 20.0, 30.0)})
    results = Results({}, embedded=speed)
    assert "product against: peer 0.75 (0.60..1.10)" in as_text(results).splitlines()
    (found,) = results.as_json()["speeds"]
    assert 0.75 == found["product_against"]["peer"]["median"]


def test_what_the_floor_does_not_have_is_shown_as_time() -> None:
    """A database of the product's own has no ratio; it is part of the total all the same."""
    found = a_measurement(a_window())
    assert found.spread(PRODUCT, "database") is None
    assert "2.0 ms" in as_text(Results({}, [found]))


@pytest.mark.parametrize("again", [0.9, 1.1])
def test_an_unfair_measurement_says_that_it_does_not_count(again: float) -> None:
    """It names what was off, in the text, in the JSON and by the exit status."""
    results = Results({}, [a_measurement(a_window(again), a_window(again))])
    assert not results.counts
    assert f"DOES NOT COUNT: floor again is not within 0.95..1.05: W {again:.2f}" in as_text(
        results
    )
    assert json.loads(json.dumps(results.as_json()))["counts"] is False


def test_what_a_run_leaves_on_the_disk_is_said_for_each_database() -> None:
    """Arms whose databases are no files of theirs are left out."""
    kept = replace(COUNTED, kept={"temporal.db": 21_900.0, "triage.db": 1_960.0})
    counted = {FLOOR: COUNTED, FLOOR_AGAIN: COUNTED, PRODUCT: kept}
    text = as_text(Results({}, [replace(a_measurement(a_window()), counted=counted)]))
    line = "KB that a run leaves in its databases: product temporal.db 21.9 triage.db 2.0"
    assert line in text.splitlines()


def test_an_unfair_replay_does_not_count_either() -> None:
    """What is measured in something a second is held to the same bounds."""
    speed = Speed({FLOOR: (100.0,), FLOOR_AGAIN: (80.0,), PRODUCT: (70.0,)})
    replay = Replay(speed, speed)
    results = Results({}, [a_measurement(a_window())], replay=replay)
    assert not results.counts
    assert "0.70 (0.70..0.70)" in as_text(results)


def test_a_busy_machine_is_named() -> None:
    """Whoever reads a report sees how much of the machine others used."""
    busy, idle = a_measurement(a_window(others=0.4)), a_measurement(a_window(others=0.02))
    assert "TAKEN ON A BUSY MACHINE: others used 40%" in as_text(Results({}, [idle, busy]))
    assert "BUSY" not in as_text(Results({}, [idle]))


def test_waiting_runs_are_compared_by_what_they_hold() -> None:
    """Memory stands beside what was held empty, and wrong writes are said."""
    floor = Held(
        {"worker": 60_000_000, "server": 150_000_000},
        {"worker": 100_000_000, "server": 200_000_000},
        {"worker": 0.01, "server": 0.04},
        20.0,
    )
    product = Held(
        floor.empty_bytes,
        {"worker": 125_000_000, "server": 210_000_000},
        floor.cpu_seconds,
        18.0,
        Opened(threads=20, files=30),
        Opened(threads=21, files=32),
    )
    results = Results({}, waits=[Wait(2_000, True, {FLOOR: floor, PRODUCT: product}, wrong=1)])
    text = as_text(results)
    assert "2000 waiting runs of each arm, workers killed half-way" in text
    assert "125 (60 empty)" in text
    opened = "21 threads (20 empty), 32 open files and connections (30 empty)"
    assert f"product's worker: {opened}" in text.splitlines()
    assert "worker memory 1.25 of the floor's; wrong or repeated labels: 1" in text
