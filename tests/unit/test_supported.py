"""What is set and has no effect yet stops the worker: it is never ignored."""

from __future__ import annotations

from pathlib import Path

import pytest

from triage.settings import Settings, SettingsError
from triage.supported import check_supported


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of its own, where nothing is set."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRIAGE_CONFIG", raising=False)


def test_the_defaults_are_supported() -> None:
    """Without any setting there is nothing to refuse."""
    check_supported(Settings())


@pytest.mark.parametrize(
    ("name", "values"), [("MODEL", {"model": "openai:gpt"}), ("TRACKER", {"tracker": "github"})]
)
def test_what_is_not_built_in_is_refused(name: str, values: dict[str, str]) -> None:
    """A model or tracker that is only planned is refused with what there is."""
    with pytest.raises(SettingsError, match=f"TRIAGE_{name}: is not built in yet"):
        check_supported(Settings.model_validate(values))
