"""The fake tracker keeps every change on disk, outlives its clients, and fails as it was told."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.commit_log import Action, Change, CommitLog, Entry, Via, read_log
from tests.fakes.control import TrackerControl, tracker_process
from tests.fakes.faults import Fault, Plan, Reply, dropped_after, fails_before
from tests.fakes.http_tracker import BOT
from tests.fakes.issues import World, label_sets
from tests.fakes.tracker import serving
from tests.unit.fakes.scene import ISSUE_PATH, KEY, LABELS, NUMBER, REPOSITORY, add, call, labelled
from triage.trackers.base import TrackedIssue, TrackerRefused, TrackerUnavailable

STARTER = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-m", "tests.fakes.tracker", "--log", sys.argv[1]])
print(child.pid, flush=True)
sys.stdin.read()
"""
WRITER = """
import asyncio, os, signal, sys
from tests.fakes.http_client import Step
from tests.fakes.http_tracker import HttpTracker
def die(step):
    if step is Step.SENT:
        os.kill(os.getpid(), signal.SIGKILL)
tracker = HttpTracker(sys.argv[1], on_step=die)
asyncio.run(tracker.add_labels(*sys.argv[2:4], ["bug"], by="us", operation_key="op_1"))
"""
ROOT = Path(__file__).parents[3]


async def test_without_a_token_nothing_is_answered(control: TrackerControl) -> None:
    """The fake asks who is there, as the real one does."""
    with pytest.raises(TrackerRefused) as error:
        await control.client(token="").get_issue(REPOSITORY, NUMBER)
    assert "unauthorized" == error.value.code


async def test_the_log_tells_who_did_what_for_which_operation(control: TrackerControl) -> None:
    """A label's line names the request, the operation, the issue and who acted."""
    await add(control.client())
    entry = (await control.log())[-1]
    [request] = await control.requests("POST")
    expected = Entry(
        seq=5,
        time=entry.time,
        action=Action.LABELED,
        actor=BOT,
        repository=REPOSITORY,
        issue=NUMBER,
        label="bug",
        via=Via.API,
        request=request["id"],
        operation=KEY,
    )
    assert expected == entry
    assert "bounded-triage" == request["agent"]
    assert (200, "whole") == (request["status"], request["reply"])


async def test_a_repeated_request_is_carried_out_and_logged(control: TrackerControl) -> None:
    """A second request for the same label succeeds and changes nothing, and the log shows both."""
    for _ in range(2):
        answer = await call(control, "POST", f"{ISSUE_PATH}/labels", {"labels": ["BUG"]})
        assert (200, [{"name": "bug"}]) == (answer.status, json.loads(answer.body))
    actions = [entry.action for entry in await control.log(after=4)]
    assert [Action.LABELED, Action.REPEATED] == actions


async def test_it_creates_missing_labels_as_the_real_one_does(control: TrackerControl) -> None:
    """The trap that a client has to avoid is there."""
    await call(control, "POST", f"{ISSUE_PATH}/labels", {"labels": ["new"]})
    actions = [(e.action, e.label, e.issue) for e in await control.log(after=4)]
    expected = [(Action.LABEL_CREATED, "new", None), (Action.LABELED, "new", NUMBER)]
    assert expected == actions
    assert "new" in await control.client().label_inventory(REPOSITORY)


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", f"{ISSUE_PATH}/labels", {"labels": ["x" * 51]}, 422),
        ("POST", f"{ISSUE_PATH}/labels", {"labels": [" "]}, 422),
        ("POST", f"{ISSUE_PATH}/labels", {"labels": [str(n) for n in range(101)]}, 422),
        ("POST", f"{ISSUE_PATH}/labels", [], 400),
        ("POST", f"{ISSUE_PATH}/labels", {}, 400),
        ("PUT", f"{ISSUE_PATH}/labels", {"labels": []}, 405),
        ("DELETE", f"{ISSUE_PATH}/labels/bug", None, 404),
        ("PATCH", ISSUE_PATH, {"state": "merged"}, 422),
        ("GET", f"/repos/{REPOSITORY}/issues/7", None, 404),
        ("GET", f"/repos/{REPOSITORY}/pulls", None, 404),
        ("GET", "/", None, 404),
    ],
)
async def test_what_it_refuses_changes_nothing(
    control: TrackerControl, method: str, path: str, body: object, status: int
) -> None:
    """A request that cannot be carried out gets the real one's status and leaves no line."""
    assert status == (await call(control, method, path, body)).status
    assert 4 == len(await control.log())


