"""What settings may ask for and this version cannot do: said at once, never ignored.

Why it exists: a maintainer who names a model and gets another, without a word, has been misled. So
whatever is set and has no effect yet stops the worker.
"""

from __future__ import annotations

from collections.abc import Iterator

from triage import extensions
from triage.models.factory import kinds, known_names
from triage.models.llm_setup import PROVIDERS, endpoint_of
from triage.models.prices import PricesError, load_prices
from triage.settings import Role, Settings, SettingsError


def check_supported(settings: Settings) -> None:
    """Refuse settings that would have no effect, or lack what they need.

    Raises:
        SettingsError: with one line a problem.
    """
    problems = [*_problems(settings)]
    if problems:
        raise SettingsError(*problems)


def _problems(settings: Settings) -> Iterator[str]:
    if settings.model.partition(":")[0] not in kinds():
        yield f"TRIAGE_MODEL: is not built in yet; set it to one of {known_names()}"
    provider = settings.model.partition(":")[0]
    asks = provider in PROVIDERS and Role.DECIDE in settings.roles
    if asks and not endpoint_of(settings, provider).is_usable:
        yield f"TRIAGE_MODEL_API_KEY: {provider}'s models need a key; set it to that of the API"
    try:
        load_prices(settings.model_prices)
    except PricesError as error:
        yield f"TRIAGE_MODEL_PRICES: {error}; correct it"
    if settings.tracker.startswith("x-") and settings.tracker not in extensions.trackers():
        yield "TRIAGE_TRACKER: names a tracker that no module of TRIAGE_EXTENSIONS adds"
    if settings.tracker == "github":
        # What speaks HTTP is slow to load.
        from triage.trackers.github_setup import problems  # noqa: PLC0415 - see above

        yield from problems(settings)
