"""What secrets and personal data look like, and where they stand in a text.

Each expression begins with fixed text or is bounded, and the rest walks the text once: that is
what keeps the search linear for any input. No word boundaries are asked for where a secret may
be glued to other letters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A piece of text that is a secret of some kind."""

    start: int
    end: int
    kind: str


@dataclass(frozen=True, slots=True)
class _Pattern:
    """What a kind looks like; `group` is replaced when `holds` accepts it."""

    kind: str
    expression: re.Pattern[str]
    group: int = 0
    holds: Callable[[str], bool] = lambda _: True

    def spans(self, text: str) -> Iterator[Span]:
        for match in self.expression.finditer(text):
            if self.holds(match[self.group]):
                yield Span(*match.span(self.group), self.kind)


def _has_digit(text: str) -> bool:
    return any(char.isdigit() for char in text)


def _looks_random(text: str) -> bool:
    return _has_digit(text) and any(char.isupper() for char in text)


def _is_card(text: str) -> bool:
    """Whether the digits have a card's length and first digit, and pass the Luhn check."""
    digits = [int(char) for char in text if char.isdigit()]
    if len(digits) not in {14, 15, 16, 19} or digits[0] not in range(2, 7):
        return False
    doubled = [2 * digit - 9 * (digit > 4) for digit in digits[-2::-2]]  # noqa: PLR2004 - Luhn
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _is_address(text: str) -> bool:
    """Whether this is an IPv4 address and not a version: one octet has three digits."""
    octets = text.split(".")
    return all(int(octet) < 256 for octet in octets) and max(map(len, octets)) == 3  # noqa: PLR2004 - octets


