"""Fetches a repository's CODEOWNERS file, all of it from one commit.

Why it exists: "nobody owns it" may be said only of a file that was read in full. GitHub answers
with no content for a file above 1 MB, and with "not found" for one that may not be read.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from typing import Final

from pydantic import JsonValue

from triage.policy.codeowners import FILE_NAME, CodeOwners, parse_codeowners
from triage.trackers.abilities import FetchedOwners as FetchedOwners
from triage.trackers.base import TrackerRefused, TrackerUnavailable
from triage.trackers.github_models import COMMITS, ContentFile, OwnersReport, read, read_list
from triage.trackers.github_names import Place
from triage.trackers.github_reads import REPOSITORY
from triage.trackers.github_wire import Conversation

PLACES: Final = (f".github/{FILE_NAME}", FILE_NAME, f"docs/{FILE_NAME}")
"""Where GitHub looks, in this order; the first one counts."""
UNKNOWN_OWNER: Final = "Unknown owner"
"""How GitHub calls an owner that does not exist, or may not write."""
NOT_THE_FILE: Final = 1
"""A size that no content has, of what is there and is no file: who owns a path is unknown."""


async def fetch_owners(talk: Conversation, place: Place) -> FetchedOwners:
    """Return the file as the default branch has it.

    Raises:
        TrackerRefused: the repository's files may not be read.
        TrackerError: the answers cannot be used.
    """
    # The files of a repository that may not be read are "not found", and so are its commits.
    reply = await talk.get(
        REPOSITORY + "/commits{?per_page}", place.variables, query={"per_page": "1"}
    )
    commits = read_list(COMMITS, reply.value, writing=False)
    if not commits:
        raise TrackerUnavailable("the repository has no commit", effect_possible=False)
    sha = commits[0].sha
    for path in PLACES:
        owners = await _file(talk, place, path, sha)
        if owners is not None:
            unresolved = await _unresolved(talk, place, sha)
            return FetchedOwners(owners=owners, path=path, sha=sha, unresolved=unresolved)
    return FetchedOwners(owners=parse_codeowners(b""), path=None, sha=sha)


async def _file(talk: Conversation, place: Place, path: str, sha: str) -> CodeOwners | None:
    names = {**place.variables, "path": path, "ref": sha}
    try:
        reply = await talk.get(REPOSITORY + "/contents/{+path}{?ref}", names)
    except TrackerRefused as error:
        if error.code == "repository_not_found":
            return None
        raise
    # Reading takes seconds where somebody wants it to, and others wait for this loop.
    return await asyncio.to_thread(_owners, reply.value)


async def _unresolved(
    talk: Conversation, place: Place, sha: str
) -> frozenset[tuple[int, str]] | None:
    """Return the owners that GitHub does not know, by line; None if it does not say."""
    names = {**place.variables, "ref": sha}
    try:
        reply = await talk.get(REPOSITORY + "/codeowners/errors{?ref}", names)
    except TrackerRefused:
        return None
    found = read(OwnersReport, reply.value, writing=False).errors
    return frozenset((x.line, x.owner.casefold()) for x in found if x.kind == UNKNOWN_OWNER)


def _owners(value: JsonValue) -> CodeOwners:
    if isinstance(value, list):
        return parse_codeowners(b"", size=NOT_THE_FILE)
    found = read(ContentFile, value, writing=False)
    if found.type != "file":
        return parse_codeowners(b"", size=max(found.size, NOT_THE_FILE))
    return parse_codeowners(_decoded(found), size=found.size)


def _decoded(found: ContentFile) -> bytes:
    """Return the content; nothing of it if it is not there or damaged, which its size shows."""
    if found.encoding != "base64":
        return b""
    try:
        return base64.b64decode("".join(found.content.split()), validate=True)
    except (binascii.Error, ValueError):
        return b""
