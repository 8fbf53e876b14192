"""What makes an issue one for a security review, whatever a model says of it.

Why it exists: a report of a hole that is styled as a typo must not pass as one, and a model can be
talked into anything. So a short list of words decides beside it, and can only raise: an issue that
has one of them is reviewed by people, and nothing that stands beside it takes that back. Pure.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable
from typing import Final

SECURITY_ROUTE: Final = "security_review"
"""The route that nothing may lower an issue from, so every set of routes has it."""
SECURITY_REASON: Final = "its text has a word of the security list"

_MAX_ROUNDS: Final = 3
_NUMBERED: Final = re.compile(
    r" (?:cve [0-9]{4} [0-9]{4,}|cwe [0-9]{1,5}|ghsa(?: [a-z0-9]{4}){3}) "
)
_INVISIBLE: Final = frozenset({"Cf", "Mn", "Cc"})


def _terms(text: str) -> tuple[str, ...]:
    return tuple(" ".join(term.split()) for term in text.split(","))


TERMS: Final = _terms("""
    0day, account takeover, arbitrary code execution, auth bypass, authentication bypass,
    authorization bypass, backdoor, buffer overflow, code injection, command injection,
    credential leak, cross site request forgery, cross site scripting, csrf, data breach,
    directory traversal, exploitable, exposed credentials, hardcoded credentials,
    hardcoded password, heap overflow, insecure deserialization, leaked credentials,
    leaked secrets, out of bounds read, out of bounds write, path traversal, privilege escalation,
    prototype pollution, rce, redos, remote code execution, responsible disclosure,
    sandbox escape, security bug, security flaw, security hole, security issue,
    security vulnerability, server side request forgery, session fixation, session hijacking,
    sql injection, sqli, ssrf, timing attack, use after free, vulnerabilities, vulnerability, xss,
    xxe, zero day
""")
"""Names of attacks, holes and the trade. A short list that everybody can read: what it misses is
for the model and for `policy.security_terms`."""


def is_security(title: str, body: str, more: Iterable[str] = ()) -> bool:
    """Whether an issue's text has a word of the list, or one of `more`.

    Letter case, punctuation, invisible characters and how characters are encoded make no
    difference, nor does it matter where the word stands: code and comments count, too.
    """
    text = f" {_plain(title)} {_plain(body)} "
    if _NUMBERED.search(text):
        return True
    wanted = (*TERMS, *filter(None, map(_plain, more)))
    return any(f" {term} " in text for term in wanted)


def _plain(text: str) -> str:
    """Return lower-case words with single blanks between them."""
    for _ in range(_MAX_ROUNDS):
        if (once := html.unescape(text)) == text:
            break
        text = once
    folded = unicodedata.normalize("NFKD", text).casefold()
    visible = "".join(c for c in folded if c.isalnum() or _is_gap(c))
    return " ".join(re.sub(r"[^\w]|_", " ", visible).split())


def _is_gap(character: str) -> bool:
    """Whether it parts words: a line break does, and what cannot be seen does not."""
    return character.isspace() or unicodedata.category(character) not in _INVISIBLE