_KEY = "[A-Za-z0-9_]"
_TOKEN = "[A-Za-z0-9_-]"  # noqa: S105 - an alphabet
_SECRET_PATTERNS: Final = (
    _Pattern("github_fine_grained", re.compile(f"github_pat_{_KEY}{{40,}}")),
    _Pattern("github_pat_classic", re.compile(f"ghp_{_KEY}{{30,}}")),
    _Pattern("github_oauth", re.compile(f"gho_{_KEY}{{30,}}")),
    _Pattern("github_app_user", re.compile(f"ghu_{_KEY}{{30,}}")),
    _Pattern("github_app_server", re.compile(f"ghs_{_KEY}{{30,}}")),
    _Pattern("github_refresh", re.compile(f"ghr_{_KEY}{{30,}}")),
    _Pattern("gitlab", re.compile(f"glpat-{_TOKEN}{{20,}}")),
    _Pattern("anthropic", re.compile(f"sk-ant-{_TOKEN}{{20,}}")),
    _Pattern("openai", re.compile(f"(?<![a-z])sk-{_TOKEN}{{20,}}"), holds=_looks_random),
    _Pattern("stripe", re.compile("[rs]k_(?:live|test)_[A-Za-z0-9]{16,}")),
    _Pattern("stripe", re.compile("whsec_[A-Za-z0-9+/=]{24,}")),
    _Pattern("slack", re.compile("xox[abeoprs]-[A-Za-z0-9-]{10,}")),
    _Pattern("slack", re.compile(f"xapp-{_TOKEN}{{20,}}")),
    _Pattern("slack", re.compile(r"hooks\.slack\.com/[a-z]{1,20}/([A-Za-z0-9/_-]{20,})"), 1),
    _Pattern("google", re.compile(f"AIza{_TOKEN}{{35}}")),
    _Pattern("google", re.compile(rf"(?:ya29\.|GOCSPX-){_TOKEN}{{20,}}")),
    _Pattern("aws_key_id", re.compile("(?:AKIA|ASIA)[0-9A-Z]{16}")),
    _Pattern(
        "aws_secret",
        re.compile(
            r"(?i:aws[a-z_. -]{0,20}secret[a-z_. -]{0,20})[\"']?\s{0,3}[:=]\s{0,3}[\"']?"
            r"([A-Za-z0-9/+]{40})"
        ),
        1,
    ),
    _Pattern("npm", re.compile("npm_[A-Za-z0-9]{36}")),
    _Pattern("pypi", re.compile(f"pypi-AgE{_TOKEN}{{50,}}")),
    _Pattern(
        "auth_header",
        re.compile(
            r"(?i)authorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?"
            r"((?:apikey|basic|bearer|digest|negotiate|token)\s{1,3}[^\s\"',;]{6,})"
        ),
        1,
    ),
    _Pattern(
        "auth_header", re.compile(r"(?i)bearer\s{1,3}([A-Za-z0-9._~+/=-]{16,})"), 1, _has_digit
    ),
    _Pattern(
        "cookie",
        re.compile(r"(?i)cookie[\"']?\s{0,3}:\s{0,3}[\"']?([^\s=;\"']{1,64}=[^\r\n\"']{1,4096})"),
        1,
    ),
)
_CARD = r"\d{4}([ -]?)\d{4}\1\d{4}\1\d{2,7}|3\d{3}[ -]?\d{6}[ -]?\d{4,5}"
_PERSONAL_PATTERNS: Final = (
    _Pattern(
        "card_luhn", re.compile(rf"(?<![0-9A-Za-z-])(?:{_CARD})(?![0-9A-Za-z-])"), 0, _is_card
    ),
    _Pattern(
        "ssn",
        re.compile(r"(?<![\w-])(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\w-])"),
    ),
    _Pattern(
        "phone_e164",
        re.compile(r"(?<![\w+])\+(?:1[ .-]?\(?\d{3}\)?[ .-]?\d{3}[ .-]?\d{4}|[1-9]\d{9,14})(?!\w)"),
    ),
    _Pattern("ipv4", re.compile(r"(?<![\d.vV])\d{1,3}(?:\.\d{1,3}){3}(?!\d|\.\d)"), 0, _is_address),
)
_BEGIN_KEY = re.compile("-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_END_KEY = re.compile("-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_LINE = re.compile(r"[A-Za-z0-9+/=]{8,}[\r\n]*")
_SEGMENTS = re.compile(f"{_TOKEN}++(?:\\.{_TOKEN}++)*+")
_LOGIN = re.compile(
    r"([A-Za-z][A-Za-z0-9+.-]{0,20})://([^\s/@:]{0,128}:[^\s/@]{1,256}(?:@[^\s/@]{1,256}){0,3})@"
)
_AT_DOMAIN = re.compile(r"@((?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24})(?![A-Za-z0-9-])")
_LOCAL = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._%+-")
_MAX_LOCAL = 64
_SHORTEST: Final = 7
"""No credential is shorter: ``a://:p@`` is the shortest that has one."""
_MIN_SIGNATURE = 10
_HTTP = frozenset({"http", "https"})


def secrets(text: str) -> Iterator[Span]:
    """Yield credentials, in no order; they may overlap."""
    if len(text) < _SHORTEST:
        return
    for pattern in _SECRET_PATTERNS:
        yield from pattern.spans(text)
    yield from _private_keys(text)
    yield from _web_tokens(text)
    yield from _logins(text)


def personal(text: str) -> Iterator[Span]:
    """Yield what identifies a person or a machine, in no order."""
    for pattern in _PERSONAL_PATTERNS:
        yield from pattern.spans(text)
    yield from _mail_addresses(text)


def _private_keys(text: str) -> Iterator[Span]:
    """Yield keys from their first to their last line; a key without an end runs to the end."""
    first = _END_KEY.search(text)
    position = 0
    if first and not _BEGIN_KEY.search(text, 0, first.start()):
        # The text begins inside a key, as a piece of a longer one does.
        yield Span(_start_of_key_lines(text, first.start()), first.end(), "pem")
        position = first.end()
    while begin := _BEGIN_KEY.search(text, position):
        end = _END_KEY.search(text, begin.end())
        position = end.end() if end else len(text)
        yield Span(begin.start(), position, "pem")


def _start_of_key_lines(text: str, end: int) -> int:
    start = end
    while start > 0:
        line_start = text.rfind("\n", 0, start - 1) + 1
        if not _KEY_LINE.fullmatch(text, line_start, start):
            break
        start = line_start
    return start


def _web_tokens(text: str) -> Iterator[Span]:
    """Yield JSON web tokens: two encoded objects and a signature, joined by dots."""
    for run in _SEGMENTS.finditer(text):
        if "eyJ" in run[0] and "." in run[0]:
            yield from _web_tokens_in(run[0], run.start())


def _web_tokens_in(run: str, offset: int) -> Iterator[Span]:
    parts = run.split(".")
    for index in range(len(parts) - 2):
        header, claims, signature = parts[index : index + 3]
        start = header.find("eyJ")
        if start >= 0 and claims.startswith("eyJ") and len(signature) >= _MIN_SIGNATURE:
            end = offset + len(header) + len(claims) + len(signature) + 2
            yield Span(offset + start, end, "jwt")
        offset += len(header) + 1


def _logins(text: str) -> Iterator[Span]:
    """Yield user and password of an address; its scheme and host stay."""
    for match in _LOGIN.finditer(text):
        scheme = match[1].lower()
        dsn = "pg_dsn" if scheme.startswith("postgres") else "dsn"
        yield Span(*match.span(2), "basic_url" if scheme in _HTTP else dsn)


def _mail_addresses(text: str) -> Iterator[Span]:
    """Yield mail addresses, found from the ``@`` backwards; ``git@host`` is not one."""
    for match in _AT_DOMAIN.finditer(text):
        start = match.start()
        while start > 0 and match.start() - start < _MAX_LOCAL and text[start - 1] in _LOCAL:
            start -= 1
        if start < match.start() and text[start : match.start()] != "git":
            yield Span(start, match.end(), "email")
