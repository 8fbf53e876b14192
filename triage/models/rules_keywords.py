"""The words that the rules model weighs, and the names that it translates.

Data only, and part of the model's revision. A term is lower-case words with single spaces, as
`triage.models.rules_text` leaves them; apostrophes are gone (``doesnt``) and a final ``*``
matches any ending. Each term counts once in the title and once in the body.
"""

from __future__ import annotations

from typing import Final

BUG: Final = "bug"
DOCUMENTATION: Final = "documentation"
FEATURE: Final = "feature"


def _terms(text: str) -> tuple[str, ...]:
    return tuple(sorted(" ".join(term.split()) for term in text.split(",")))


TERMS: Final[dict[str, dict[int, tuple[str, ...]]]] = {
    BUG: {
        3: _terms("""
            actual behavior, actual behaviour, actual result, broken, bug, bugs, corrupt*, crash*,
            data loss, deadlock*, does not work, doesnt work, exception*, expected behavior,
            expected behaviour, expected result, infinite loop, internal server error,
            memory leak*, no longer works, not working, null pointer, nullpointerexception,
            off by one, panic, panics, race condition*, regression*, segfault*,
            segmentation fault, server error, stack trace, stacktrace, steps to reproduce,
            stopped working, stops working, traceback, typeerror, unhandled
        """),
        2: _terms("""
            404, 500, 502, 503, 504, blank page, cannot, cant, didnt work, disappear*, disconnect*,
            dont load, dont work, duplicated, error, errors,
            fail, failed, failing, fails, failure, flaky, flicker*, freeze*, freezing, frozen,
            glitch*, hang, hanging, hangs, ignored, ignores, incorrect*, infinite, keyerror, loses,
            lost, misaligned, never finishes, no longer, nothing happens, overflow*, overlap*,
            raises, reproduce*, silently, stuck, throws, timed out, timeout*, times out,
            truncated, twice, unable to, unexpected*, unresponsive, valueerror, wrong, wrongly
        """),
        1: _terms("""
            after the update, after upgrading, breaks, does not, doesnt, dropped, empty,
            instead of, invalid, isnt, nan, negative, problem, returns, should not, shouldnt,
            since the last release, slow*, undefined, warning*, wont
        """),
    },
    DOCUMENTATION: {
        3: _terms("""
            add docs, add documentation, broken link*, changelog, code sample, dead link*, docs,
            docstring*, document how, document the, documentation, faq, getting started, grammar,
            install guide, misspell*, not documented, quick start, quickstart, readme,
            release notes, setup guide, spelling, the guide, tutorial*, typo, typos, undocumented,
            user guide, wording
        """),
        2: _terms("""
            api reference, clarif*, example in, examples in, explain*, guide, guides,
            instructions, manual, misleading, outdated, paragraph*, sample code, sentence*,
            walkthrough
        """),
        1: _terms("""
            chapter, describe*, example, examples, link, links, mention*, misses a step,
            missing a step, page, section, table of contents, unclear
        """),
    },
    FEATURE: {
        3: _terms("""
            ability to, add a, add an, add option, add support, allow users, as a user i,
            enhancement*, feature, feature request, features, id like to be able,
            it would be great, it would be nice, it would be useful, it would help, new option,
            please add, please support, proposal, propose, requesting, support for,
            would be great, would be nice, would be useful, would love
        """),
        2: _terms("""
            add, allow, be great, can we have, configurable, could we have, customi*, dark mode,
            extend, id like, id love, idea, implement, improvement*, introduce,
            it should be possible, let users, make it possible, nice to have, option to,
            provide a, provide an, suggestion, wed like, wed love, wish, wishlist
        """),
        1: _terms("""
            be nicer, consider, could you, enable, export, improve, integrat*, more flexible, new,
            prefer, support, use case, want
        """),
    },
}

TITLE_FACTOR: Final = 2

TITLE_STARTS: Final[dict[str, tuple[str, ...]]] = {
    BUG: _terms("bug, crash, fix, regression"),
    DOCUMENTATION: _terms("doc, docs, document, documentation, typo"),
    FEATURE: _terms("""
        add, allow, enhancement, feat, feature, implement, improve, introduce, proposal, provide,
        request, rfc, suggestion, support
    """),
}
TITLE_START_WEIGHT: Final = 3
"""A title that begins with one of these says what it is: ``[Bug] …``, ``docs: …``, ``Add …``."""

LOG_TERMS: Final = _terms("""
    error*, exception*, fatal, panic, segmentation fault, stack trace, traceback
""")
LOG_WEIGHT: Final = 2
"""A code block with one of `LOG_TERMS` is a pasted log, which counts as one sign of a bug."""

DOC_PATH_WEIGHT: Final = 3
ONLY_DOC_PATHS_WEIGHT: Final = 6
CODE_PATH_WEIGHT: Final = 1

MIN_SCORE: Final = 4
MIN_MARGIN: Final = 3
MARGIN_DIVISOR: Final = 4
"""The best class needs `MIN_SCORE`, and a lead of `MIN_MARGIN` or of its score over this."""

