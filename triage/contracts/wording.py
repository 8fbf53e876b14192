"""What is wrong with a value, in words of our own that quote none of it.

Why it exists: a validator's wording is for whoever wrote the model. A person who wrote a file or
set a variable is told what the value must be.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_WORDS: Final[dict[str, str]] = {
    "missing": "is missing",
    "extra_forbidden": "unexpected field",
    "string_type": "must be text",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": "does not have the form that it must have",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_parsing_size": "is too large a number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "too_short": "must have at least {min_length} entries",
    "too_long": "must have at most {max_length} entries",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "none_required": "must be null",
    "path_type": "must be a path",
    "union_tag_not_found": "must say which kind it is",
    "union_tag_invalid": "is of no known kind; known are {expected_tags}",
    "datetime_parsing": "must be a time",
    "datetime_from_date_parsing": "must be a time",
    "timezone_aware": "must be a time with its zone",
}
_OTHERWISE: Final = "is not what it must be"


def in_words(problem: Mapping[str, Any]) -> str:
    """Say what is wrong, to stand after a field's name: ``must be a whole number``.

    Args:
        problem: one of a `ValidationError`'s, with its context; nothing of the input is taken.
    """
    context: Mapping[str, Any] = problem.get("ctx", {})
    if problem["type"] == "value_error":
        # Raised by a validator of ours, in words of ours.
        return str(context["error"])
    if context.get("min_length") == 1:
        return "must not be empty"
    words = _WORDS.get(problem["type"], _OTHERWISE)
    return words.format_map({name: _shown(value) for name, value in context.items()})


def _shown(bound: object) -> str:
    """Write a bound for people: large numbers grouped, and names without their quotes."""
    if isinstance(bound, int | float):
        return f"{bound:,}"
    return str(bound).replace("'", "")
