"""What `triage doctor` says of models, before a run finds out."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from triage.cli import model_check
from triage.cli.findings import Finding
from triage.settings import Settings

KEY: Final = "sk-made-up-0123456789"
LISTED: Final = {"model": "openai:gpt-5-mini", "model_api_key": KEY}

CASES: dict[str, tuple[dict[str, str], list[tuple[str, str]]]] = {
    "rules": ({"model": "rules"}, [("ok", "rules")]),
    "a key": (LISTED, [("ok", "openai:gpt-5-mini, prices 2026-")]),
    "no key": (
        {"model": "anthropic:claude-sonnet-5"},
        [("fail", "anthropic:claude-sonnet-5: there is no key for it")],
    ),
    "no worker that asks": (
        {"model": "anthropic:claude-sonnet-5", "roles": "write"},
        [("ok", "none is asked")],
    ),
    "a key for another": (
        {"model": "openai:gpt-5-mini", "anthropic_api_key": KEY},
        [("fail", "openai:gpt-5-mini: there is no key for it")],
    ),
    "a price that nobody knows": (
        LISTED | {"model": "openai:own"},
        [("warn", "openai:own: not in the table of prices")],
    ),
    "a server on this machine": (
        LISTED | {"model_base_url": "http://localhost:8080/v1"},
        [("ok", "openai:gpt-5-mini, prices 2026-")],
    ),
    "a key in the open": (
        LISTED | {"model_base_url": "http://llm.example/v1"},
        [
            ("warn", "openai:gpt-5-mini: its key travels unencrypted"),
            ("ok", "openai:gpt-5-mini, prices 2026-"),
        ],
    ),
}


def _check(given: dict[str, str]) -> list[Finding]:
    return list(model_check.check(Settings.model_validate(given)))


@pytest.mark.parametrize("name", CASES)
def test_a_model_is_checked_without_asking_it(name: str) -> None:
    """Its key, its price and the way to it are looked at, and the key is not shown."""
    given, expected = CASES[name]
    found = _check(given)
    assert expected == [
        (finding.level.value, finding.detail[: len(detail)])
        for finding, (_, detail) in zip(found, expected, strict=True)
    ]
    assert KEY not in repr(found)


def test_models_that_are_asked_next_are_checked_too(tmp_path: Path) -> None:
    """A fallback without a key is told by the setting that it needs."""
    rules = tmp_path / "rules.toml"
    rules.write_text('[policy]\nfallback_models = ["anthropic:claude-sonnet-5", "rules"]\n')
    found = _check({**LISTED, "policy": str(rules)})
    assert ["ok", "fail", "ok"] == [finding.level.value for finding in found]
    assert "TRIAGE_ANTHROPIC_API_KEY_FILE" in found[1].advice


def test_a_file_of_prices_that_is_none_is_told(tmp_path: Path) -> None:
    """It stops a worker, so it fails here."""
    prices = tmp_path / "prices.toml"
    prices.write_text("nothing = 1")
    [finding] = _check({**LISTED, "model_prices": str(prices)})
    assert "fail" == finding.level.value