SECURITY_NAMES: Final = _terms("""
    0day, arbitrary code, arbitrary command*, arbitrary file*, arbitrary sql, backdoor*,
    buffer overflow, clickjack*, code execution, code injection, command injection,
    credential stuffing, cross site request, cross site script*, csrf, cve, cvss, cwe,
    denial of service, directory traversal, etc passwd, exfiltrat*, exploit*, ghsa, hackerone,
    header injection, heap overflow, html injection, idor, insecure deserialization,
    ldap injection, malware, man in the middle, mitm, open redirect, out of bounds read,
    out of bounds write, owasp, path traversal, penetration test*, pentest*, phishing,
    privilege escalation, prototype pollution, ransomware, rce, redos, remote code,
    replay attack*, responsible disclosure, rootkit, sandbox escape, session fixation,
    session hijack*, shell injection, side channel, sql injection, sqli, ssrf,
    supply chain attack*, template injection, timing attack*, untrusted deserialization,
    use after free, vuln, vulnerab*, vulns, xss, xxe, zero day, zip slip
""")
"""Names of attacks and of the trade: they raise wherever they stand, in code blocks as well."""

SECURITY_HINTS: Final = _terms("""
    access control*, attacker*, auth bypass, authentication bypass, authorisation, authorization,
    brute force, bypass*, certificate validation, certificate verification, compromis*,
    confidential, disclosure, escape the sandbox, escalation of, forged, forgery, hacked, hacker*,
    hijack*, impersonat*, insecure*, malicious*, not authorized, permission check*,
    permissions check*, personal data, pii, privilege*, sanitis*, sanitiz*, security,
    sensitive data, sensitive information, signature verification, someone elses, spoof*,
    tampered, tampering, unauthenticated, unauthorised, unauthorized, unencrypted, unescaped,
    unsafe deserialization, weak cipher*, weak hash*, without a login, without a password,
    without authenticat*, without authoriz*, without being logged in, without logging in,
    without login, without permission*, without signing in, world readable, world writable
""")
"""Words that often mean security: they raise in prose, but not in a pasted log or a template."""

NOT_SECURITY: Final = _terms("401 unauthorised, 401 unauthorized, security md, unauthorized 401")
"""Status lines that would raise every report of a failed call, and the file that says how to."""

SECRETS: Final = _terms("""
    api keys?, cookies?, credentials?, credit cards?, e ?mail addresses, passwd, passwords?,
    private keys?, secrets?, session ids?, tokens?
""")
EXPOSURES: Final = _terms(r"""
    clear ?text, disclos\w*, expos\w*, forg(?:e|ed|ing), guess\w*, hard ?coded,
    in (?:the )?logs?, in (?:the )?url, leak\w*, never expires?, plain ?text, predict\w*,
    printed, public(?:ly)?, readable, reused, steal\w*, still valid, stolen, visible
""")
"""A secret and an exposure a few words apart, in either order, raise like a hint."""

OTHERS: Final = _terms("another, any, different, other")
PEOPLE: Final = _terms("customers?, members?, peoples?, persons?, tenants?, users?")
BELONGINGS: Final = _terms("""
    accounts?, data, documents?, files?, invoices?, messages?, orders?, private, profiles?,
    records?
""")
"""``another users files`` and ``files of other users`` raise like a hint."""

ENGLISH: Final = frozenset(
    _terms("""
    a, after, and, are, but, by, can, does, doesnt, for, from, has, have, how, i, if, is, it, its,
    not, of, on, should, that, the, there, this, to, we, when, which, with, would, you
""")
)
OTHER_LANGUAGES: Final = frozenset(
    _terms("""
    aber, auch, auf, beim, das, dass, der, een, ein, eine, fehler, het, ist, kann, keine, mit,
    nicht, niet, und, voor, werden, wird, wordt,
    avec, cela, dans, est, les, lorsque, ne, pas, quand, sont, une,
    al, che, como, con, cuando, del, el, errore, falla, funciona, las, los, nao, nella, para, por,
    quando, uma, una,
    bir, dan, icin, jest, nie, przy, sie, tidak, yang
""")
)
MIN_WORDS_TO_JUDGE_LANGUAGE: Final = 12
"""Common words: a text with more of the second kind, or a long one with none of the first, is
not judged by English keywords."""

DOC_SUFFIXES: Final = (".adoc", ".md", ".mdx", ".rst", ".txt")
DOC_FOLDERS: Final = frozenset(_terms("doc, docs, documentation, guides, man, manual"))

CLASS_LABELS: Final[dict[str, frozenset[str]]] = {
    BUG: frozenset({"bug", "kind/bug", "type/bug", "type: bug", "type:bug"}),
    DOCUMENTATION: frozenset(
        {"docs", "documentation", "kind/documentation", "type/docs", "type: docs", "type:docs"}
    ),
    FEATURE: frozenset(
        {"enhancement", "feature", "kind/feature", "type/feature", "type: feature", "type:feature"}
    ),
}
COMPONENT_PREFIXES: Final = ("area/", "area:", "component/", "component:")
