"""The benchmark's arithmetic: what it reads of the kernel and the server, and makes of it."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest
from temporalio.api.history.v1 import HistoryEvent

from benchmarks.counters import metrics_address, parse_actions
from benchmarks.measure import event_kinds
from benchmarks.pages import database_bytes
from benchmarks.plan import QUICK_ARMS, A, W, long_run, read_plan
from benchmarks.procfs import (
    Neighbours,
    Opened,
    Process,
    parse_machine,
    parse_process,
    processes,
    tree_usage,
)
from benchmarks.report import table
from benchmarks.stacks import product_roles
from benchmarks.stats import Spread, counts, ratios
from triage.settings import Role

TICK = 1 / os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
STAT = (
    "4711 (a (strange) name) S 42 4711 4711 0 -1 4194304 900 8000 0 3"
    " 150 50 30 20 20 0 7 0 1234 99999 300 18446744073709551615 1 1 0 0"
)
METRICS = """\
# TYPE action counter
action{action_type="ActivityTaskScheduled",namespace="default",service_name="frontend"} 12
action{action_type="StartWorkflowExecution",namespace="default",service_name="frontend"} 3
action{action_type="StartWorkflowExecution",namespace="other",service_name="frontend"} 70
action{action_type="QueryWorkflow",namespace="default",service_name="frontend"} 500
action{action_type="RecordActivityTaskHeartbeat",namespace="default",service_name="history"} 9
action_latency{action_type="SignalWorkflow",namespace="default"} 8
"""


def test_a_process_s_line_is_read_past_any_name() -> None:
    """Parent, CPU time with that of children that ended, and resident memory are found."""
    process = parse_process(STAT)
    assert (42, 300 * PAGE) == (process.parent, process.resident_bytes)
    assert 250 * TICK == pytest.approx(process.cpu_seconds)


def test_the_machine_s_line_counts_a_guest_once() -> None:
    """Idle and waiting time is not busy, and a guest's time is within user time already."""
    busy, total = parse_machine("cpu  100 10 40 800 50 0 0 0 60 5\ncpu0 1 1 1 1 1 1 1 1 1 1\n")
    assert (150 * TICK, 1_000 * TICK) == pytest.approx((busy, total))


def test_a_tree_s_use_is_that_of_all_its_descendants() -> None:
    """Children and their children count, strangers and processes that are gone do not."""
    seen = {
        1: Process(0, 100.0, 1_000),
        10: Process(1, 1.0, 10),
        11: Process(10, 2.0, 20),
        12: Process(11, 4.0, 40),
        20: Process(1, 8.0, 80),
    }
    used = tree_usage([10, 99], seen)
    assert (7.0, 70) == (used.cpu_seconds, used.resident_bytes)


def test_a_real_child_s_time_is_counted_after_its_end() -> None:
    """What a child used belongs to its parent once it was waited for."""
    before = tree_usage([os.getpid()], processes()).cpu_seconds
    subprocess.run([sys.executable, "-c", "sum(range(3_000_000))"], check=True)
    assert before < tree_usage([os.getpid()], processes()).cpu_seconds


def test_only_a_run_s_own_actions_are_counted() -> None:
    """Queries, heartbeats, other namespaces and other metrics are not."""
    assert 15 == parse_actions(METRICS)


def test_the_server_s_own_word_says_where_its_metrics_are() -> None:
    """The address is in its first lines, and without one nothing is guessed."""
    log = "Temporal Server:  127.0.0.1:7233\nMetrics:          http://127.0.0.1:40001/metrics\n"
    assert "http://127.0.0.1:40001/metrics" == metrics_address(log)
    with pytest.raises(LookupError):
        metrics_address("Temporal Server:  127.0.0.1:7233\n")


def test_a_history_s_bytes_are_told_apart_by_kind() -> None:
    """All three events of workflow tasks are one kind; each other event keeps its own."""
    task, started, signal = HistoryEvent(), HistoryEvent(), HistoryEvent()
    task.workflow_task_scheduled_event_attributes.attempt = 1
    started.activity_task_started_event_attributes.attempt = 1
    signal.workflow_execution_signaled_event_attributes.signal_name = "approve"
    sizes = [event.ByteSize() for event in (task, started, signal)]
    assert {
        "workflow_task": (2, 2 * sizes[0]),
        "activity_task_started": (1, sizes[1]),
        "signaled": (1, sizes[2]),
    } == event_kinds([task, started, task, signal])


def test_a_database_s_bytes_are_those_of_its_pages_in_use(tmp_path: Path) -> None:
    """Pages that are still in the journal count, and pages that were freed do not."""
    with closing(sqlite3.connect(tmp_path / "triage.db")) as database:
        database.execute("PRAGMA journal_mode=wal")
        database.execute("CREATE TABLE t (x)")
        before = database_bytes(tmp_path)
        database.execute("INSERT INTO t VALUES (zeroblob(1000000))")
        database.commit()
        filled = database_bytes(tmp_path)
        database.execute("DELETE FROM t")
        database.commit()
        assert before == database_bytes(tmp_path)
    assert ["triage.db"] == list(filled)
    assert 990_000 <= filled["triage.db"] - before["triage.db"] <= 1_010_000


