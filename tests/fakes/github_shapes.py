"""What GitHub's objects look like in its answers: each with all that its description asks for."""

from __future__ import annotations

import base64
import copy
import hashlib
import zlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from tests.fakes.commit_log import Action, Entry
from tests.fakes.issues import Issue, label_key
from tests.fakes.openapi import description

Shape = dict[str, Any]
WEB: Final = "https://github.com"
API: Final = "https://api.github.com"
BIG_BYTES: Final = 1_000_000
"""Above it, a file's content is empty in the answer."""
EVENTS: Final = frozenset({Action.LABELED, Action.UNLABELED, Action.LOCKED, Action.UNLOCKED})
_LONG_AGO: Final = "2020-01-01T00:00:00Z"


def number_of(name: str) -> int:
    """Return the id that something of this name has."""
    return zlib.crc32(name.encode("utf-8", "surrogatepass")) + 1


def user(login: str) -> Shape:
    """Return an account: a bot by its name's end, else a person."""
    urls = (
        "followers",
        "following",
        "gists",
        "starred",
        "subscriptions",
        "organizations",
        "repos",
        "events",
        "received_events",
    )
    return {
        "login": login,
        "id": number_of(login),
        "node_id": f"U_{number_of(login)}",
        "avatar_url": f"{WEB}/images/{login}",
        "gravatar_id": "",
        "url": f"{API}/users/{login}",
        "html_url": f"{WEB}/{login}",
        "type": "Bot" if login.endswith("[bot]") else "User",
        "site_admin": False,
        **{f"{name}_url": f"{API}/users/{login}/{name}" for name in urls},
    }


def account(login: str) -> Shape:
    """Return the account that a token belongs to, as it sees itself."""
    words = dict.fromkeys(("name", "company", "blog", "location", "email", "bio", "hireable"))
    counts = dict.fromkeys(("public_repos", "public_gists", "followers", "following"), 0)
    dates = {"created_at": _LONG_AGO, "updated_at": _LONG_AGO}
    return {**user(login), **words, **counts, **dates}


def label(repository: str, name: str, id_: int) -> Shape:
    """Return a label."""
    return {
        "id": id_,
        "node_id": f"LA_{id_}",
        "url": f"{API}/repos/{repository}/labels/x",
        "name": name,
        "description": None,
        "color": "ededed",
        "default": False,
    }


def issue(found: Issue, labels: list[Shape]) -> Shape:
    """Return an issue, or a pull request as this part of the API shows it."""
    here = f"{API}/repos/{found.repository}/issues/{found.number}"
    times = [stamp(entry.at) for entry in found.events] or [_LONG_AGO]
    pull = {"pull_request": dict.fromkeys(("diff_url", "html_url", "patch_url", "url"), here)}
    return {
        "id": number_of(here),
        "node_id": f"I_{number_of(here)}",
        "url": here,
        "repository_url": f"{API}/repos/{found.repository}",
        **{f"{name}_url": f"{here}/{name}" for name in ("labels", "comments", "events", "html")},
        "number": int(found.number),
        "state": found.state,
        "title": found.title,
        "body": found.body,
        "user": user(found.author) if found.author else None,
        "labels": labels,
        "assignee": None,
        "milestone": None,
        "locked": found.locked,
        "comments": 0,
        "closed_at": None if found.state == "open" else _LONG_AGO,
        "created_at": times[0],
        "updated_at": times[-1],
        **(pull if found.pull_request else {}),
    }


def repository(name: str) -> Shape:
    """Return a repository: GitHub's own example, under this name."""
    shape: Shape = copy.deepcopy(
        description()["operations"]["GET /repos/{owner}/{repo}"]["example"]
    )
    # The example leaves out what the description asks for.
    source = {**shape["source"], "language": None}
    ours = {"id": number_of(name), "full_name": name, "language": None}
    return {**shape, **ours, "source": source}


def event(entry: Entry, app: Shape | None) -> Shape:
    """Return something that happened to an issue; `app` if that App did it."""
    named = {"label": {"name": entry.label, "color": "ededed"}} if entry.label else {}
    return {
        "id": entry.seq,
        "node_id": f"E_{entry.seq}",
        "url": f"{API}/repos/{entry.repository}/issues/events/{entry.seq}",
        "actor": user(entry.actor),
        "event": entry.action.value,
        "commit_id": None,
        "commit_url": None,
        "created_at": stamp(entry.at),
        "performed_via_github_app": app,
        **named,
        **({} if named else {"lock_reason": None}),
    }


