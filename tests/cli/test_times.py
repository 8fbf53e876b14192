"""Checks that people are told every time in one form."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from triage.cli.times import told, until, with_times_told

NOON = datetime(2026, 1, 31, 12, 34, 56, 789, tzinfo=UTC)


@pytest.mark.parametrize(
    ("time", "shown"),
    [
        (NOON, "2026-01-31 12:34 UTC"),
        (NOON.astimezone(timezone(timedelta(hours=5, minutes=30))), "2026-01-31 12:34 UTC"),
        ("2026-01-31T12:34:56+00:00", "2026-01-31 12:34 UTC"),
        ("2026-01-31T12:34:56.123456Z", "2026-01-31 12:34 UTC"),
        ("-", "-"),
        ("no time", "no time"),
    ],
)
def test_times_are_told_to_the_minute(time: datetime | str, shown: str) -> None:
    """Whatever the zone and the precision, it is one form in UTC; what is no time stays."""
    assert shown == told(time)


@pytest.mark.parametrize(
    ("after", "shown"),
    [
        (timedelta(hours=71, minutes=59), "2026-02-03 12:33 UTC (in 2 d 23 h)"),
        (timedelta(seconds=5), "2026-01-31 12:35 UTC (in 5 s)"),
        (timedelta(minutes=-3), "2026-01-31 12:31 UTC (over for 3 min)"),
    ],
)
def test_a_deadline_is_told_with_what_is_left(after: timedelta, shown: str) -> None:
    """Whoever reads a deadline sees how long it is to it, or that it is over."""
    assert shown == until((NOON + after).isoformat(), NOON)


def test_what_is_no_deadline_is_told_as_it_is() -> None:
    """Another version of this program may tell it in another form."""
    assert "soon" == until("soon", NOON)


def test_times_in_a_sentence_are_told_alike() -> None:
    """A run's own sentences hold times in ISO 8601; people read them in the one form."""
    assert "rejected by ann at 2026-01-31 12:34 UTC; done" == with_times_told(
        "rejected by ann at 2026-01-31T12:34:56.000789+00:00; done"
    )
