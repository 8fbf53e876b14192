"""Who does something that is kept in the audit trail, and in which words."""

from __future__ import annotations

from triage.cli.errors import InputError
from triage.cli.reviewing import user_name
from triage.contracts.canonical import clean_text
from triage.contracts.logins import is_visible
from triage.storage.switches import MAX_WORDS_CHARS


def who(given: str | None) -> str:
    """Return the name that was given, or the user's.

    Raises:
        InputError: it is blank or too long, or the system does not know one.
    """
    if given is not None and not is_visible(given):
        raise InputError("the name is blank")
    return user_name() if given is None else checked_words("name", given)


def checked_words(what: str, text: str) -> str:
    """Return `text` in the form in which it is kept.

    Raises:
        InputError: it is blank or too long.
    """
    if not text.strip():
        raise InputError(f"the {what} is blank")
    if len(text) > MAX_WORDS_CHARS:
        raise InputError(f"the {what} has more than {MAX_WORDS_CHARS:,} characters")
    return clean_text(text)
