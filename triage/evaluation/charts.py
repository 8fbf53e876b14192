"""The two charts of a report, as SVG that stands in a page. Pure.

Colours come from the page's style sheet, by class; each bar has its number as a title, so that
nothing is told by colour alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Final

from triage.evaluation.fixture import printable
from triage.evaluation.judging import Behaviour, Grade
from triage.evaluation.summary import Report, Summary

STYLE: Final = """
.right { fill: #2da44e; } .wrong { fill: #cf222e; } .abstained { fill: #bf8700; }
.failed { fill: #6e7781; } .line { stroke: #1b1f24; stroke-width: 1.5; } .axis { stroke: #d8dee4; }
svg text { font: 13px system-ui, sans-serif; fill: #1b1f24; }
"""
_LEFT: Final = 130
_WIDTH: Final = 560
_BAR: Final = 18
_STEP: Final = 30
_LEGEND: Final = 130


def grades_chart(summary: Summary) -> str:
    """Return a bar for each behaviour, parted by its grades, with the interval of what is right."""
    rows = "".join(
        part
        for at, behaviour in enumerate(summary.grades)
        for part in _grades_row(summary, behaviour, at * _STEP)
    )
    high = len(summary.grades) * _STEP
    legend = "".join(
        f'<rect class="{grade}" x="{_LEFT + at * _LEGEND}" y="{high + 8}" width="12" height="12"/>'
        f'<text x="{_LEFT + at * _LEGEND + 18}" y="{high + 19}">{grade}</text>'
        for at, grade in enumerate(Grade)
    )
    return _svg(f"grades of {summary.configuration}", high + 30, rows + legend)


def _grades_row(summary: Summary, found: Behaviour, top: float) -> Iterator[str]:
    yield f'<text x="0" y="{top + _BAR - 4}">{found}</text>'
    x = float(_LEFT)
    for grade in Grade:
        rate = summary.rate(found, grade)
        width = rate.value * _WIDTH
        if width:
            told = f"{found} {grade}: {rate.count} of {rate.total}"
            yield (
                f'<rect class="{grade}" x="{x:.1f}" y="{top}" width="{width:.1f}"'
                f' height="{_BAR}"><title>{told}</title></rect>'
            )
        x += width
    right = summary.rate(found, Grade.RIGHT)
    yield _whisker(_LEFT + right.low * _WIDTH, _LEFT + right.high * _WIDTH, top + _BAR / 2)


def differences_chart(report: Report) -> str:
    """Return a point with its interval for each difference, about a line at none."""
    middle, high = _LEFT + 70 + _WIDTH / 2, len(report.differences) * _STEP
    rows = [f'<line class="axis" x1="{middle}" x2="{middle}" y1="0" y2="{high}"/>']
    for at, ((behaviour, grade), found) in enumerate(report.differences.items()):
        y, scale = at * _STEP + _BAR / 2, _WIDTH / 2
        rows.append(f'<text x="0" y="{y + 5}">{behaviour}.{grade}</text>')
        rows.append(_whisker(middle + found.low * scale, middle + found.high * scale, y))
        rows.append(
            f'<circle class="{grade}" cx="{middle + found.value * scale:.1f}" cy="{y}" r="5">'
            f"<title>{100 * found.value:+.1f} points</title></circle>"
        )
    return _svg("differences", high, "".join(rows))


def _whisker(low: float, high: float, y: float) -> str:
    ends = "".join(
        f'<line class="line" x1="{x:.1f}" x2="{x:.1f}" y1="{y - 4}" y2="{y + 4}"/>'
        for x in (low, high)
    )
    return f'<line class="line" x1="{low:.1f}" x2="{high:.1f}" y1="{y}" y2="{y}"/>{ends}'


def _svg(label: str, height: float, inner: str) -> str:
    named = escape(printable(label), quote=True)
    wide = _LEFT + _WIDTH + 80
    return (
        f'<svg role="img" aria-label="{named}" viewBox="0 0 {wide} {height}" width="{wide}"'
        f' height="{height}">{inner}</svg>\n'
    )
