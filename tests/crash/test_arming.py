"""What production reads cannot set a fault point off: only code in the process itself can."""

from __future__ import annotations

import os
import signal
from itertools import product

import pytest

import worker
from tests.crash.records import Record
from tests.crash.scene import Ground
from triage.embedded import WorkerProcess
from triage.faults import Point

NAMES = (
    "FAILPOINT",
    "FAILPOINTS",
    "FAULT",
    "FAULTS",
    "FAULT_POINT",
    "FAULT_POINTS",
    "TRIAGE_FAILPOINT",
    "TRIAGE_FAILPOINTS",
    "TRIAGE_FAULT",
    "TRIAGE_FAULTS",
    "TRIAGE_FAULT_POINTS",
    "TRIAGE_ARM",
    "TRIAGE_CRASH",
    "TRIAGE_DEBUG",
)


def _variables() -> dict[str, str]:
    """Set whatever a person might try: one variable for all points, and one for each."""
    everything = ",".join(f"{point}:kill" for point in Point)
    each = {
        f"{prefix}{point.value.upper().replace('.', '_')}": "kill"
        for prefix, point in product(("FAILPOINT_", "TRIAGE_FAULT_", "TRIAGE_"), Point)
    }
    return dict.fromkeys(NAMES, everything) | each


@pytest.mark.slow
async def test_no_variable_arms_a_point(ground: Ground) -> None:
    """With every such variable set, a production worker carries a run to its end, and stops."""
    cell = ground.local_cell("variables")
    async with WorkerProcess(cell.settings, {**cell.connection, **_variables()}) as process:
        handle = await cell.start()
        await cell.approve(handle)
        record = await cell.record(handle)
        os.kill(process.pid, signal.SIGTERM)
        assert 0 == await process.wait(), process.last_lines()
    assert isinstance(record, Record)
    assert [("added", "bug"), ("added", "component:api")] == record.commits
    assert (1, 1, []) == (record.receipts, record.settled, record.findings)


def test_no_option_arms_a_point(capsys: pytest.CaptureFixture[str]) -> None:
    """The worker has no such option, and does not start with one."""
    with pytest.raises(SystemExit) as ended:
        worker.main(["--failpoint", f"{Point.WRITE_AFTER_SEND}:kill"])
    assert 2 == ended.value.code
    assert "unrecognized arguments" in capsys.readouterr().err