async def test_people_use_the_same_api(control: TrackerControl) -> None:
    """Editing, closing and taking labels off work over HTTP, under the person's own name."""
    await add(control.client(), "bug", "component:api")
    await call(control, "PATCH", ISSUE_PATH, {"title": "New", "state": "closed"})
    await call(control, "DELETE", f"{ISSUE_PATH}/labels/component%3Aapi")
    issue = await control.client().get_issue(REPOSITORY, NUMBER)
    assert isinstance(issue, TrackedIssue)
    assert ("New", "closed", ("bug",)) == (issue.title, issue.state, issue.labels)
    assert {"ann"} == {entry.actor for entry in (await control.log())[-2:]}
    events = json.loads((await call(control, "GET", f"{ISSUE_PATH}/events")).body)
    assert ["labeled", "labeled", "edited", "unlabeled"] == [event["event"] for event in events]
    labels = json.loads((await call(control, "GET", f"{ISSUE_PATH}/labels?per_page=1")).body)
    assert [{"name": "bug"}] == labels


async def test_what_nobody_could_do_is_refused_to_the_test_too(control: TrackerControl) -> None:
    """A test that acts on nothing hears of it, and the log stays true."""
    with pytest.raises(ValueError, match="no such issue"):
        await control.edit(REPOSITORY, "7", title="x")
    with pytest.raises(ValueError, match="no such field"):
        await control.edit(REPOSITORY, NUMBER, author="x")
    with pytest.raises(ValueError, match="already"):
        await control.remove_label(REPOSITORY, NUMBER, "bug")
    assert 4 == len(await control.log())


async def test_deleted_and_moved_issues_answer_as_such(control: TrackerControl) -> None:
    """An issue that is gone says which way it went."""
    await control.transfer(REPOSITORY, NUMBER, "/repos/acme/other/issues/1")
    moved = await call(control, "GET", ISSUE_PATH)
    assert (301, "/repos/acme/other/issues/1") == (moved.status, moved.headers["location"])
    await control.delete(REPOSITORY, NUMBER)
    assert 410 == (await call(control, "GET", ISSUE_PATH)).status


async def test_a_plan_is_replaced_as_a_whole(control: TrackerControl) -> None:
    """After an empty plan everything goes well again."""
    await control.plan(dropped_after(times=0))
    for key in ("op_1", "op_2"):
        await control.define_labels(REPOSITORY, [key])
        with pytest.raises(TrackerUnavailable):
            await add(control.client(), key, key=key)
    await control.plan()
    assert ("bug",) == (await add(control.client())).added


async def test_a_test_can_wait_for_a_request(control: TrackerControl) -> None:
    """While a request hangs the test learns that it is there, and can act in between."""
    await control.plan(Fault(before_ms=1_500))
    adding = asyncio.create_task(add(control.client()))
    await control.requested("POST", KEY)
    await control.edit(REPOSITORY, NUMBER, title="Meanwhile")
    await adding
    actions = [entry.action for entry in await control.log(after=4)]
    assert [Action.EDITED, Action.LABELED] == actions


async def test_a_request_outlives_the_process_that_sent_it(control: TrackerControl) -> None:
    """A worker that is killed after its last byte has written all the same, and the log knows."""
    await control.plan(Fault(before_ms=300))
    before = await control.log()
    arguments = [sys.executable, "-c", WRITER, control.api, REPOSITORY, NUMBER]
    writer = await asyncio.create_subprocess_exec(*arguments, cwd=ROOT)
    assert -signal.SIGKILL == await writer.wait()
    assert ["bug"] == [entry.label for entry in await control.log(len(before), wait=True)]


