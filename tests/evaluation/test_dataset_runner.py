"""Running data sets as real workflows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.evaluation.cases import REQUEST, read_owner
from tests.unit.models.learned_samples import classifier
from triage.evaluation import dataset_runner
from triage.evaluation.configuration import Configuration, ConfigurationError
from triage.evaluation.dataset import Dataset, parse_dataset, read_dataset
from triage.evaluation.dataset_report import passes, to_json
from triage.evaluation.dataset_runner import evaluate_on
from triage.evaluation.judging import Behaviour, Grade, Judged
from triage.evaluation.stack import Stack
from triage.evaluation.summary import Report, Summary
from triage.evaluation.thresholds import check, read_thresholds
from triage.models.factory import UnknownModel
from triage.policy.rules_file import RulesFileError
from triage.resources import fixtures_path
from triage.settings import Settings
from triage.storage.documents import SHARED, DocumentKind, DocumentStore
from triage.storage.engine import Store
from triage.storage.migrate import upgrade

REPORT = Path(__file__).parents[2] / "docs" / "reports" / "evaluation.json"
RULES = Configuration()


def _dataset(*lines: object) -> Dataset:
    data = "\n".join(json.dumps(line) for line in lines).encode()
    return Dataset("test.jsonl", "sha256:0", parse_dataset(data))


async def _judged(stack: Stack, *lines: object) -> tuple[Judged, ...]:
    return await evaluate_on(stack.client, _dataset(*lines), RULES, stack.settings)


async def test_a_model_is_asked_or_a_script_is_played(stack: Stack) -> None:
    """A line with decisions plays them, another one asks the model, and both are graded."""
    told: list[tuple[int, int]] = []
    lines = (
        {"request": REQUEST, "expected": {"route": "bug", "owner": "backend-team"}},
        {"request": REQUEST, "expected": {"failure": "model_invalid_output"}, "decisions": [1]},
        {"request": REQUEST, "expected": {"route": "bug"}, "decisions": [read_owner()]},
    )
    judged = await evaluate_on(
        stack.client,
        _dataset(*lines),
        RULES,
        stack.settings,
        lambda done, total: told.append((done, total)),
    )
    assert [Grade.RIGHT, Grade.RIGHT, Grade.FAILED] == [
        one.grades[Behaviour.CASE] for one in judged
    ]
    assert [(1, 3), (2, 3), (3, 3)] == told
    assert judged[0].ran is not None
    assert judged[0].ran.state.provenance.model.startswith("rules")


async def test_a_run_that_does_not_end_is_lost_and_no_hang(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody polls the queue, so the run gives no response, and the report says so."""
    monkeypatch.setattr(dataset_runner, "CASE_SECONDS", 1.0)
    deserted = stack.settings.model_copy(update={"task_queue": "nobody-polls-this"})
    dataset = _dataset({"request": REQUEST, "expected": {"route": "bug"}})
    [one] = await evaluate_on(stack.client, dataset, RULES, deserted)
    assert (None, "it did not end within 1 s") == (one.ran, one.lost)


async def test_the_report_that_is_checked_in_is_what_runs_give(stack: Stack) -> None:
    """The rules model's grades on our own set are those of docs/reports, case by case."""
    dataset = read_dataset(fixtures_path("evaluation", "issues.jsonl"))
    judged = await evaluate_on(stack.client, dataset, RULES, stack.settings)
    report = Report(dataset, (Summary(RULES.name, judged),))
    bounds = read_thresholds(fixtures_path("evaluation", "thresholds.toml"))
    checked = check(bounds, report.main)
    assert passes(report, checked)
    kept: Any = json.loads(REPORT.read_bytes())
    made: Any = to_json(report, checked, "")
    for document in (kept, made):
        # The versions are those that it was made with.
        document.pop("made_with")
        document["configurations"][0].pop("provenance")
    assert kept == made, "`make evaluate` makes it anew"


@pytest.mark.parametrize(
    ("configuration", "error"),
    [
        (Configuration("nope"), UnknownModel),
        (Configuration("openai:some"), UnknownModel),
        (Configuration("recorded:sha256:" + "0" * 64), ConfigurationError),
        (Configuration(rules=Path("/nowhere/rules.toml")), ConfigurationError),
    ],
)
async def test_what_cannot_be_run_is_told_before_anything_is_started(
    settings: Settings, configuration: Configuration, error: type[Exception]
) -> None:
    """A model without a key, or rules that are not there, are the user's mistake."""
    with pytest.raises(error):
        await configuration.check(settings)


async def test_bad_rules_are_told_before_anything_is_started(
    settings: Settings, tmp_path: Path
) -> None:
    """So are rules that hold a mistake."""
    file = tmp_path / "rules.toml"
    file.write_text("[policy]\nroutes = 1\n", encoding="utf-8")
    with pytest.raises(RulesFileError):
        await RULES.other(str(file)).check(settings)


def test_a_comparison_changes_the_model_or_the_rules() -> None:
    """What ends in .toml is a rules file; reports name it without its folder."""
    assert "anthropic:x" == RULES.other("anthropic:x").name
    assert "rules under strict.toml" == RULES.other("some/strict.toml").name


async def _stored(settings: Settings, body: bytes) -> str:
    """Put weights into a user's database, as `triage weights store` does."""
    settings.home.mkdir(parents=True, exist_ok=True)
    await upgrade(settings.database_url)
    store = await Store.open(settings.database_url)
    try:
        return await DocumentStore(store).put(SHARED, DocumentKind.WEIGHTS, body)
    finally:
        await store.close()


async def test_learned_weights_are_lent_by_the_workers_database(tmp_path: Path) -> None:
    """A model that was learned is evaluated like any other; one that is not stored is told."""
    home = Settings(home=tmp_path)
    digest = await _stored(home, classifier().weights.body())
    learned = Configuration(f"learned:{digest}")
    await learned.check(home)
    assert {digest: classifier().weights.body()} == await learned.lent(home)
    assert {} == await RULES.lent(home)
    with pytest.raises(UnknownModel, match="no weights are stored"):
        await Configuration("learned:sha256:" + "0" * 64).check(home)
    rules = tmp_path / "rules.toml"
    rules.write_text(f'[policy]\nsecond_opinion = "sha256:{"0" * 64}"\n', encoding="utf-8")
    with pytest.raises(ConfigurationError, match="second opinion are not stored"):
        await RULES.other(str(rules)).check(home)
    nowhere = Settings(home=tmp_path / "nowhere")
    with pytest.raises(UnknownModel, match="no weights are stored"):
        await learned.check(nowhere)
    assert not nowhere.home.exists()
