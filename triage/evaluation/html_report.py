"""A data set's evaluation as one HTML file that anybody can open. Pure.

Why it exists: a table of rates is read faster beside its bars. The file needs nothing else, loads
nothing and runs nothing; every text in it is escaped, and no issue's text is in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Final

from triage.evaluation.charts import STYLE, differences_chart, grades_chart
from triage.evaluation.dataset_report import (
    difference_text,
    made_with,
    rate_text,
    threshold_text,
    verdict,
    what_is_wrong,
)
from triage.evaluation.fixture import printable
from triage.evaluation.judging import Behaviour, Grade
from triage.evaluation.summary import Report, Summary
from triage.evaluation.thresholds import Checked

LISTED: Final = 500
"""Cases that are named one by one; the JSON report has all of them."""
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
_CSS: Final = f"""
body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem;
  color: #1b1f24; background: #fff; }}
table {{ border-collapse: collapse; margin: .5rem 0 1.5rem; }}
th, td {{ border-bottom: 1px solid #d8dee4; padding: .2rem .7rem .2rem 0; text-align: left;
  vertical-align: top; overflow-wrap: anywhere; }}
td.number, th.number {{ text-align: right; }}
code {{ font-size: .9em; overflow-wrap: anywhere; }}
svg {{ max-width: 100%; height: auto; }}
{STYLE}
"""
Row = Sequence[object]


def to_html(report: Report, checked: Sequence[Checked], command: str) -> str:
    """Return the page."""
    dataset = report.dataset
    title = f"{printable(dataset.name)}: {verdict(report, checked)}"
    parts = [
        f"<h1>{_text(title)}</h1>",
        _made(report, command),
        _thresholds(checked),
        *map(_section, report.results),
        _differences(report),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f"<title>{_text(title)}</title>\n<style>{_CSS}</style>\n</head>\n<body>\n"
        f"{''.join(parts)}</body>\n</html>\n"
    )


def _text(value: object) -> str:
    return escape(printable(str(value)), quote=True)


def _made(report: Report, command: str) -> str:
    dataset = report.dataset
    scripted = sum(case.decisions is not None for case in dataset.cases)
    versions = ", ".join(f"{name} {number}" for name, number in made_with().items())
    return (
        f"<p>{len(dataset.cases)} cases, {scripted} of them with decisions of their own;"
        f" <code>{_text(dataset.digest)}</code>.<br>Made by <code>{_text(command)}</code>"
        f" with {_text(versions)}.</p>\n"
    )


def _thresholds(checked: Sequence[Checked]) -> str:
    if not checked:
        return ""
    lines = "".join(f"<li>{_text(threshold_text(one))}</li>" for one in checked)
    return f"<h2>Thresholds</h2>\n<ul>{lines}</ul>\n"


def _section(summary: Summary) -> str:
    totals, many = summary.totals, len(summary.judged)
    used = {
        "steps a case": f"{totals.steps / many:.2f}, at most {totals.most_steps}",
        "repeated model calls": totals.retries,
        "tokens a case": f"{totals.tokens / many:.0f}",
        "millionths a case": f"{totals.cost_micros / many:.0f}",
    }
    return "".join(
        (
            f"<h2>{_text(summary.configuration)}</h2>\n",
            f"<p>{_text(_decided_with(summary))}</p>\n",
            grades_chart(summary),
            _grades(summary),
            "<h3>Where they went</h3>\n",
            _routes(summary.routes),
            "<h3>What they used</h3>\n",
            _table(("", ""), used.items()),
            "<h3>How they ended</h3>\n",
            _counted("failure", summary.failures),
            _counted("model fault", summary.model_faults),
            _counted("tools, in their order", summary.trajectories),
            "<h3>What was not right</h3>\n",
            _not_right(summary),
        )
    )


def _decided_with(summary: Summary) -> str:
    found = summary.provenance.model_dump()
    return "; ".join(f"{name} {value}" for name, value in found.items() if value)


def _grades(summary: Summary) -> str:
    rows = (
        (behaviour, *(rate_text(summary.rate(behaviour, grade)) for grade in Grade))
        for behaviour in summary.grades
    )
    return _table(("behaviour", *Grade), rows)


def _routes(routes: Mapping[str, Mapping[str, int]]) -> str:
    names = sorted({name for went in routes.values() for name in went})
    rows = ((wanted, *(went.get(name, 0) for name in names)) for wanted, went in routes.items())
    return _table(("expected", *(f"→ {name}" for name in names)), rows)


def _counted(what: str, counted: Mapping[str, int]) -> str:
    if not counted:
        return ""
    ordered = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    return _table((what, "cases"), ordered)


def _not_right(summary: Summary) -> str:
    rows = list(_wrong_rows(summary))
    more = len(rows) - LISTED
    note = f"<p>{more} more are in the JSON report.</p>\n" if more > 0 else ""
    return _table(("case", "what", "expected", "came to"), rows[:LISTED]) + note


def _wrong_rows(summary: Summary) -> Iterator[Row]:
    for one in summary.judged:
        if one.grades[Behaviour.CASE] is Grade.RIGHT:
            continue
        wanted = one.case.expected.model_dump(mode="json", exclude_unset=True)
        told = "; ".join(f"{name} {value}" for name, value in wanted.items())
        response = one.ran.response if one.ran else None
        came = (
            f"{response.status}; route {response.route}; labels {list(response.labels)};"
            f" owner {response.owner}; failure {response.failure}"
            if response
            else ""
        )
        yield one.case.id, what_is_wrong(one), told, came


def _differences(report: Report) -> str:
    if not report.differences:
        return ""
    main, base = (summary.configuration for summary in report.results)
    rows = (
        (f"{behaviour}.{grade}", difference_text(found))
        for (behaviour, grade), found in report.differences.items()
    )
    return (
        f"<h2>{_text(main)} less {_text(base)}</h2>\n"
        "<p>In points of per cent, on the same cases, without those that have decisions of their"
        " own; 95 % intervals for paired proportions, and McNemar's exact test.</p>\n"
        f"{differences_chart(report)}{_table(('rate', 'difference'), rows)}"
    )


def _table(headings: Sequence[object], rows: Iterable[Row]) -> str:
    head = "".join(f"<th>{_text(one)}</th>" for one in headings)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>\n" for row in rows)
    return f"<table>\n<tr>{head}</tr>\n{body}</table>\n"


def _cell(value: object) -> str:
    kind = ' class="number"' if isinstance(value, int) else ""
    return f"<td{kind}>{_text(value)}</td>"
