"""Holds docs/models.md to the code: its table of faults, its bounds, and its example of prices."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.docs.pages import page
from tests.unit.models.llm_faults_plan import ROWS
from triage.contracts.model_faults import MAX_RETRY_AFTER_SECONDS, MODEL_FAULTS
from triage.models.llm import BYTES_PER_TOKEN, TEMPERATURE
from triage.models.llm_prompt import VERSION
from triage.models.llm_text import BODY_BYTES
from triage.models.llm_wire import MAX_ANSWER_BYTES
from triage.models.prices import load_prices
from triage.models.quotes import MIN_OUTPUT_TOKENS
from triage.settings import Settings
from triage.settings_sources import variable

PAGE: Final = page("docs/models.md")


def test_the_table_of_faults_is_the_code_s() -> None:
    """Each fault has its row, with what the loop does on it and what the tests see it for."""
    words = {True: "yes", False: "no"}
    seen: dict[str, list[str]] = {}
    for row in ROWS:
        seen.setdefault(row.fault.value, []).append(row.what)
    coded = [
        [
            fault.value,
            info.meaning,
            words[info.passes],
            words[info.is_answer],
            info.failure.value,
            info.next_step,
            ", ".join(seen[fault.value]),
        ]
        for fault, info in MODEL_FAULTS.items()
    ]
    headings = ("fault", "meaning", "asked again", "corrected", "ends as", "next step", "such as")
    assert coded == PAGE.table(*headings)


def test_the_table_of_settings_names_what_exists() -> None:
    """Whoever sets what the table names sets something."""
    known = {variable(name) for name in Settings.model_fields}
    named = [name for row in PAGE.table("setting", "what it is of") for name in row[0].split(", ")]
    assert set(named) <= known
    assert {name for name in known if "MODEL_" in name or name.endswith("IC_API_KEY")} <= set(named)


def test_the_bounds_are_the_code_s() -> None:
    """What the page gives as a number is so."""
    for words in (
        f"more than {BODY_BYTES // 1_000} kB",
        f"more than {MAX_ANSWER_BYTES // 1_048_576} MiB",
        f"at most {MAX_RETRY_AFTER_SECONDS // 60} minutes",
        f"down to {MIN_OUTPUT_TOKENS};",
        f"Temperature {TEMPERATURE:g}",
        f"prompts/{VERSION}.md",
    ):
        assert words in PAGE.text
    assert 2 == BYTES_PER_TOKEN, "the page says half"


def test_the_example_of_prices_is_one(tmp_path: Path) -> None:
    """The block that people copy from is read as a file of prices."""
    [block] = PAGE.blocks("toml")
    own = tmp_path / "prices.toml"
    own.write_text(block.body, encoding="utf-8")
    price = load_prices(own).known("openai", "llama3")
    assert price is not None
    assert (0, 0) == (price.input, price.output)
