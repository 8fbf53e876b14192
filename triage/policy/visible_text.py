"""What a reader sees of an issue's body, which is Markdown with HTML in it.

Why it exists: a path that no reader sees is not one that the issue names. The body is parsed as
Markdown, so that what is shown cannot be told from outside: code is shown to the letter; comments,
attributes, addresses and titles of links, definitions and alternatives of images are not. What
might hide something in a way that is not followed here hides it: erring makes a person decide.

Pure, and a given text always yields the same. The text is untrusted: no more of it is parsed than
takes a fraction of a second, since workflow code waits for it.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

MAX_CHARS: Final = 65_536
MAX_LINES: Final = 4_000
MAX_CELLS: Final = 30_000
MAX_LOOKED_FOR: Final = 64_000_000
"""A body beyond any of these is not parsed, and nothing of it is visible: its length, its lines,
the cells of a table of all its lines, its length for each bracket whose other one is looked for."""

UNSEEN: Final = "\ufffc"
"""Stands for what is shown but is no text, or might be anything: it bounds nothing."""
_HIDES: Final = "\0"
"""Stands where all that follows may be hidden; no parsed text holds it."""

_PARSER: Final = MarkdownIt("commonmark").enable(["table", "strikethrough"])
# The first text puts its rules together, which several threads may not do at once, and loads the
# coding of such an address, which a workflow may not do.
_PARSER.parse("[a](http://\xe4.example)")

_FOOTNOTE: Final = re.compile(r"\[\^[^\]\n]*\]:")
_DRAWN: Final = frozenset({"mermaid", "math", "geojson", "topojson", "stl"})
"""Languages of code blocks that are shown as a picture, which need not hold their text."""

_MARKUP: Final = re.compile(r"<(?=[A-Za-z/!?])")
_REMARK: Final = re.compile(r"<!--(?:-?>|.*?--!?>)", re.DOTALL)
_GAP: Final = r"[ \t\n\f\r]"
_TAG: Final = re.compile(
    rf"</?(?P<name>[A-Za-z][A-Za-z0-9-]*+)"
    rf"(?P<rest>(?:{_GAP}++[A-Za-z_:][A-Za-z0-9_.:-]*+"
    rf"(?:{_GAP}*+={_GAP}*+(?:[^ \t\n\f\r\"'=<>`]++|'[^']*+'|\"[^\"]*+\"))?+)*+){_GAP}*+/?>"
)
_HIDING_ATTRIBUTE: Final = re.compile(
    rf"{_GAP}(?:hidden|style|popover|color|bgcolor|background)\b", re.IGNORECASE
)
_HIDING: Final = re.compile(
    "applet|audio|bdo|canvas|datalist|dialog|embed|frame|frameset|head|iframe|math|meter|noembed|"
    "noframes|noscript|object|optgroup|option|plaintext|progress|rp|script|select|style|svg|"
    "template|textarea|title|video|xmp"
)
_CODE: Final = re.compile("code|kbd|samp|tt")
_JOINING: Final = re.compile(
    "a|abbr|b|big|cite|del|dfn|em|font|i|ins|mark|q|s|small|span|strike|strong|sub|sup|u|var"
)
_PARTING: Final = re.compile(
    "address|article|aside|blockquote|br|caption|center|dd|details|div|dl|dt|figcaption|figure|"
    "footer|h[1-6]|header|hr|li|main|nav|ol|p|pre|section|summary|table|tbody|td|tfoot|th|thead|"
    "tr|ul"
)


def visible_text(body: str) -> str:
    """Return what a reader sees of a body, with a line's end between its blocks.

    Code spans stand between backticks. A comment that is not closed hides the rest, as does markup
    that is not known to show what it holds; a body that is too much to parse is hidden as a whole,
    and so is one with footnotes.
    """
    if _is_too_much(body) or _FOOTNOTE.search(body):
        return ""
    shown = "".join(_block(token) for token in _PARSER.parse(body))
    return shown.partition(_HIDES)[0]


def _is_too_much(body: str) -> bool:
    """Whether parsing could take long: the parser's worst cases need many of these signs."""
    lines = re.split("[\r\n]", body)
    return (
        len(body) > MAX_CHARS
        or len(lines) > MAX_LINES
        or len(lines) * max(line.count("|") for line in lines) > MAX_CELLS
        or len(body) * body.count("[") > MAX_LOOKED_FOR
    )


def _block(token: Token) -> str:
    match token.type:
        case "inline":
            return _inline(token.children or ())
        case "code_block":
            return f"\n{token.content}\n"
        case "fence":
            drawn = token.info.strip().partition(" ")[0].lower() in _DRAWN
            return "\n" if drawn else f"\n{token.content}\n"
        case "html_block":
            return f"\n{_html(token.content)}\n"
        case _:
            return "\n"


def _inline(children: Sequence[Token]) -> str:
    """Return what is seen of a paragraph: nothing, if a part of it may be a formula."""
    text = "".join(map(_span, children))
    written = sum(child.content.count("$") for child in children if child.type == "text")
    if written > 1:
        return _HIDES if _HIDES in text else UNSEEN
    return text


def _span(token: Token) -> str:
    match token.type:
        case "text":
            return token.content.replace("<!--", _HIDES)
        case "code_inline":
            return f"`{token.content}`"
        case "softbreak" | "hardbreak":
            return "\n"
        case "html_inline":
            return _html(token.content)
        case _:
            return "" if token.nesting else UNSEEN


def _html(markup: str) -> str:
    return "".join(_html_pieces(markup))


def _html_pieces(markup: str) -> Iterator[str]:
    """Yield what is seen of raw HTML, and where something in it may hide the rest."""
    at = 0
    while found := _MARKUP.search(markup, at):
        yield html.unescape(markup[at : found.start()])
        part = _REMARK.match(markup, found.start()) or _TAG.match(markup, found.start())
        if part is None:
            yield _HIDES
            return
        yield "" if part.re is _REMARK else _tag(part)
        at = part.end()
    yield html.unescape(markup[at:])


def _tag(tag: re.Match[str]) -> str:
    name = tag["name"].lower()
    if _HIDING.fullmatch(name) or _HIDING_ATTRIBUTE.search(tag["rest"]):
        return _HIDES
    if _CODE.fullmatch(name):
        return "`"
    if _PARTING.fullmatch(name):
        return "\n"
    return "" if _JOINING.fullmatch(name) else UNSEEN
