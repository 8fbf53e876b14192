"""A small classifier of known numbers."""

from __future__ import annotations

from typing import Final

from triage.models.classifier import Classifier
from triage.models.learned_text import Block
from triage.models.learned_weights import Layer, Weights

LABELS: Final = ("bug", "enhancement", "question", "security")
SURE: Final = {"crash": 0, "add": 1, "how": 2, "hole": 3}
UNSURE: Final = {"odd": 0, "wish": 1, "why": 2, "leak": 3}


def classifier(threshold: float | None = 0.8) -> Classifier:
    """Return one that knows a label by a word in the title: some are sure signs, some are not.

    In the group ``acme/api``, a crash is asked for.
    """
    rows = {word: _row(at, 9_000) for word, at in SURE.items()}
    rows |= {word: _row(at, 500) for word, at in UNSURE.items()}
    return Classifier(
        Weights(
            format="bounded-triage-weights-1",
            text=1,
            labels=LABELS,
            temperature=1.0,
            threshold=threshold,
            target_accuracy=0.9,
            shared=Layer(intercepts=(0, 0, 0, 0), features={Block.TITLE: rows}),
            groups={
                "acme/api": Layer(
                    intercepts=(0, 0, 0, 0), features={Block.TITLE: {"crash": _row(1, 20_000)}}
                )
            },
            issues=4,
            data_digest=f"sha256:{'0' * 64}",
        )
    )


def _row(at: int, number: int) -> tuple[int, ...]:
    return tuple(number * (at == place) for place in range(len(LABELS)))
