"""The people around one run: who starts it, answers it, and does things to it and its issue.

They act as the plan of the run says until it has ended, whatever happens to the workers meanwhile.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Any, Final

from pydantic import JsonValue
from temporalio.client import (
    WorkflowHandle,
    WorkflowQueryFailedError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.service import RPCError

from tests.fakes.commit_log import Action, Entry
from tests.fakes.control import TrackerControl
from tests.fakes.http_tracker import BOT
from tests.soak.board import Board
from tests.soak.pens import Pen
from tests.soak.plans import REPOSITORY, Act, Anchor, Answer, RunPlan, TimedAct
from tests.workflow.decisions import a_request
from triage.contracts.approval import Verdict
from triage.contracts.names import (
    QUERY_PENDING,
    SIGNAL_APPROVE,
    SIGNAL_EDIT,
    SIGNAL_REJECT,
    UPDATE_REVIEW,
)
from triage.contracts.state import PendingView

ASK_SECONDS: Final = 5.0
THINKING_SECONDS: Final = 1.5
JUNK: Final = 12
LOOKS: Final = 60
GUESSED: Final = "op-6"
GUESSED_VERSION: Final = 6
GUESS: Final[JsonValue] = {
    "operation_id": GUESSED,
    "version": GUESSED_VERSION,
    "approver": "maintainer",
}
_AGAIN_SECONDS: Final = 3.0
"""After an answer that had no effect, since the run was cut off from it, it is given again."""

_QUIET: Final = (
    RPCError,
    TimeoutError,
    WorkflowQueryFailedError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
"""What people see when a run is over, or nobody is there to answer."""


@dataclass(frozen=True)
class Approved:
    """One operation of one run, at the version at which a person approved it."""

    workflow_id: str
    operation_id: str
    version: int


@dataclass(frozen=True, kw_only=True)
class Scene:
    """What all people share.

    Attributes:
        board: tells them of their run.
        tracker: where its issue is.
        log: what was committed there so far; it grows.
        counts: what they did, by kind.
        pen: what they answer with.
        approved: what they approved, by whichever way.
    """

    board: Board
    tracker: TrackerControl
    log: Sequence[Entry]
    counts: Counter[str]
    pen: Pen
    approved: set[Approved]


class People:
    """Those around one run."""

    def __init__(self, plan: RunPlan, handle: WorkflowHandle[Any, Any], scene: Scene) -> None:
        self._plan = plan
        self._handle = handle
        self._scene = scene
        self._random = Random(plan.seed)  # noqa: S311 - a test repeats it
        self._answers = list(plan.answers)
        self._approved = asyncio.Event()
        self._edits = 0

    async def accompany(self) -> None:
        """Act until the run has ended."""
        for operation_id, version in self._plan.approvals().items():
            self._approve_unsigned(operation_id, version)
        acts = [asyncio.create_task(self._act_in_time(act)) for act in self._plan.acts]
        try:
            while self._handle.id not in self._scene.board.closed:
                await self._scene.board.news()
                since = self._scene.board.waiting.get(self._handle.id)
                if since is not None:
                    await self._answer()
        finally:
            for act in acts:
                act.cancel()
            await asyncio.gather(*acts, return_exceptions=True)

    async def _answer(self) -> None:
        """Answer the wait that the run is in, once; a lost answer is given again later."""
        pending = await self._pending()
        if pending is None:
            return
        answer = self._answers.pop(0) if self._answers else Answer.SIGNAL
        if answer is Answer.SILENCE:
            self._count(answer)
            await self._while_waiting(self._plan.window_seconds)
            return
        await self._while_waiting(self._random.uniform(0, THINKING_SECONDS))
        await self._doubtful(pending)
        await self._give(answer, pending)
        self._approved.set()
        await self._while_waiting(_AGAIN_SECONDS)

    async def _pending(self) -> PendingView | None:
        with suppress(*_QUIET):
            found: PendingView | None = await self._handle.query(
                QUERY_PENDING,
                result_type=PendingView | None,  # type: ignore[arg-type]  # a union is no type
                rpc_timeout=timedelta(seconds=ASK_SECONDS),
            )
            return found
        return None

    async def _while_waiting(self, seconds: float) -> None:
        """Let time pass, as long as the run waits."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._handle.id in self._scene.board.waiting:
                    await self._scene.board.news()

    async def _doubtful(self, pending: PendingView) -> None:
        """Sometimes send approvals first that must not count."""
        if self._random.random() >= 0.3:
            return
        changes: tuple[dict[str, JsonValue], ...] = (
            {"version": pending.version - 1},
            {"version": pending.version + 1},
            {"digest": "sha256:" + "0" * 64},
            {"operation_id": "op-of-another"},
            {"approver": "helper[bot]"},
        )
        self._count("false approval")
        true = self._said(pending, Verdict.APPROVE)
        await self._signal(SIGNAL_APPROVE, {**true, **self._random.choice(changes)})

    async def _give(self, answer: Answer, pending: PendingView) -> None:
        self._count(answer)
        verdict = Verdict.REJECT if answer is Answer.REJECT else Verdict.APPROVE
        said = self._said(pending, verdict)
        if verdict is Verdict.APPROVE:
            self._approve(pending.operation_id, pending.version)
        match answer:
            case Answer.SIGNAL:
                await self._signal(SIGNAL_APPROVE, said)
            case Answer.UPDATE:
                await self._update(verdict, said)
            case Answer.REJECT:
                await self._signal(SIGNAL_REJECT, said)
            case _:
                others = [self._said(pending, verdict) for _ in range(2)]
                await asyncio.gather(
                    *(self._signal(SIGNAL_APPROVE, words) for words in (said, said, *others)),
                    *(self._update(verdict, words) for words in (said, *others)),
                )

    def _said(self, pending: PendingView, verdict: Verdict) -> dict[str, JsonValue]:
        return self._scene.pen.answer(self._handle.id, pending, verdict)

    async def _update(self, verdict: Verdict, said: dict[str, JsonValue]) -> None:
        value = {**said, "verdict": verdict.value}
        with suppress(*_QUIET):
            async with asyncio.timeout(ASK_SECONDS):
                await self._handle.execute_update(UPDATE_REVIEW, value)

    async def _signal(self, name: str, *values: JsonValue) -> None:
        with suppress(*_QUIET):
            await self._handle.signal(name, args=values)

    async def _act_in_time(self, timed: TimedAct) -> None:
        if timed.anchor is Anchor.APPROVAL:
            await self._approved.wait()
        await asyncio.sleep(timed.seconds)
        with suppress(*_QUIET, ValueError):
            await self._act(timed.act)
            self._count(timed.act)

    async def _act(self, act: Act) -> None:
        match act:
            case Act.TERMINATE:
                await self._handle.terminate("soak")
            case Act.CANCEL:
                await self._handle.cancel()
            case Act.EDIT_REQUEST | Act.STARE:
                looks = 2 if act is Act.STARE else 0
                await asyncio.gather(*(self._stare() for _ in range(looks)), self._change(looks))
            case Act.JUNK:
                for number in range(JUNK):
                    await self._signal(("approve", "edit", "nonsense")[number % 3], {"n": number})
            case Act.EARLY:
                self._approve_unsigned(GUESSED, GUESSED_VERSION)
                await self._signal(SIGNAL_APPROVE, GUESS)
            case Act.LATE_REJECT:
                await self._signal(SIGNAL_REJECT, GUESS)
            case _:
                await self._touch(act)

    async def _stare(self) -> None:
        """Look without pause: also while the run is busy inside a workflow task."""
        for _ in range(LOOKS):
            await self._pending()

    async def _change(self, times: int) -> None:
        """Edit the request once, and so often again at any time."""
        await self._edit_request()
        for _ in range(times):
            await asyncio.sleep(self._random.uniform(0, 0.25))
            await self._edit_request()

    async def _edit_request(self) -> None:
        self._edits += 1
        text = f"Since yesterday every call fails. Seen {self._edits} times more."
        await self._signal(SIGNAL_EDIT, a_request(request_id=self._plan.issue, body=text))

    async def _touch(self, act: Act) -> None:
        """Do something to the issue, as a person in the tracker."""
        tracker, issue = self._scene.tracker, self._plan.issue
        match act:
            case Act.EDIT_ISSUE:
                await tracker.edit(REPOSITORY, issue, body="It is worse than I said.")
            case Act.LOCK:
                await tracker.lock(REPOSITORY, issue)
            case Act.DELETE:
                await tracker.delete(REPOSITORY, issue)
            case Act.ADD_LABEL:
                label = self._random.choice(self._plan.labels)
                await tracker.add_label(REPOSITORY, issue, label)
            case _:
                await self._take_off()

    async def _take_off(self) -> None:
        """Take off the first label that triage puts on, once it is there."""
        seen = len(self._scene.log)
        while True:
            for entry in self._scene.log[seen:]:
                seen += 1
                ours = entry.actor == BOT and entry.issue == self._plan.issue
                if ours and entry.action is Action.LABELED and entry.label is not None:
                    await self._scene.tracker.remove_label(
                        REPOSITORY, self._plan.issue, entry.label
                    )
                    return
            await self._scene.board.news()

    def _approve(self, operation_id: str, version: int) -> None:
        self._scene.approved.add(Approved(self._handle.id, operation_id, version))

    def _approve_unsigned(self, operation_id: str, version: int) -> None:
        if self._scene.pen.key is None:
            self._approve(operation_id, version)

    def _count(self, kind: str) -> None:
        self._scene.counts[kind] += 1
