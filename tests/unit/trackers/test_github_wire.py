"""A request to GitHub is asked once, says who asks and nothing else, and goes nowhere else."""

from __future__ import annotations

import ast
import asyncio
import json
import logging
import traceback
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from pydantic import SecretStr

from tests.fakes import github_shapes as shapes
from tests.fakes.commit_log import Action, Change
from tests.fakes.faults import Fault, refused
from tests.fakes.http_server import HttpServer, Request, Response
from tests.fakes.issues import Issue
from tests.unit.trackers import keys
from tests.unit.trackers.far_ends import LABELS, NUMBER, TOKEN, GitHubEnd, github_tracker
from triage.resources import fixtures_path
from triage.trackers import github_reads, github_wire
from triage.trackers.base import (
    TrackedIssue,
    TrackerError,
    TrackerRefused,
    TrackerUnavailable,
)
from triage.trackers.github import GitHubTracker
from triage.trackers.github_auth import Credentials, TokenCredential
from triage.trackers.github_wire import Secret, Wire

MODULES: Final = sorted(Path(github_wire.__file__).parent.glob("github*.py"))
LABELS_PATH: dict[str, Any] = {"method": "GET", "path": r"/repos/acme/shop/labels$"}
TARGETS: Final = [
    vector["input"]
    for vector in json.loads(
        fixtures_path("security", "ssrf_vectors.json").read_text(encoding="utf-8")
    )
    if "://" in vector["input"].partition(" ")[0]
]


async def _add(end: GitHubEnd, *labels: str) -> None:
    await end.over_github.add_labels(
        end.repository, NUMBER, labels or ("bug",), by="bounded-triage", operation_key="op_1"
    )


def test_nothing_replaces_a_set_of_labels() -> None:
    """The only requests that change something are POST and DELETE, each written out once."""
    sent = [
        node.args[0].value
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "send"
        and isinstance(node.args[0], ast.Constant)
    ]
    assert ["DELETE", "POST", "POST"] == sorted(map(str, sent))
    texts = "".join(path.read_text(encoding="utf-8") for path in MODULES)
    for method in ("PUT", "PATCH"):
        assert f'"{method}"' not in texts
    # All of them go through the one place that counts whether a byte has left.
    assert 1 == texts.count("handle_async_request(")


async def test_a_write_is_three_reads_and_one_request(end: GitHubEnd) -> None:
    """It names the version of the API, the operation and who asks, and sends the labels alone."""
    await _add(end, "bug", "component:api")
    made = await end.control.requests()
    assert ["GET", "GET", "GET", "POST"] == [request["method"] for request in made]
    headers = end.github.api.seen[-1]
    assert "2022-11-28" == headers["x-github-api-version"]
    assert ("bounded-triage", "op_1") == (headers["user-agent"], headers["x-operation-key"])
    assert f"token {TOKEN}" == headers["authorization"]
    assert "gzip" == headers["accept-encoding"]
    assert "cookie" not in headers
    assert not {"if-none-match", "if-modified-since"} & headers.keys()


class _KeepsOpen:
    """A server that keeps its connections open, and notes which methods each has carried."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self._answers = answers
        self.connections: list[list[str]] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer by the last part of a path, until the client goes."""
        methods: list[str] = []
        self.connections.append(methods)
        with suppress(asyncio.IncompleteReadError):
            while head := (await reader.readuntil(b"\r\n\r\n")).decode("ascii").lower():
                size = head.partition("content-length: ")[2].partition("\r\n")[0]
                await reader.readexactly(int(size or "0"))
                method, path, _ = head.split(" ", 2)
                methods.append(method)
                writer.write(self._answer(path.partition("?")[0].rpartition("/")[2]))
        writer.close()

    def _answer(self, name: str) -> bytes:
        body = json.dumps(self._answers[name])
        head = f"Content-Type: application/json\r\nContent-Length: {len(body)}"
        return f"HTTP/1.1 200 OK\r\n{head}\r\n\r\n{body}".encode("ascii")


