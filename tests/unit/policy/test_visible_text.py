"""What a reader sees of a body: no more than that, whatever is written to look like it."""

from __future__ import annotations

import time
from html.parser import HTMLParser

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tests.unit.contracts.strategies import PROPERTY
from triage.policy.named_paths import NamedPaths
from triage.policy.visible_text import MAX_CHARS, MAX_LINES, UNSEEN, visible_text

SEEN = [
    "<!--> HERE",
    "<!---> HERE",
    "<!-- a --> HERE",
    "<!-- a --!> HERE",
    "<!-- a\n\nb --> HERE",
    "`<!--` HERE",
    "```\n<!--\n```\nHERE",
    "    <!--\n\nHERE",
    "`<script>` HERE",
    "`HERE`",
    "```sh\nHERE\n```",
    "~~~\nHERE",
    "    HERE",
    "> HERE",
    "- [ ] HERE",
    "# HERE",
    "~~HERE~~",
    "[HERE](https://example.org)",
    "[HERE][a]\n\n[a]: https://example.org",
    "HERE\\\nb",
    "<details><summary>x</summary>\n\nHERE\n\n</details>",
    "<details>\nHERE\n</details>",
    "<p align='center'>HERE</p>",
    "<kbd>HERE</kbd>",
    "List<String> HERE",
    "a < b, HERE > c",
    "It costs $5: HERE",
    "| a |\n|---|\n| HERE |",
    "&amp; HERE &lt;!-- x",
]
UNSEEN_IN = [
    "[//]: # (HERE)",
    "[//]: <> (HERE)",
    "[a]: https://example.org 'HERE'",
    "[a]: HERE\n\nb",
    "[HERE]: https://example.org",
    "[b](https://example.org 'HERE')",
    "[b](HERE)",
    "[b][HERE]\n\n[HERE]: x",
    "![HERE](x.png)",
    "![b](HERE)",
    "<a title='HERE'>x</a>",
    "<img alt=HERE src=x>",
    "<div title='HERE'>\nx\n</div>",
    "<div title='\n\nHERE\n\n'>",
    "<!-- HERE -->",
    "a <!-- HERE --> b",
    "<!-- a\n\nHERE\n\n-->",
    "a <!-- HERE",
    "<!--\n\nHERE",
    "> <!--\n\nHERE",
    "<!-- > HERE -->",
    "<?php HERE ?>",
    "a <?x?> HERE",
    "<!DOCTYPE HERE>",
    "<![CDATA[ HERE ]]>",
    "<script>HERE</script>",
    "<style>\nHERE\n</style>",
    "a <template>HERE</template>",
    "<template>\n\nHERE\n\n</template>",
    "<p hidden>HERE</p>",
    "<span style='display:none'>HERE</span>",
    "<SPAN\nSTYLE=x>HERE</SPAN>",
    "<a\xa0b='>' title='HERE'>",
    "``` HERE\nx\n```",
    "```mermaid\n%% HERE\n```",
    "$$\n% HERE\n$$",
    "$`% HERE`$",
    "| a |\n|---|\n| b | HERE |",
    "[^1]: HERE",
    "[^1]: x\n\n    HERE",
]
PIECES = [
    *("src/a.py", " src/a.py ", "<!--", "-->", "<a title='", "'>", "</a>", "<b>"),
    *("[a]: ", "[", "](", ")", "`", "```", "\n", "\n\n", " ", "    ", "> ", "- ", "x", "\\", "'"),
    *('"', "(", "<", ">", "<p hidden>", "<p>", "</p>", "<?", "?>", "&lt;", "|", "*", "!", "$"),
]


class Shown(HTMLParser):
    """Collects the text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text = ""
        self.feed(page)

    def handle_data(self, data: str) -> None:
        """Take a piece of text."""
        self.text += data


@pytest.mark.parametrize("body", SEEN)
def test_what_a_reader_sees_is_visible(body: str) -> None:
    """Code, quotes, cells and the text of links are; a comment ends where a browser ends it."""
    assert "HERE" in visible_text(body)


@pytest.mark.parametrize("body", UNSEEN_IN)
def test_what_a_reader_may_not_see_is_not_visible(body: str) -> None:
    """Neither what Markdown and HTML take for their own, nor what they might hide."""
    assert "HERE" not in visible_text(body)


@PROPERTY
@given(st.text(alphabet="ab/.py <>!-\n\"'[]():`", max_size=40))
def test_what_stands_in_a_comment_is_never_visible(hidden: str) -> None:
    """No text in a comment that is closed once, after it, is visible."""
    hidden = hidden.replace("--", "").replace(">", "").strip("-")
    assert "HERE" not in visible_text(f"a\n\n<!-- {hidden} HERE {hidden} -->\n\nb")


@PROPERTY
@given(st.lists(st.sampled_from(PIECES), max_size=12))
def test_a_named_path_is_shown_by_a_browser(pieces: list[str]) -> None:
    """Whatever is put together, a path of the body is named only if the page's text has it."""
    body = "".join(pieces)
    # Python's own parser of pages does not end such a comment where a browser does.
    assume(not any(end in body for end in ("<!-->", "<!--->", "--!>")))
    if "src/a.py" in NamedPaths.of("t", body, []):
        page = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(body)
        assert "src/a.py" in Shown(page).text


def test_marks_of_what_is_shown_remain() -> None:
    """Code keeps its edges, pictures and unknown tags stand for something, and blocks are apart."""
    assert f"see `a`{UNSEEN}{UNSEEN}b" in visible_text("see `a`![x](y)<z>b")
    assert ["a", "b", "c"] == visible_text("a\n- b\n\n<p>c</p>").split()


@pytest.mark.parametrize(
    "body",
    [
        "HERE " * (MAX_CHARS // 5) + "HERE",
        "HERE\n" * MAX_LINES,
        "HERE [" * 9_000,
        "|" * 100 + "\nHERE" * 400,
    ],
)
def test_what_is_too_much_to_parse_is_hidden(body: str) -> None:
    """Workflow code waits for the parser, so a body that may take it long is not given to it."""
    assert visible_text(body) == ""


@pytest.mark.parametrize(
    "body",
    [
        "> " * 30 + "a\n" * (MAX_LINES - 2),
        "|a" * 7 + "\n" + "|-" * 7 + "\n" + "|x\n" * (MAX_LINES - 20),
        "[a" * 970 + "*" * (MAX_CHARS - 2_000),
        "**x_" * (MAX_CHARS // 4),
        "***a** " * (MAX_CHARS // 7),
        "<div b='" * (MAX_CHARS // 8),
    ],
)
def test_the_dearest_text_that_is_parsed_is_cheap(body: str) -> None:
    """None comes near to the two seconds that a workflow task may compute."""
    began = time.thread_time()
    visible_text(body)
    assert time.thread_time() - began < 1.5
