"""Attempts that meet on one write: one of them wins, and nothing happens twice."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest
from sqlalchemy import text

from tests.unit.storage.samples import RECEIPT, approval, claim, dispatched, operation, shift
from triage.storage.approvals import Approvals, Verdict
from triage.storage.audit_verify import verify
from triage.storage.engine import Store
from triage.storage.errors import StorageError
from triage.storage.ledger import Ledger
from triage.storage.operations import Busy, OperationRow, Reserved, Settled
from triage.storage.retention import purge_settled
from triage.storage.transitions import OperationState

S = OperationState
ROUNDS = 60

RACER = """
import asyncio, sys
from tests.unit.storage.samples import claim, operation
from triage.storage.engine import Store
from triage.storage.ledger import Ledger
from triage.storage.operations import Reserved

async def main(url, rounds):
    store = await Store.open(url)
    ledger = Ledger(store)
    sys.stdin.readline()
    for number in range(rounds):
        key = f"op_{number}"
        answer = await claim(ledger, operation(key))
        if isinstance(answer, Reserved) and await ledger.dispatch(key, answer.epoch):
            print(key)
    await store.close()

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


async def test_processes_that_race_have_one_winner_each_time(store: Store, store_url: str) -> None:
    """Two processes claim the same writes at the same time: each write is dispatched once."""
    await race(store, store_url, ROUNDS)


async def race(store: Store, store_url: str, rounds: int) -> None:
    """Let two processes claim the same writes, and see that each was dispatched once."""
    racers = [
        await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", RACER, store_url, str(rounds)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        for _ in range(2)
    ]
    outputs = await asyncio.gather(*(racer.communicate(b"go\n") for racer in racers))
    won = [line for output, _ in outputs for line in output.decode().split()]
    assert sorted(f"op_{number}" for number in range(rounds)) == sorted(won)
    assert [] == await verify(store)
    listed = await Ledger(store).list()
    assert {(S.DISPATCHED, 1, 1)} == {(op.state, op.epoch, op.dispatches) for op in listed}


async def test_attempts_in_one_process_have_one_winner(store: Store) -> None:
    """Twenty attempts at once: one is granted the write, the others are told to wait."""
    ledger = Ledger(store)
    answers = await asyncio.gather(*(claim(ledger, operation()) for _ in range(20)))
    assert [1, 19] == [sum(isinstance(a, kind) for a in answers) for kind in (Reserved, Busy)]


async def test_a_lease_is_taken_over_by_one(store: Store) -> None:
    """Of ten attempts that find a lease at its end, one gets the next epoch."""
    ledger = Ledger(store)
    await claim(ledger, operation())
    await shift(store, "lease_until", timedelta(seconds=-61))
    answers = await asyncio.gather(*(claim(ledger, operation()) for _ in range(10)))
    assert [2] == [answer.epoch for answer in answers if isinstance(answer, Reserved)]


async def test_a_write_is_dispatched_by_one(store: Store) -> None:
    """Of ten dispatches under one epoch, one succeeds: the right to call is not copied."""
    ledger = Ledger(store)
    await claim(ledger, operation())
    moves = await asyncio.gather(*(ledger.dispatch("op_1", 1) for _ in range(10)))
    assert 1 == sum(bool(move) for move in moves)


async def test_two_answers_to_one_write_do_not_both_count(store: Store) -> None:
    """Settling and giving up at the same time leaves one outcome, and the chain holds."""
    ledger = Ledger(store)
    epoch = await dispatched(ledger, operation())
    applied, unknown = await asyncio.gather(
        ledger.settle("op_1", epoch, S.FAILED, b"404"), ledger.mark_unknown("op_1", epoch)
    )
    assert 1 == bool(applied) + bool(unknown)
    assert [] == await verify(store)


async def test_decisions_that_race_have_one_outcome(store: Store) -> None:
    """Of many decisions at once the first stands, and everybody is told that one."""
    row = operation()
    book = Approvals(store)
    verdicts = [Verdict.APPROVE, Verdict.REJECT] * 10
    stand = await asyncio.gather(
        *(
            book.record(approval(row, approval_id=f"a{n}", verdict=verdict), row.tenant)
            for n, verdict in enumerate(verdicts)
        )
    )
    assert 1 == len(set(stand))
    assert None not in stand


async def test_a_purge_does_not_reopen_a_write(store: Store, store_url: str) -> None:
    """A claim that arrives exactly when its settled row is purged still finds it settled."""
    ledger = Ledger(store)
    row = operation()
    epoch = await dispatched(ledger, row)
    await ledger.settle("op_1", epoch, S.APPLIED, RECEIPT)
    other = await Store.open(store_url)
    async with store.read() as connection:
        now = await store.now(connection) + timedelta(seconds=1)
    answers = [await claim(ledger, row)]
    purging = asyncio.create_task(purge_settled(other, before=now))
    answers += [await claim(ledger, row) for _ in range(20)]
    assert 1 == await purging
    await other.close()
    answers.append(await claim(ledger, row))
    assert {Settled} == {type(answer) for answer in answers}
    assert [False, True] == sorted({a.purged for a in answers if isinstance(a, Settled)})


class AuditBrokenError(StorageError):
    """What the tests break the audit with."""


@pytest.mark.parametrize("move", ["reserve", "dispatch", "settle", "mark_unknown"])
async def test_nothing_moves_that_cannot_be_audited(
    store: Store, monkeypatch: pytest.MonkeyPatch, move: str
) -> None:
    """If the audit entry cannot be written, neither the move nor the approval's use is kept."""
    ledger = Ledger(store)
    row = operation()
    if move == "dispatch":
        await claim(ledger, row)
    if move in {"settle", "mark_unknown"}:
        await dispatched(ledger, row)
    before = await _everything(store, row)
    steps: dict[str, Callable[[], Awaitable[object]]] = {
        "reserve": lambda: claim(ledger, row),
        "dispatch": lambda: ledger.dispatch("op_1", 1),
        "settle": lambda: ledger.settle("op_1", 1, S.APPLIED, RECEIPT),
        "mark_unknown": lambda: ledger.mark_unknown("op_1", 1),
    }

    async def broken(*_: object) -> None:
        raise AuditBrokenError

    with monkeypatch.context() as patched:
        patched.setattr("triage.storage.ledger_rows.append", broken)
        patched.setattr("triage.storage.claims.append_all", broken)
        with pytest.raises(AuditBrokenError):
            await steps[move]()
    assert before == await _everything(store, row)
    assert await steps[move]()
    assert [] == await verify(store)


async def _everything(store: Store, row: OperationRow) -> tuple[object, ...]:
    approved = await Approvals(store).get(row.operation_key, row.version)
    return await Ledger(store).list(), approved


async def test_an_audit_table_that_cannot_be_written_stops_writes(store: Store) -> None:
    """With the audit table gone read-only in the database itself, nothing is reserved."""
    await _execute(store, _BREAK[store.is_sqlite])
    try:
        with pytest.raises(StorageError):
            await claim(Ledger(store), operation())
        assert () == await Ledger(store).list()
    finally:
        await _execute(store, _MEND[store.is_sqlite])


_BREAK = {
    True: "CREATE TRIGGER no_audit BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'no'); END",
    False: "ALTER TABLE audit ADD CONSTRAINT no_audit CHECK (false)",
}
_MEND = {
    True: "DROP TRIGGER no_audit",
    False: "ALTER TABLE audit DROP CONSTRAINT no_audit",
}


async def _execute(store: Store, statement: str) -> None:
    async with store.write() as connection:
        await connection.execute(text(statement))
