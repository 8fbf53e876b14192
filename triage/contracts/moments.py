"""Times that others write into what they send: in one form, and safe to reckon with.

Why it exists: what reads times loosely takes numbers for them, and a time at the end of the
calendar is one only until somebody brings it to UTC or takes two minutes off.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Final

from pydantic import BeforeValidator

EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
LATEST: Final = datetime(9998, 12, 31, tzinfo=UTC)
_FORM: Final = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)", re.ASCII
)


def read_moment(value: object) -> datetime:
    """Return a time in UTC, between `EARLIEST` and `LATEST`.

    Args:
        value: a date and a time with its zone, in ISO 8601, or an aware datetime.

    Raises:
        ValueError: it is anything else; nothing of it is quoted.
    """
    if isinstance(value, str) and _FORM.fullmatch(value):
        value = datetime.fromisoformat(value)
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise ValueError("must be a date and a time with a zone")
    if not EARLIEST <= value <= LATEST:
        raise ValueError("must be a time in the calendar that we reckon with")
    return value.astimezone(UTC)


Moment = Annotated[datetime, BeforeValidator(read_moment)]
