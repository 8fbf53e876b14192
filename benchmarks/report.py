"""A report as text: tables of ratios with their spread, for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from benchmarks.arms import FLOOR, FLOOR_AGAIN, PRODUCT
from benchmarks.cold_start import ColdStart
from benchmarks.measure import TOTAL, Measurement
from benchmarks.plan import A, W
from benchmarks.replay import Speed
from benchmarks.results import Results
from benchmarks.stacks import PARTS
from benchmarks.stats import FAIR_HIGH, FAIR_LOW, Spread
from benchmarks.waiting import Wait

_SHOWN_PARTS = (TOTAL, *PARTS)
_SHOWN_KINDS = (W.name, A.name)
_MEGABYTE = 1e6
BUSY_FROM = 0.1
"""From which share of the machine's time that others use on a measurement says so."""


def as_text(results: Results) -> str:
    """Return all tables, and last whether they count."""
    return "\n".join(line.rstrip() for line in _lines(results)) + "\n"


def _lines(results: Results) -> Iterator[str]:
    yield from (f"{name}: {value}" for name, value in results.environment.items())
    for measurement in results.measurements:
        yield from ("", *_measurement(measurement))
        if measurement.counted and measurement.shape in _SHOWN_KINDS:
            yield from ("", *_kinds(measurement))
    for title, speed in results.speeds():
        yield from ("", *_speed(title, speed))
    for wait in results.waits:
        yield from ("", *_wait(wait))
    if results.cold_starts:
        yield from ("", *_cold(results.cold_starts))
    yield ""
    yield from _verdict(results)


def _measurement(found: Measurement) -> Iterator[str]:
    runs = [window.runs for window in found.windows]
    yield f"{found.shape}: CPU of a run against the floor's, median (least..most)"
    yield f"{len(runs)} windows, {sum(runs)} runs of each arm; others used {found.others:.0%}"
    parts = [part for part in _SHOWN_PARTS if any(found.milliseconds(a, part) for a in found.arms)]
    rows = [["", *parts, "events", "actions", "bytes"]]
    rows += [
        [arm, *(_cell(found, arm, part) for part in parts), *_counted(found, arm)]
        for arm in found.arms
    ]
    yield from table(rows)
    yield from _kept(found)
    yield from _peers(f"{PRODUCT}, total, against", found.against_peers())
    more = {name: f"{ratio:.1f}" for name, ratio in found.bytes_of_peers().items()}
    yield from _peers(f"bytes against the {PRODUCT}'s", more)


def _counted(found: Measurement, arm: str) -> list[str]:
    if (counted := found.counted.get(arm)) is None:
        return ["-", "-", "-"]
    return [f"{counted.events:g}", f"{counted.actions:.2f}", f"{counted.bytes:,.0f}"]


def _kept(found: Measurement) -> Iterator[str]:
    """Say how much a run leaves on the disk; pages are counted, so few runs say little."""
    arms = [
        " ".join([arm, *(f"{file} {size / 1e3:.1f}" for file, size in counted.kept.items())])
        for arm, counted in found.counted.items()
        if counted.kept
    ]
    if arms:
        yield f"KB that a run leaves in its databases: {'; '.join(arms)}"


def _peers(title: str, ratios: Mapping[str, Spread | str]) -> Iterator[str]:
    if ratios:
        yield f"{title}: {', '.join(f'{name} {ratio}' for name, ratio in ratios.items())}"


def _kinds(found: Measurement) -> Iterator[str]:
    """Show where the bytes are: what the product has beside the floor's."""
    yield f"{found.shape}: the history of the last run, by kind of event"
    base, mine = found.counted[FLOOR].kinds, found.counted[PRODUCT].kinds
    rows = [["", "floor", "bytes", "product", "bytes"]]
    for kind in {**mine, **base}:
        cells = [f"{value:,}" for pair in (base, mine) for value in pair.get(kind, (0, 0))]
        rows.append([kind, *cells])
    yield from table(rows)


def _cell(found: Measurement, arm: str, part: str) -> str:
    spread, taken = found.spread(arm, part), found.milliseconds(arm, part)
    if arm == FLOOR or spread is None:
        # What the floor has not got cannot be compared with it.
        return f"{taken:.1f} ms" if taken else "-"
    return str(spread)


def _speed(title: str, speed: Speed) -> Iterator[str]:
    yield f"{title}, against the floor's, median (least..most); more is faster"
    rows = [["", "ratio", "here"]]
    for arm, windows in speed.windows.items():
        middle = sorted(windows)[len(windows) // 2]
        rows.append([arm, "1" if arm == FLOOR else str(speed.spread(arm)), f"{middle:,.1f}/s"])
    yield from table(rows)
    yield from _peers(f"{PRODUCT} against", speed.against_peers())


def _wait(wait: Wait) -> Iterator[str]:
    killed = ", workers killed half-way" if wait.killed else ""
    yield f"{wait.runs} waiting runs of each arm{killed}"
    rows = [["", "worker MB", "server MB", "worker CPU", "server CPU", "runs a second"]]
    for arm, held in wait.held.items():
        memory = [
            f"{held.waiting_bytes[p] / _MEGABYTE:.0f} ({held.empty_bytes[p] / _MEGABYTE:.0f} empty)"
            for p in ("worker", "server")
        ]
        cpu = [f"{1_000 * held.cpu_seconds.get(p, 0):.1f} ms" for p in ("worker", "server")]
        rows.append([arm, *memory, *cpu, f"{held.runs_a_second:.1f}"])
    yield from table(rows)
    for arm, held in wait.held.items():
        now, then = held.waiting, held.empty
        yield (
            f"{arm}'s worker: {now.threads} threads ({then.threads} empty), {now.files} open files"
            f" and connections ({then.files} empty)"
        )
    base, mine = wait.held[FLOOR], wait.held[PRODUCT]
    memory_ratio = mine.waiting_bytes["worker"] / base.waiting_bytes["worker"]
    yield f"worker memory {memory_ratio:.2f} of the floor's; wrong or repeated labels: {wait.wrong}"


def _cold(starts: Sequence[ColdStart]) -> Iterator[str]:
    yield "cold start in seconds, median (least..most)"
    rows = [["", "wall clock", "CPU"]]
    rows += [[start.command, str(start.wall), str(start.cpu)] for start in starts]
    yield from table(rows)


def _verdict(results: Results) -> Iterator[str]:
    if results.others_during:
        shares = (f"{arm} {share:.0%}" for arm, share in results.others_during.items())
        yield f"others used, meanwhile: {', '.join(shares)}"
    if results.partial:
        yield f"PARTIAL: it ended early, and what came after is not here: {results.partial}"
    if results.others >= BUSY_FROM:
        yield f"TAKEN ON A BUSY MACHINE: others used {results.others:.0%} of its time."
    off = [f"{name} {spread}" for name, spread, fair in results.against_itself() if not fair]
    bounds = f"{FAIR_LOW:.2f}..{FAIR_HIGH:.2f}"
    if off:
        yield f"DOES NOT COUNT: {FLOOR_AGAIN} is not within {bounds}: {'; '.join(off)}"
    elif results.counts is None:
        yield f"There was nothing to hold the floor against: no arm here measured {FLOOR_AGAIN}."
    else:
        yield f"It counts: the floor against itself is within {bounds} everywhere."


def table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table whose first column is to the left and the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *cells in rows:
        yield "  ".join(
            [first.ljust(widths[0])]
            + [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
        )
