"""What a call costs: a versioned table of prices, and one way to charge what no table knows.

Why it exists: a budget in money is worth nothing if an unknown model is free. So a model that no
table lists is charged at the highest price that is known, and a run says which table it was
charged by.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from triage.bounded import read_at_most
from triage.contracts.base import Name
from triage.contracts.canonical import digest_of_bytes
from triage.policy.toml_text import toml_table

PER: Final = 1_000_000
"""A price is for so many tokens."""

_DATED: Final = re.compile(r"-(?:\d{4}-\d{2}-\d{2}|\d{8})")
MAX_FILE_BYTES: Final = 1_048_576

Micros = Annotated[int, Field(ge=0, le=2**53)]


class PricesError(ValueError):
    """A file of prices cannot be used; the message quotes nothing of it."""


class Price(BaseModel):
    """What a million tokens cost, in millionths of a US dollar."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    input: Micros
    output: Micros

    def of(self, input_tokens: int, output_tokens: int) -> int:
        """Return the cost of a call in millionths, rounded up."""
        return -(-(input_tokens * self.input + output_tokens * self.output) // PER)


Models = Annotated[dict[Name, Price], Field(max_length=10_000)]


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    version: Name
    anthropic: Models = Field(default_factory=dict)
    openai: Models = Field(default_factory=dict)


@dataclass(frozen=True)
class Prices:
    """Tables of prices, those that come first in front.

    Attributes:
        name: versions and digests of all tables, for a run's record.
    """

    name: str
    _tables: tuple[Mapping[str, Mapping[str, Price]], ...]

    def known(self, provider: str, model: str) -> Price | None:
        """Return the price of a model that is listed, by itself or without the date in its name."""
        for table in self._tables:
            listed = table[provider]
            plain = _DATED.sub("", model)
            if (price := listed.get(model) or listed.get(plain)) is not None:
                return price
        return None

    def of(self, provider: str, model: str) -> Price:
        """Return the price of a model; one that nobody lists costs as much as any that is."""
        return self.known(provider, model) or self.dearest

    @property
    def dearest(self) -> Price:
        """The highest price for input and the highest for output."""
        every = [p for table in self._tables for listed in table.values() for p in listed.values()]
        return Price(input=max(p.input for p in every), output=max(p.output for p in every))


def load_prices(own: Path | None = None) -> Prices:
    """Return the built-in table, with a file's in front of it.

    Args:
        own: a file of the same form.

    Raises:
        PricesError: that file cannot be used.
    """
    builtin, body = _builtin()
    if own is None:
        return Prices(f"{builtin.version}@{_short(body)}", (_tables(builtin),))
    first, own_body = _read(own)
    name = f"{first.version}@{_short(own_body)},{builtin.version}@{_short(body)}"
    return Prices(name, (_tables(first), _tables(builtin)))


@cache
def _builtin() -> tuple[_File, bytes]:
    body = files("triage.models").joinpath("prices.toml").read_bytes()
    return _File.model_validate(toml_table(body.decode())), body


def _read(path: Path) -> tuple[_File, bytes]:
    try:
        body = read_at_most(path, MAX_FILE_BYTES)
        return _File.model_validate(toml_table(body.decode())), body
    except OSError as error:
        why = error.strerror or "unknown error"
        raise PricesError(f"the file of prices cannot be read ({why})") from None
    except (ValidationError, ValueError):
        message = "the file of prices is not one: it holds a version, and prices by provider"
        raise PricesError(message) from None


def _tables(file: _File) -> Mapping[str, Mapping[str, Price]]:
    return {"anthropic": file.anthropic, "openai": file.openai}


def _short(body: bytes) -> str:
    return digest_of_bytes(body).removeprefix("sha256:")[:12]
