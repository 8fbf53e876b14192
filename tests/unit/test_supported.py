"""What is set and has no effect yet stops the worker: it is never ignored."""

from __future__ import annotations

from pathlib import Path

import pytest

from triage.settings import Role, Settings, SettingsError
from triage.supported import check_supported


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of its own, where nothing is set."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRIAGE_CONFIG", raising=False)


def test_the_defaults_are_supported() -> None:
    """Without any setting there is nothing to refuse."""
    check_supported(Settings())


def test_a_model_without_its_key_is_refused() -> None:
    """A worker that decides needs it; one that only writes asks no model, and gets no key."""
    with pytest.raises(SettingsError, match="TRIAGE_MODEL_API_KEY: openai's models need a key"):
        check_supported(Settings(model="openai:gpt"))
    check_supported(Settings(model="openai:gpt", roles=(Role.WRITE,)))
    check_supported(Settings(model="openai:gpt", model_base_url="http://localhost:8080/v1"))


def test_a_file_of_prices_that_is_none_is_refused(tmp_path: Path) -> None:
    """No call is charged by a guess."""
    prices = tmp_path / "prices.toml"
    prices.write_text("version = 1")
    with pytest.raises(SettingsError, match="TRIAGE_MODEL_PRICES: the file of prices is not one"):
        check_supported(Settings(model_prices=prices))


GITHUB: dict[str, tuple[dict[str, str], str]] = {
    "nothing": ({}, "TRIAGE_GITHUB_TOKEN_FILE: is not set"),
    "no key": ({"github_app_id": "7"}, "TRIAGE_GITHUB_PRIVATE_KEY_FILE: is not set"),
    "no id": ({"github_private_key": "x"}, "TRIAGE_GITHUB_APP_ID: is not set"),
    "no right": ({"github_app_id": "7", "github_private_key": "x"}, "is no RSA key in PEM form"),
}


@pytest.mark.parametrize("case", GITHUB)
def test_github_without_its_credentials_is_refused(case: str) -> None:
    """A worker that could not ask GitHub anything does not start, and says what to set."""
    values, message = GITHUB[case]
    with pytest.raises(SettingsError, match=message):
        check_supported(Settings.model_validate({"tracker": "github", **values}))


def test_github_with_a_token_is_supported() -> None:
    """One token is enough, for a worker that decides alone as well."""
    for roles in ("decide", "write", "decide,write"):
        values = {"tracker": "github", "github_token": "ghp_x", "roles": roles}
        check_supported(Settings.model_validate(values))
