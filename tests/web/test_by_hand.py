"""The lines by which the page says that deliveries can be tried without GitHub."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from pathlib import Path
from typing import Final

import pytest

from tests.docs.pages import page
from tests.web.hooks import SECRET, Hook

NEEDED: Final = ("bash", "curl", "openssl")


def _lines() -> str:
    """The lines that make a delivery, sign it and send it, as they are typed."""
    [block] = [one.body for one in page("docs/webhooks.md").blocks("console") if "curl" in one.body]
    typed = block.partition("$ triage list")[0]
    kept = [line for line in typed.splitlines() if not line.startswith('{"outcome"')]
    return "\n".join(re.sub(r"^\$ ", "", line) for line in kept)


@pytest.mark.skipif(not all(map(shutil.which, NEEDED)), reason="curl or openssl is not here")
async def test_the_page_s_lines_send_a_delivery_that_is_accepted(
    light_hook: Hook, tmp_path: Path
) -> None:
    """Whoever types them has signed as GitHub does, and is told of a new request."""
    (tmp_path / "trial-secret").write_text(f"{SECRET}\n", encoding="utf-8")
    lines = _lines().replace("http://127.0.0.1:8080", light_hook.url)
    done = await asyncio.create_subprocess_exec(
        "bash", "-ec", lines, cwd=tmp_path, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await done.communicate()
    answer = json.loads(out)
    assert ("accepted", None) == (answer["outcome"], answer["code"])
    assert [answer["request"]] == [row["request_key"] for row in await light_hook.requests()]