def test_faults_are_counted_per_request() -> None:
    """Each fault counts the requests that fit it, and the first one that is due acts."""
    first = Fault(path="labels", status=500)
    third = Fault(path="labels", skip=2, status=502)
    other = Fault(path="labels", operation="op_2", times=0, status=503)
    plan = Plan([first, third, other])
    asked = ["op_1", "op_2", "op_1", "op_2", "op_1"]
    found = [plan.next("POST", "/labels", operation).status for operation in asked]
    assert [500, 503, 502, 503, None] == found
    assert plan.next("GET", "/labels", "op_2").status is None


def test_chance_repeats_with_its_seed() -> None:
    """A random plan is the same again under the same seed, and another under another."""

    def drawn(seed: int) -> list[int | None]:
        plan = Plan([fails_before(times=0, chance=0.5)], seed)
        return [plan.next("POST", "/issues/1/labels", "").status for _ in range(50)]

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)
    assert {None, 500} == set(drawn(1))


def test_a_fault_survives_its_trip() -> None:
    """What a test plans is what the tracker does, and a misspelt plan is refused."""
    fault = Fault(reply=Reply.DRIP, late_ms=5, headers={"A": "b"})
    assert fault == Fault.from_json(json.loads(json.dumps(fault.to_json())))
    with pytest.raises(TypeError):
        Fault.from_json({"stauts": 500})


def test_a_torn_line_was_never_a_commit(tmp_path: Path) -> None:
    """A log whose writer died in the middle of a line goes on after the last whole one."""
    path = tmp_path / "commits.jsonl"
    change = Change(action=Action.LABEL_DEFINED, actor="ann", repository="r", label="bug")
    log = CommitLog(path)
    [entry] = log.append([change])
    log.close()
    with path.open("ab") as file:
        file.write(b'{"action": "labeled", "ac')
    assert [entry] == read_log(path)
    again = CommitLog(path)
    assert [entry] == again.entries
    again.append([change])
    again.close()
    assert [1, 2] == [entry.seq for entry in read_log(path)]


async def test_label_sets_are_read_off_the_log(control: TrackerControl) -> None:
    """Which labels an issue had at which time follows from the log alone."""
    await add(control.client(), "bug", "component:api")
    await control.remove_label(REPOSITORY, NUMBER, "bug")
    sets = [labels for _, labels in label_sets(await control.log(), REPOSITORY, NUMBER)]
    expected = [set(), {"bug"}, {"bug", "component:api"}, {"component:api"}]
    assert expected == sets
    issue = World(await control.log()).find(REPOSITORY, NUMBER)
    assert issue is not None
    assert ["component:api"] == list(issue.labels.values())


async def test_a_tracker_process_begins_where_its_log_ends(tmp_path: Path) -> None:
    """A tracker that was stopped and started again on its log has forgotten nothing."""
    log = tmp_path / "commits.jsonl"
    async with tracker_process(log) as control:
        await control.define_labels(REPOSITORY, LABELS)
        await control.open_issue(REPOSITORY, NUMBER, title="Crash")
        await add(control.client())
    async with serving(log) as running:
        again = TrackerControl(running.api.address, running.control.address)
        assert ["bug"] == await labelled(again)
        assert ("bug",) == (await add(again.client())).already_present
    assert 5 == len(read_log(log))


def test_a_tracker_process_ends_with_its_parent(tmp_path: Path) -> None:
    """However the process that started it ends, the tracker ends too."""
    command = [sys.executable, "-c", STARTER, str(tmp_path / "log")]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as starter:
        assert starter.stdout is not None
        lines = [starter.stdout.readline() for _ in range(2)]
        [pid] = [int(line) for line in lines if line.strip().isdigit()]
        ended = os.pidfd_open(pid)
        starter.send_signal(signal.SIGKILL)
        assert select.select([ended], [], [], 20)[0]
        os.close(ended)
