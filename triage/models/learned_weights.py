"""What a classifier was taught, as a JSON document that people can read and nothing executes.

Why it exists: weights travel between machines and decide what people see first. So they are plain
numbers beside plain text, held to a shape and a size before anybody computes with them.
"""

from __future__ import annotations

from itertools import chain
from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints, ValidationError, model_validator

from triage.contracts.base import Contract, ContractError, explain
from triage.contracts.canonical import canonical_json, digest_of_bytes, parse_json
from triage.models.learned_text import Block

MAX_WEIGHTS_BYTES: Final = 16_777_216
MAX_FEATURES: Final = 200_000
MAX_FEATURE_CHARS: Final = 100
MAX_LABELS: Final = 50
MAX_LABEL_CHARS: Final = 100
MAX_GROUPS: Final = 200
MAX_GROUP_CHARS: Final = 200
UNIT: Final = 1_000
"""Weights are whole numbers of thousandths: short to write, and equal on every machine."""

MAX_WEIGHT: Final = 1_000 * UNIT

LabelName = Annotated[str, StringConstraints(min_length=1, max_length=MAX_LABEL_CHARS)]
GroupName = Annotated[str, StringConstraints(min_length=1, max_length=MAX_GROUP_CHARS)]
Feature = Annotated[str, StringConstraints(min_length=1, max_length=MAX_FEATURE_CHARS)]
Weight = Annotated[int, Field(ge=-MAX_WEIGHT, le=MAX_WEIGHT)]
PerLabel = Annotated[tuple[Weight, ...], Field(max_length=MAX_LABELS)]
Features = Annotated[dict[Feature, PerLabel], Field(max_length=MAX_FEATURES)]
Blocks = Annotated[dict[Block, Features], Field(max_length=len(Block))]


class Layer(Contract):
    """Weights that are added up: one number for each label, in the order of the labels.

    Attributes:
        intercepts: what every issue starts with.
        features: by block and name, as `triage.models.learned_text` reads them.
    """

    intercepts: PerLabel
    features: Blocks


class Weights(Contract):
    """A complete classifier.

    Attributes:
        format: the meaning of this document.
        text: how an issue is read; weights mean nothing to another reading.
        labels: what an issue may be.
        temperature: what sums are divided by, so that chances are as often right as they say.
        threshold: an answer that is less likely is none; None answers nothing.
        target_accuracy: the part of the answers that the threshold was chosen to have right.
        shared: for every issue.
        groups: added for the issues of one group, by its name.
        alone: in place of `shared`, for issues of no group that is here; None leaves it to that.
        issues: how many issues it was taught by.
        data_digest: which ones.
    """

    format: Literal["bounded-triage-weights-1"]
    text: Literal[1]
    labels: Annotated[tuple[LabelName, ...], Field(min_length=2, max_length=MAX_LABELS)]
    temperature: Annotated[float, Field(ge=0.01, le=100, allow_inf_nan=False)]
    threshold: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None
    target_accuracy: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
    shared: Layer
    groups: Annotated[dict[GroupName, Layer], Field(max_length=MAX_GROUPS)] = Field(
        default_factory=dict
    )
    alone: Layer | None = None
    issues: Annotated[int, Field(ge=1)]
    data_digest: Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]

    @model_validator(mode="after")
    def _one_number_a_label(self) -> Weights:
        if len(set(self.labels)) != len(self.labels):
            raise ValueError("labels must differ")
        alone = () if self.alone is None else (self.alone,)
        for layer in (self.shared, *alone, *self.groups.values()):
            rows = chain([layer.intercepts], *(block.values() for block in layer.features.values()))
            lengths = {len(row) for row in rows}
            if lengths != {len(self.labels)}:
                raise ValueError("must have one number for each label")
        return self

    def body(self) -> bytes:
        """Return these weights in the form in which they are written, stored and digested."""
        without = {"alone"} if self.alone is None else None
        return canonical_json(self.model_dump(mode="json", exclude=without))

    def digest(self) -> str:
        """Return the digest of these weights: that of their stored form."""
        return digest_of_bytes(self.body())


def read_weights(data: bytes, *, to_author: bool = False) -> Weights:
    """Read weights strictly; `to_author` is that of `explain`.

    Raises:
        ContractError: they are too large, no JSON, or of another shape; nothing is quoted.
    """
    if len(data) > MAX_WEIGHTS_BYTES:
        raise ContractError(f"weights: more than {MAX_WEIGHTS_BYTES:,} bytes")
    try:
        return Weights.model_validate_json(data)
    except ValidationError as error:
        told = explain(error, "weights", Weights, Layer, to_author=to_author)
        raise ContractError(told) from None


def read_written(data: bytes) -> Weights:
    """Read weights out of a file, which people look at and may have changed.

    Raises:
        ContractError: as `read_weights`, or a key stands there twice, so that what was looked at
            may not be what counts.
    """
    weights = read_weights(data, to_author=True)
    parse_json(data, "weights")
    return weights
