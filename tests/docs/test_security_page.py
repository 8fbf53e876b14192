"""Holds what the pages say of comments and of the security list to the code."""

from __future__ import annotations

import re
from typing import Final

from tests.docs.pages import ROOT, page
from triage.contracts.approval import RefusalCode
from triage.ingest.companions import POLL_PERIOD_SECONDS
from triage.ingest.polling import MAX_PAGES
from triage.policy import security
from triage.storage.commands import MAX_AGE
from triage.trackers.github_reads import PAGE_SIZE
from triage.web.comments import MAX_COMMENT_CHARS, order_in

WEBHOOKS: Final = page("docs/webhooks.md")
RECORD: Final = page("docs/adr/0016-comments.md")


def test_the_order_that_is_shown_is_one() -> None:
    """Whoever copies the line has given an order."""
    [block] = WEBHOOKS.blocks("text")
    assert order_in(block.body) is not None


def test_the_bounds_are_the_code_s() -> None:
    """An hour, five minutes, 1,000 issues, 8,192 characters."""
    assert (3_600, 300) == (MAX_AGE.total_seconds(), POLL_PERIOD_SECONDS)
    assert f"At most {MAX_PAGES * PAGE_SIZE:,} issues a look" in WEBHOOKS.text
    assert f"{MAX_COMMENT_CHARS:,} characters" in RECORD.text


def test_the_codes_of_refused_answers_are_the_code_s() -> None:
    """Each code that an answer is refused with stands on the page."""
    source = (ROOT / "triage" / "ingest" / "answers.py").read_text(encoding="utf-8")
    own = set(re.findall(r'NotCountedError\("(\w+)"\)', source))
    assert {"early", "old", "no_run", "no_rules", "no_word", "other_issue"} <= own
    told = {*own, *(code.value for code in RefusalCode if code is not RefusalCode.MALFORMED)}
    assert [] == [code for code in sorted(told) if f"`{code}`" not in WEBHOOKS.text]


def test_the_list_is_where_the_page_says() -> None:
    """The page names the file of the words."""
    place = f"{security.__name__.replace('.', '/')}.py"
    assert f"`{place}`" in page("docs/policy.md").text
