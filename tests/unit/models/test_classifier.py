"""Promises of the classifier: plain sums of given numbers, and weights that are held to a shape."""

from __future__ import annotations

import json
import math
import time
from typing import Any

import pytest

from tests.unit.models.learned_samples import classifier
from triage.contracts.base import ContractError
from triage.models import learned_weights
from triage.models.classifier import Classifier
from triage.models.learned_text import BODY_CHARS, Block, read_issue
from triage.models.learned_weights import Weights, read_weights, read_written

HOSTILE = [
    "a" * 1_048_000,
    "```\n" * 250_000,
    "a/" * 500_000,
    "x://" * 250_000,
    "'a" * 500_000,
    "\ufdfa" * 1_000_000,
    "\n" * 1_000_000,
    "\x1b]8;;" * 200_000,
]
PLAIN: dict[str, Any] = {
    "format": "bounded-triage-weights-1",
    "text": 1,
    "labels": ["bug", "feature"],
    "temperature": 1.0,
    "threshold": 0.7,
    "target_accuracy": 0.9,
    "shared": {
        "intercepts": [0, 0],
        "features": {"title": {"crash": [2000, 0], "add": [0, 1000], "page": [0, 0]}},
    },
    "groups": {"acme/api": {"intercepts": [0, 500], "features": {"title": {"crash": [0, 4000]}}}},
    "issues": 2,
    "data_digest": f"sha256:{'0' * 64}",
}


def _read(**changed: object) -> Weights:
    return read_weights(json.dumps({**PLAIN, **changed}).encode())


def test_a_guess_is_a_sum_of_what_is_known() -> None:
    """A block's numbers are shared out by the root of how many of its features are known."""
    guess = Classifier(_read()).guess("Crash page whatever", "")
    likely = 1 / (1 + math.exp(-2 / math.sqrt(2)))
    assert "bug" == guess.label
    assert pytest.approx(likely) == guess.sure
    assert pytest.approx(1) == sum(guess.chances)


def test_a_group_adds_its_own_and_an_unknown_one_nothing() -> None:
    """The same title is something else in a repository that taught so."""
    classifier = Classifier(_read())
    assert "feature" == classifier.guess("Crash", "", "acme/api").label
    assert classifier.guess("Crash", "") == classifier.guess("Crash", "", "acme/other")


def test_an_issue_of_no_known_group_has_weights_of_its_own() -> None:
    """Where there are such, they stand in place of what groups share, and of nothing else."""
    weights = classifier().weights
    other = weights.shared.model_copy(
        update={"features": {Block.TITLE: {"crash": (0, 0, 9_000, 0)}}}
    )
    found = Classifier(weights.model_copy(update={"alone": other}))
    assert "question" == found.guess("crash", "").label
    assert "question" == found.guess("crash", "", "acme/web").label
    assert "enhancement" == found.guess("crash", "", "acme/api").label


def test_weights_without_them_are_written_as_before() -> None:
    """A digest that somebody has named stays that of the same weights."""
    weights = classifier().weights
    assert b"alone" not in weights.body()
    other = weights.model_copy(update={"alone": weights.shared})
    assert weights.digest() != other.digest()
    assert other == read_weights(other.body())


def test_temperature_changes_how_sure_it_is_and_not_of_what() -> None:
    """Calibration moves no answer."""
    guesses = [Classifier(_read(temperature=t)).guess("crash", "") for t in (0.5, 1.0, 4.0)]
    assert {"bug"} == {guess.label for guess in guesses}
    assert guesses == sorted(guesses, key=lambda guess: -guess.sure)


def test_it_is_sure_from_the_threshold_on() -> None:
    """At the threshold it answers; without one it never does."""
    guess = Classifier(_read()).guess("crash", "")
    assert Classifier(_read(threshold=guess.sure)).is_sure(guess)
    assert not Classifier(_read(threshold=guess.sure + 1e-9)).is_sure(guess)
    assert not Classifier(_read(threshold=None)).is_sure(guess)


def test_what_is_known_of_nothing_is_said_by_the_intercepts() -> None:
    """An empty issue has an answer, too: the first label where all are alike."""
    guess = Classifier(_read()).guess("", "")
    assert ("bug", (0.5, 0.5)) == (guess.label, guess.chances)


