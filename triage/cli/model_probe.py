"""Checks whether the providers of the models that are named here answer, and accept the key.

None is asked a question, which would cost something: the list of its models costs nothing.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Final

from triage.cli.findings import Finding, Level
from triage.cli.model_check import NAME, fallbacks, is_open, key_advice
from triage.models.llm_protocols import SPOKEN
from triage.models.llm_setup import PROVIDERS, Endpoint, LlmSetup
from triage.models.prices import PricesError
from triage.settings import Role, Settings

REACH: Final = "check TRIAGE_MODEL_BASE_URL and the way there"
_NOT_THERE: Final = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED})


async def check(settings: Settings) -> list[Finding]:
    """Return a row for each provider that can be asked; never a key."""
    if Role.DECIDE not in settings.roles:
        return []
    try:
        setup = LlmSetup.of(settings)
    except PricesError:
        # The check of the models says so.
        return []
    named = [name.partition(":")[0] for name in (settings.model, *fallbacks(settings))]
    usable = [kind for kind in PROVIDERS if kind in named and setup.endpoint(kind).is_usable]
    asked = (_asked(settings, kind, setup.endpoint(kind)) for kind in usable)
    return list(await asyncio.gather(*asked))


async def _asked(settings: Settings, kind: str, endpoint: Endpoint) -> Finding:
    # It loads what speaks HTTP, which is slow.
    from triage.models.llm_probe import (  # noqa: PLC0415 - see above
        UnansweredError,
        place_of,
        status_of,
    )

    place = f"{kind} at {place_of(SPOKEN[kind], endpoint)}"
    if is_open(endpoint):
        return Finding(NAME, Level.OK, f"{place}: not asked, as its key would be read on the way")
    try:
        status = await status_of(SPOKEN[kind], endpoint)
    except UnansweredError as error:
        return Finding(NAME, Level.FAIL, f"{place}: {error}", REACH, is_service=True)
    level, what, advice = _meaning(status, endpoint, key_advice(settings, kind))
    return Finding(NAME, level, f"{place}: {what}", advice)


def _meaning(status: int, endpoint: Endpoint, key: str) -> tuple[Level, str, str]:
    """Return what a status means, and what to do about it."""
    if HTTPStatus(200) <= status < HTTPStatus.MULTIPLE_CHOICES:
        return Level.OK, f"answers{', and accepts the key' if endpoint.key else ''}", ""
    if status == HTTPStatus.UNAUTHORIZED:
        return Level.FAIL, f"{'does not accept the' if endpoint.key else 'wants a'} key", key
    if status == HTTPStatus.FORBIDDEN:
        return Level.WARN, "answers 403: the key may not be used, or not to list the models", key
    if status in _NOT_THERE:
        return Level.WARN, f"answers {status}: there is no list of models", REACH
    if status < HTTPStatus.BAD_REQUEST:
        return Level.WARN, f"answers {status}: it leads elsewhere, which is not followed", REACH
    return Level.WARN, f"answers {status}", "look again later; a run asks again, too"