def stamp(moment: datetime) -> str:
    """Return a time as GitHub writes it: whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def integration(app_id: int, slug: str, permissions: Mapping[str, str]) -> Shape:
    """Return an App."""
    return {
        "id": app_id,
        "slug": slug,
        "client_id": f"Iv23{slug}",
        "node_id": f"A_{app_id}",
        "owner": user("acme"),
        "name": slug,
        "description": None,
        "external_url": WEB,
        "html_url": f"{WEB}/apps/{slug}",
        "created_at": _LONG_AGO,
        "updated_at": _LONG_AGO,
        "permissions": dict(permissions),
        "events": [],
        "installations_count": 1,
    }


def installation(id_: int, app_id: int, permissions: Mapping[str, str]) -> Shape:
    """Return an App's installation."""
    return {
        "id": id_,
        "account": user("acme"),
        "repository_selection": "selected",
        "access_tokens_url": f"{API}/app/installations/{id_}/access_tokens",
        "repositories_url": f"{API}/installation/repositories",
        "html_url": f"{WEB}/settings/installations/{id_}",
        "app_id": app_id,
        "app_slug": "x",
        "target_id": 1,
        "target_type": "Organization",
        "permissions": dict(permissions),
        "events": [],
        "created_at": _LONG_AGO,
        "updated_at": _LONG_AGO,
        "single_file_name": None,
        "suspended_by": None,
        "suspended_at": None,
    }


def commit(repository: str) -> Shape:
    """Return the last commit of a repository."""
    sha = head(repository)
    person = {"name": "ann", "email": "ann@example.com", "date": _LONG_AGO}
    here = f"{API}/repos/{repository}/commits/{sha}"
    return {
        "url": here,
        "sha": sha,
        "node_id": "C_1",
        "html_url": here,
        "comments_url": here,
        "commit": {
            "url": here,
            "author": person,
            "committer": person,
            "message": "Change",
            "comment_count": 0,
            "tree": {"sha": sha, "url": here},
        },
        "author": user("ann"),
        "committer": user("ann"),
        "parents": [],
    }


def head(repository: str) -> str:
    """Return the name of a repository's last commit."""
    return hashlib.sha256(repository.encode()).hexdigest()[:40]


def content(repository: str, path: str, data: bytes) -> Shape:
    """Return a file; the content of a large one is left out, and its size is not."""
    here = f"{API}/repos/{repository}/contents/{path}"
    is_big = len(data) > BIG_BYTES
    return {
        "type": "file",
        "encoding": "none" if is_big else "base64",
        "size": len(data),
        "name": path.rpartition("/")[2],
        "path": path,
        "content": "" if is_big else base64.encodebytes(data).decode("ascii"),
        "sha": hashlib.sha256(data).hexdigest()[:40],
        "url": here,
        "git_url": here,
        "html_url": here,
        "download_url": here,
        "_links": {"self": here, "git": here, "html": here},
    }


def rate() -> Shape:
    """Return what is left of the rate limit."""
    left = {"limit": 5_000, "used": 10, "remaining": 4_990, "reset": 4_000_000_000}
    return {"resources": {"core": left, "search": left}, "rate": left}


def token(name: str, permissions: Mapping[str, str], lives: timedelta) -> Shape:
    """Return a token of an installation for one repository."""
    return {
        "token": name,
        "expires_at": stamp(datetime.now(UTC) + lives),
        "permissions": dict(permissions),
        "repository_selection": "selected",
    }


def ids_of_labels(entries: list[Entry]) -> dict[tuple[str, str], int]:
    """Return the id of each label, by repository and key: it survives a rename, and no deletion."""
    ids: dict[tuple[str, str], int] = {}
    for entry in entries:
        place = (entry.repository, label_key(entry.label or ""))
        match entry.action:
            case Action.LABEL_DEFINED | Action.LABEL_CREATED:
                ids[place] = 1_000 + entry.seq
            case Action.LABEL_DROPPED:
                ids.pop(place, None)
            case Action.LABEL_RENAMED:
                ids[(entry.repository, label_key(entry.data["to"]))] = ids.pop(place)
            case _:
                pass
    return ids


def unknown_owners(
    files: Mapping[tuple[str, str], object], repository: str, unknown: set[str]
) -> list[Shape]:
    """Return what GitHub says of owners in a CODEOWNERS file that are nobody."""
    path = ".github/CODEOWNERS"
    data = files.get((repository, path))
    lines = data.decode(errors="replace").split("\n") if isinstance(data, bytes) else []
    return [
        {
            "line": number,
            "column": line.index(word) + 1,
            "kind": "Unknown owner",
            "source": line,
            "suggestion": f"make sure {word} exists and has write access to the repository",
            "message": f"Unknown owner on line {number}: make sure {word} exists",
            "path": path,
        }
        for number, line in enumerate(lines, start=1)
        for word in line.split()[1:]
        if word in unknown
    ]
