"""JSON values that property tests draw from, near to and far from what a contract expects."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from pydantic import JsonValue

PROPERTY = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A limit on time would fail on a busy machine for no fault of the code."""

ODD_TEXTS = ("", " ", "\t\r\n", "\x00", "\ud800", "\u2028", "é", "😀", "null", "0")
TEXTS: SearchStrategy[str] = st.one_of(st.text(max_size=12), st.sampled_from(ODD_TEXTS))
KEYS: SearchStrategy[str] = st.text(max_size=8)


def json_values(
    texts: SearchStrategy[str] = TEXTS, keys: SearchStrategy[str] = KEYS
) -> SearchStrategy[JsonValue]:
    """Draw any JSON value whose strings come from `texts` and its keys from `keys`."""
    scalars: SearchStrategy[JsonValue] = st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        texts,
    )
    return st.recursive(
        scalars,
        lambda inner: st.one_of(
            st.lists(inner, max_size=4), st.dictionaries(keys, inner, max_size=4)
        ),
        max_leaves=12,
    )


JSON_VALUES = json_values()


def text_lists(texts: SearchStrategy[str], max_size: int = 3) -> SearchStrategy[JsonValue]:
    """Draw lists of `texts` as JSON values."""
    items: SearchStrategy[JsonValue] = texts
    return st.lists(items, max_size=max_size)


@st.composite
def near_objects(
    draw: st.DrawFn,
    fields: Mapping[str, SearchStrategy[JsonValue]],
    junk: SearchStrategy[JsonValue] = JSON_VALUES,
    keys: SearchStrategy[str] = KEYS,
) -> dict[str, JsonValue]:
    """Draw an object with `fields`; sometimes a value is junk, or a field is missing or extra."""
    value = {
        name: draw(good if draw(st.integers(0, 11)) else junk) for name, good in fields.items()
    }
    edit = draw(st.sampled_from(("none", "none", "none", "drop", "add")))
    if edit == "drop" and value:
        del value[draw(st.sampled_from(sorted(value)))]
    if edit == "add":
        value[draw(keys)] = draw(junk)
    return value


def short(value: object) -> str:
    """Name a test case after its value, however long that is."""
    return ascii(value)[:40]