async def test_the_reads_share_a_connection_and_the_write_has_its_own() -> None:
    """Where the server keeps connections open, no write goes out on one that it may have closed."""
    issue = shapes.issue(Issue("acme/shop", NUMBER, "t", "b", "ann"), [])
    labels = [shapes.label("acme/shop", "bug", 7)]
    kept = _KeepsOpen({NUMBER: issue, "events": [], "labels": labels})
    server = await asyncio.start_server(kept.serve, "127.0.0.1", 0)
    wire = Wire(address=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    one = TokenCredential(SecretStr("x"))
    tracker = GitHubTracker(wire, Credentials(reads=one, files=one, writes=one))
    outcome = await tracker.add_labels("acme/shop", NUMBER, ["bug"], by="us", operation_key="op_1")
    server.close()
    await server.wait_closed()
    assert ("bug",) == outcome.added
    assert [["get", "get", "get"], ["post"]] == kept.connections


async def test_no_variable_of_the_environment_matters(
    end: GitHubEnd, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A proxy or a password file that the machine has set is not used."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
        monkeypatch.setenv(name.lower(), "http://127.0.0.1:9")
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login eve password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    await _add(end)
    assert {f"token {TOKEN}"} == {headers["authorization"] for headers in end.github.api.seen}


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_no_redirect_is_followed(end: GitHubEnd, status: int, method: str) -> None:
    """Wherever an answer sends us, a metadata service say, nobody there hears of us."""
    heard: list[Request] = []

    async def hear(request: Request) -> Response:
        heard.append(request)
        return Response.of({})

    elsewhere = HttpServer(hear)
    await elsewhere.listen()
    target = f"{elsewhere.address}/latest/meta-data"
    await end.control.plan(
        Fault(
            method=method,
            path=r"/issues/101(/labels)?$",
            times=0,
            status=status,
            takes_effect=False,
            headers={"Location": target},
        )
    )
    with pytest.raises((TrackerRefused, TrackerUnavailable)):
        await _add(end)
    await elsewhere.close()
    assert [] == heard
    assert 1 == len([r for r in await end.control.requests(method) if r["status"] == status])


@pytest.mark.parametrize("target", TARGETS)
async def test_no_link_is_followed_elsewhere(end: GitHubEnd, target: str) -> None:
    """A link to the next page that leads to another place ends the reading, and is not asked."""
    link = f'<{target}?page=2>; rel="next"'
    await end.control.plan(Fault(**LABELS_PATH, times=0, headers={"Link": link}))
    with pytest.raises(TrackerUnavailable, match="the link to the next page"):
        await end.over_github.label_inventory(end.repository)
    assert 1 == len(await end.control.requests("GET"))


def _many(end: GitHubEnd, count: int) -> tuple[str, ...]:
    """Give another repository so many labels, at once."""
    names = tuple(f"label-{number:03}" for number in range(count))
    define = partial(Change, action=Action.LABEL_DEFINED, actor="ann", repository="acme/many")
    end.github.api.commit([define(label=name) for name in names])
    return names


async def test_every_page_is_read(end: GitHubEnd) -> None:
    """The inventory is whole however long it is; its links name the repository by its id."""
    names = _many(end, 230)
    assert names == await end.over_github.label_inventory("acme/many")
    assert 3 == len(await end.control.requests("GET"))


async def test_a_link_that_was_lost_loses_no_label(end: GitHubEnd) -> None:
    """A full page without a link to the next one is followed by a look whether there is one."""
    names = _many(end, 130)
    await end.control.plan(Fault(method="GET", path="/labels$", times=0, headers={"Link": ""}))
    assert names == await end.over_github.label_inventory("acme/many")


async def test_pages_that_lead_in_a_circle_are_noticed(end: GitHubEnd) -> None:
    """A link to a page that was read already is no next page."""
    link = f'<{end.control.api}/x?per_page=100&page=1>; rel="next"'
    await end.control.plan(Fault(**LABELS_PATH, times=0, headers={"Link": link}))
    with pytest.raises(TrackerUnavailable, match="circle"):
        await end.over_github.label_inventory(end.repository)


async def test_a_list_without_end_is_given_up(
    end: GitHubEnd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So many pages and no more: a list that is longer is not taken for a whole one."""
    monkeypatch.setattr(github_reads, "MAX_PAGES", 3)
    _many(end, 301)
    with pytest.raises(TrackerUnavailable, match="too many pages"):
        await end.over_github.label_inventory("acme/many")
    assert 3 == len(await end.control.requests("GET"))


async def test_an_answer_that_only_a_cache_could_complete_is_none(end: GitHubEnd) -> None:
    """Nothing is kept between two requests, so "not modified" says nothing."""
    await end.control.plan(Fault(method="GET", path="", status=304, body=""))
    with pytest.raises(TrackerUnavailable):
        await end.over_github.get_issue(end.repository, NUMBER)
    assert await end.over_github.get_issue(end.repository, NUMBER)


@pytest.mark.parametrize(
    ("repository", "number"),
    [
        ("acme/..", NUMBER),
        ("acme/shop/..", NUMBER),
        ("acme/a..b", NUMBER),
        ("../shop", NUMBER),
        ("acme", NUMBER),
        ("acme/shop\n", NUMBER),
        ("acme/sh%2Fop", NUMBER),
        ("acme/" + "x" * 101, NUMBER),
        (".acme/shop", NUMBER),
        ("acme/.", NUMBER),
        ("acme/...", NUMBER),
        ("acmé/shop", NUMBER),
        ("", NUMBER),
        ("acme/shop", "101/labels"),
        ("acme/shop", "0"),
        ("acme/shop", "-1"),
        ("acme/shop", "٣"),
        ("acme/shop", "1" * 40),
        ("acme/shop", "ISSUE-101"),
        ("acme/shop", ""),
    ],
)
async def test_what_names_no_issue_is_not_asked_for(
    end: GitHubEnd, repository: str, number: str
) -> None:
    """Whatever could change the path of an address is refused before one is made of it."""
    found = await end.over_github.get_issue(repository, number)
    assert ("bad_target", False) == (getattr(found, "code", ""), bool(found))
    with pytest.raises(TrackerRefused) as error:
        await end.over_github.add_labels(repository, number, ["bug"], by="x", operation_key="y")
    assert "bad_target" == error.value.code
    assert [] == await end.control.requests()


async def test_a_base_address_with_a_path_is_kept(end: GitHubEnd) -> None:
    """An Enterprise server has its API under a path of its own."""
    end.github.api.prefix = "/api/v3"
    tracker = github_tracker(end.github)
    assert ("bug", *LABELS[1:]) == await tracker.label_inventory(end.repository)
    assert {"/api/v3/repos/acme/shop/labels"} == {
        request["path"] for request in await end.control.requests()
    }


async def test_a_name_that_leads_elsewhere_is_not_spoken_to(
    end: GitHubEnd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address behind the name is looked at after connecting and before the first byte."""
    monkeypatch.setattr(github_wire, "may_connect", lambda *_: False)
    with pytest.raises(TrackerUnavailable, match="an address that is not asked") as error:
        await _add(end)
    assert not error.value.effect_possible
    assert [] == await end.control.requests()


async def test_a_token_is_in_no_error_log_or_form(
    end: GitHubEnd, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever goes wrong, at whatever level it is logged, the token is not told."""
    caplog.set_level(logging.DEBUG)
    secret = "ghp_neverToBeSeen"
    tracker = github_tracker(end.github, token=secret)
    credential = TokenCredential(SecretStr(secret))
    told = [repr(tracker), repr(credential), repr(Secret(token=secret)), str(vars(tracker))]
    for fault in (refused(401), refused(500), Fault(body="no", method="GET", path="")):
        await end.control.plan(Fault(**{**vars(fault), "method": "", "path": "", "times": 0}))
        with pytest.raises(TrackerError) as error:
            await tracker.admit_issue(
                end.repository, NUMBER, title="", body="", author=None, labels=()
            )
        told += [repr(error.value), *traceback.format_exception(error.value)]
    assert f"token {secret}" == end.github.api.seen[-1]["authorization"]
    assert secret not in "".join([*told, caplog.text])


async def test_a_write_needs_a_right_of_its_own(end: GitHubEnd) -> None:
    """A tracker without the credential that writes reads, and has no way to write."""
    rights = end.over_github._rights
    tracker = GitHubTracker(
        end.over_github._wire, type(rights)(reads=rights.reads, files=rights.files)
    )
    assert isinstance(await tracker.get_issue(end.repository, NUMBER), TrackedIssue)
    with pytest.raises(TrackerRefused) as error:
        await tracker.add_labels(end.repository, NUMBER, ["bug"], by="x", operation_key="y")
    assert "unauthorized" == error.value.code
    assert 1 == len(await end.control.requests())


async def test_an_address_that_is_not_listened_on_is_an_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A machine that is not there is unavailable, no failure of its own kind, and tried once."""
    steps: list[str] = []

    async def note(_call: object, event: str, _info: object) -> None:
        steps.append(event)

    monkeypatch.setattr(github_wire._Call, "trace", note)
    wire = Wire(address="http://127.0.0.1:9", request_seconds=2)
    async with github_wire.connected(wire, Secret(token="x")) as talk:
        with pytest.raises(TrackerUnavailable):
            await talk.get("/user", {})
    assert 1 == steps.count("connection.connect_tcp.started")


async def test_a_machine_that_cannot_prove_its_name_is_told_nothing(tmp_path: Path) -> None:
    """Its certificate is checked before the first byte, so no token and no write gets there."""
    heard: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read(1))
        writer.close()

    context = keys.untrusted_server(tmp_path)
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    wire = Wire(address=f"https://localhost:{server.sockets[0].getsockname()[1]}")
    async with github_wire.connected(wire, Secret(token="x")) as talk:
        with pytest.raises(TrackerUnavailable) as error:
            await talk.send("POST", "/user", {}, about="issue", body={}, send_by=wire.send_by())
    server.close()
    await server.wait_closed()
    assert (False, []) == (error.value.effect_possible, heard)


async def test_a_refused_connection_is_told_as_one() -> None:
    """Nobody listens there, which is not an answer that did not come; nothing was sent."""
    wire = Wire(address="http://127.0.0.1:1")
    async with github_wire.connected(wire, Secret(token=TOKEN)) as github:
        with pytest.raises(TrackerUnavailable) as told:
            await github.get("/user", {})
    assert "GitHub cannot be reached: connection refused" == str(told.value)
    assert not told.value.effect_possible
