"""Checks that the models which the settings and the rules name are set up, and what they cost.

Nothing is sent anywhere; `model_probe` asks whether their providers answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from triage.cli.findings import Finding, Level
from triage.models.factory import KINDS, kinds, known_names
from triage.models.llm_setup import PROVIDERS, Endpoint, LlmSetup, main_provider
from triage.models.prices import PricesError
from triage.policy.rules import Rules
from triage.policy.rules_file import RulesFileError
from triage.policy.tools import BUILTIN_TOOLS
from triage.rules_place import RulesPlace
from triage.settings import Role, Settings

NAME: Final = "model"
_HERE: Final = frozenset({"localhost", "127.0.0.1", "::1"})


def check(settings: Settings) -> Iterator[Finding]:
    """Yield what there is to say about the model, and about those that are asked after it."""
    if Role.DECIDE not in settings.roles:
        yield Finding(NAME, Level.OK, "none is asked: TRIAGE_ROLES lets workers write alone")
        return
    try:
        setup = LlmSetup.of(settings)
    except PricesError as error:
        advice = "correct the file that TRIAGE_MODEL_PRICES names; no worker starts"
        yield Finding(NAME, Level.FAIL, str(error), advice)
        return
    yield from _model(settings, setup, settings.model, "")
    for name in fallbacks(settings):
        yield from _model(settings, setup, name, ", asked next")


def fallbacks(settings: Settings) -> tuple[str, ...]:
    """Return the models that the rules name to be asked next; none where they cannot be read."""
    rules = _rules(settings)
    return () if rules is None else rules.fallback_models


def second_opinion(settings: Settings) -> str | None:
    """Return the digest of the weights that the rules name as a second opinion."""
    rules = _rules(settings)
    return None if rules is None else rules.second_opinion


def _rules(settings: Settings) -> Rules | None:
    try:
        return RulesPlace.of(settings).read(BUILTIN_TOOLS).rules
    except RulesFileError:
        # The check of the rules says what is wrong with them.
        return None


def _model(settings: Settings, setup: LlmSetup, name: str, what: str) -> Iterator[Finding]:
    kind, _, model = name.partition(":")
    if kind not in kinds():
        advice = f"set TRIAGE_MODEL to one of: {known_names()}"
        yield Finding(NAME, Level.FAIL, f"{kind} is not built in{what}", advice)
    elif kind not in KINDS:
        yield Finding(NAME, Level.OK, f"{name}{what}, of an extension; it is not asked")
    elif kind not in PROVIDERS:
        yield Finding(NAME, Level.OK, f"{name}{what}")
    else:
        yield from _behind_api(settings, setup, name, model, what)


def _behind_api(
    settings: Settings, setup: LlmSetup, name: str, model: str, what: str
) -> Iterator[Finding]:
    kind = name.partition(":")[0]
    endpoint = setup.endpoint(kind)
    if not endpoint.is_usable:
        yield Finding(
            NAME, Level.FAIL, f"{name}{what}: there is no key for it", key_advice(settings, kind)
        )
        return
    if is_open(endpoint):
        advice = "use https, unless nobody else can listen on the way"
        yield Finding(NAME, Level.WARN, f"{name}{what}: its key travels unencrypted", advice)
    if setup.prices.known(kind, model) is None:
        detail = f"{name}{what}: not in the table of prices, so it is charged at the highest price"
        advice = "say what it costs, nothing included, in a file that TRIAGE_MODEL_PRICES names"
        yield Finding(NAME, Level.WARN, detail, advice)
    else:
        yield Finding(NAME, Level.OK, f"{name}{what}, prices {setup.prices.name}")


def key_advice(settings: Settings, kind: str) -> str:
    """Say which setting a provider's key is."""
    variable = "MODEL" if kind == main_provider(settings) else kind.upper()
    return f"set TRIAGE_{variable}_API_KEY, or TRIAGE_{variable}_API_KEY_FILE"


def is_open(endpoint: Endpoint) -> bool:
    """Return whether others on the way could read the key."""
    address = urlsplit(endpoint.base_url or "")
    return bool(endpoint.key) and address.scheme == "http" and address.hostname not in _HERE