def test_an_issue_is_scored_in_under_a_millisecond() -> None:
    """A common issue, all of it known to weights of three labels and of its group, by CPU."""
    words = [f"{'abcdefghij'[n % 10]}{'klmnopqrst'[n // 10 % 10]}word" for n in range(0, 1_300, 7)]
    lines = (" ".join(words[n : n + 8]) for n in range(0, len(words), 8))
    title, body = "Export fails with an error", "\n".join(lines)
    known = {
        block.value: {name: [1, 2, 3] for name in names if name}
        for block, names in read_issue(title, body).items()
    }
    layer = {"intercepts": [0, 0, 0], "features": known}
    labels = ["bug", "feature", "question"]
    found = Classifier(_read(labels=labels, shared=layer, groups={"acme/api": layer}))
    took = []
    for _ in range(30):
        begun = time.thread_time()
        found.guess(title, body, "acme/api")
        took.append(time.thread_time() - begun)
    assert min(took) < 0.001


@pytest.mark.parametrize("body", HOSTILE, ids=range(len(HOSTILE)))
def test_no_text_is_expensive(body: str) -> None:
    """A megabyte of anything is guessed in well under a tenth of a second of processor time."""
    took = []
    for _ in range(3):
        begun = time.thread_time()
        Classifier(_read()).guess(body[:4_000], body)
        took.append(time.thread_time() - begun)
    assert min(took) < 0.1


def test_an_issue_is_read_by_words_parts_and_lines() -> None:
    """Code, links, numbers and hashes are what they are, not what they say; lines come in pairs."""
    found = read_issue(
        "Crash on v1.2?",
        "### Issue type\n\nBug\n```py\nsecret code\n```\nsee x://y/a.png deadbeef1 it\u2019s",
    )
    assert {"crash", "on", "v1", "?"} & found[Block.TITLE] == {"crash", "on", "?"}
    assert {"issue type", "bug =code", "=image", "=hash", "it's", "=code see"} <= found[Block.BODY]
    assert not any("secret" in name for names in found.values() for name in names)
    assert {"issue type", "issue type|bug", "bug|=code"} <= found[Block.LINE]
    assert {" bug", "bug "} <= found[Block.PART]
    assert {"starts crash", "ends ?", "=code 1", "=image 1"} <= found[Block.FORM]
    assert read_issue("", "x" * BODY_CHARS)[Block.BODY] == read_issue("", "x" * 9_999)[Block.BODY]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"labels": ["bug"]}, "labels: must have at least 2 entries"),
        ({"labels": ["bug", "bug"]}, "labels must differ"),
        ({"labels": ["bug", "feature", "question"]}, "one number for each label"),
        ({"text": 2}, "text: must be 1"),
        ({"format": "pickle"}, "format"),
        ({"temperature": 0}, "temperature"),
        ({"threshold": 1.5}, "threshold: must be at most 1"),
        ({"surplus": 1}, "unexpected field"),
        ({"shared": {"intercepts": [0, 0], "features": {"none": {}}}}, "shared.features"),
        ({"shared": {"intercepts": [0], "features": {}}}, "one number for each label"),
        ({"shared": {"intercepts": [0, 1e400], "features": {}}}, "intercepts"),
        ({"shared": {"intercepts": [0, 10**9], "features": {}}}, "must be at most"),
        ({"data_digest": "x"}, "data_digest"),
    ],
)
def test_weights_of_another_shape_are_refused(changed: dict[str, object], said: str) -> None:
    """Nothing is computed with what is not exactly weights, and nothing of it is quoted."""
    with pytest.raises(ContractError) as caught:
        _read(**changed)
    assert said in str(caught.value)
    assert "SECRET" not in str(caught.value)


def test_what_is_no_json_or_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also before anything is read of it."""
    for data in (b"", b"\x80\x04K\x01.", b"[" * 100_000, b"null"):
        with pytest.raises(ContractError):
            read_weights(data)
    monkeypatch.setattr(learned_weights, "MAX_WEIGHTS_BYTES", 10)
    with pytest.raises(ContractError, match="more than 10 bytes"):
        read_weights(b" " * 11)


def test_a_field_that_is_none_is_named_to_whoever_wrote_the_file() -> None:
    """What a worker reads out of its database may end in a history, and names none."""
    data = _read().body().replace(b'"threshold"', b'"thresholt"')
    with pytest.raises(ContractError) as told:
        read_written(data)
    assert 'weights."thresholt": unexpected field (did you mean threshold?)' in str(told.value)
    with pytest.raises(ContractError, match=r"weights\.\*: unexpected field"):
        read_weights(data)


def test_a_file_in_which_a_key_stands_twice_is_refused() -> None:
    """Who looks at the file sees the first, and the last would be what counts."""
    body = _read().body()
    assert _read() == read_written(body)
    twice = body.replace(b'"temperature":', b'"temperature":0.01,"temperature":', 1)
    with pytest.raises(ContractError, match="the same key twice"):
        read_written(twice)


def test_weights_have_one_written_form() -> None:
    """Writing and reading again gives the same digest, which names them everywhere."""
    weights = _read()
    assert weights.digest() == read_weights(weights.body()).digest()