def test_a_ratio_is_taken_within_a_window() -> None:
    """Each figure stands against the floor's of the same window; an empty one counts nowhere."""
    assert [2.0, 1.5] == ratios([2.0, 9.0, 6.0], [1.0, 0.0, 4.0])
    with pytest.raises(ValueError, match="zip"):
        ratios([1.0], [1.0, 2.0])


def test_a_spread_says_the_middle_and_how_far_it_reaches() -> None:
    """Median, quartiles and ends are those of the figures; one figure is all of them."""
    assert Spread(3.0, 2.0, 4.0, 1.0, 5.0, 5) == Spread.of([5.0, 1.0, 3.0, 2.0, 4.0])
    assert Spread(7.0, 7.0, 7.0, 7.0, 7.0, 1) == Spread.of([7.0])
    assert "3.00 (1.00..5.00)" == str(Spread.of([1.0, 3.0, 5.0]))
    with pytest.raises(ValueError, match="no figures"):
        Spread.of([])


@pytest.mark.parametrize(
    ("middle", "fair"), [(0.949, False), (0.95, True), (1.0, True), (1.05, True), (1.051, False)]
)
def test_a_floor_that_is_not_its_own_equal_does_not_count(middle: float, fair: bool) -> None:
    """The median decides, however far single windows reach."""
    assert fair is counts(Spread.of([0.1, middle, 9.0]))


def test_a_floor_s_run_has_an_activity_for_each_question_and_each_read() -> None:
    """Two steps are model, read, model; a hundred have a read between any two."""
    assert (3, 3, 199) == (W.activities, A.activities, long_run(100).activities)


def test_the_quick_form_takes_fewer_arms_and_windows() -> None:
    """What is given explicitly wins over it."""
    quick, chosen = read_plan(["--quick"]), read_plan(["--quick", "--arms", "W", "--windows", "3"])
    assert (QUICK_ARMS, 6, 3.0) == (quick.arms, quick.windows, quick.seconds)
    assert (("W",), 3) == (chosen.arms, chosen.windows)
    assert 8 == read_plan([]).windows


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--arms", "X"], "no arm is called 'X': there are W, A"),
        (["--set", "no-value"], "is not NAME=VALUE"),
        (["--windows", "0"], "'0' is not a whole number of 1 or more"),
        (["--windows", "x"], "'x' is not a whole number of 1 or more"),
        (["--seconds", "0"], "'0' is not a number of seconds above 0"),
        (["--seconds", "-1.5"], "'-1.5' is not a number of seconds above 0"),
        (["--seconds", "inf"], "'inf' is not a number of seconds above 0"),
        (["--steps", "3,101"], "101 is not within 1..100"),
        (["--output", "/"], "'/' is not the name of a file"),
        (["--kill", "--arms", "W"], "it needs --arms waiting"),
    ],
)
def test_what_cannot_be_measured_is_refused(
    arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message names the option, and says why in words of its user's."""
    with pytest.raises(SystemExit) as ended:
        read_plan(arguments)
    assert 2 == ended.value.code
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith(f"benchmarks: error: argument {arguments[0]}: ")
    assert why in line


def test_the_product_may_have_several_processes_for_one_queue() -> None:
    """Each is as the roles say, and there are as many of each as were asked for."""
    assert [tuple(Role)] * 3 == product_roles(read_plan(["--workers", "3"]))
    one = [(Role.DECIDE,), (Role.WRITE,)]
    assert one * 2 == product_roles(read_plan(["--roles", "two", "--workers", "2"]))


def test_a_thread_and_an_open_file_are_counted() -> None:
    """Each is one more than before, and one less when it has ended."""
    before, go_on = Opened.by([os.getpid()]), threading.Event()
    thread = threading.Thread(target=go_on.wait)
    with Path(os.devnull).open():
        thread.start()
        more = Opened.by([os.getpid()])
        go_on.set()
        thread.join()
    assert Opened(before.threads + 1, before.files + 1) == more
    assert before == Opened.by([os.getpid()])


def test_others_are_whoever_is_not_of_this_tree() -> None:
    """A child's time is ours while it runs and when it has ended, and a share is one."""
    neighbours = Neighbours()
    subprocess.run([sys.executable, "-c", "sum(range(3_000_000))"], check=True)
    assert 0.0 <= neighbours.share() <= 1.0


def test_a_table_s_columns_line_up() -> None:
    """Names stand to the left, figures to the right."""
    assert ["a      1", "bcd  100"] == list(table([["a", "1"], ["bcd", "100"]]))
