"""The rules in force for new runs, looked up anew before each.

Why it exists: rules change while workers run, and every worker must be held to the same ones. What
is written counts as far as a person accepted it, and that is in the store; a file that went wrong
changes nothing.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Final, Protocol

from triage.policy.rules import Rules
from triage.policy.rules_file import RuleFinding, RulesFileError
from triage.policy.standing import Standing, judge
from triage.policy.tools import ToolRegistry
from triage.rules_place import NOTHING_WRITTEN, Mark, RulesPlace, UnreadableRulesError, Written
from triage.storage.acceptances import NOBODY_YET, Acceptances, AcceptedRules

_log: Final = logging.getLogger(__name__)


class RulesInForce(Protocol):
    """Says which rules a run that begins now is held to."""

    async def in_force(self) -> Rules:
        """Return them."""
        ...


@dataclass(frozen=True, slots=True)
class _Judged:
    """What was decided last, and of what."""

    written: Written
    accepted: AcceptedRules
    standing: Standing


class RulesSource:
    """The rules that are written, as far as they were accepted.

    The file is read again only when it has changed. Every change of what is in force is one line in
    the log, with digests and counts alone.
    """

    def __init__(self, place: RulesPlace, tools: ToolRegistry, acceptances: Acceptances) -> None:
        self._place = place
        self._tools = tools
        self._acceptances = acceptances
        self._seen: tuple[Mark, Written | RulesFileError] | None = None
        self._good: Written | None = None
        self._problem = ""
        self._judged: _Judged | None = None
        self._told = ("", "")
        self._turn = asyncio.Lock()

    async def in_force(self) -> Rules:
        """Return the rules in force.

        Raises:
            RulesFileError: the file cannot be used, and no good one was ever seen here.
            StorageError: it cannot be said what was accepted.
        """
        async with self._turn:
            written, last = await self._look(), self._judged
            accepted = await self._acceptances.current(last.accepted if last else NOBODY_YET)
            if last and written is last.written and accepted is last.accepted:
                return last.standing.rules
            standing = judge(written.rules, accepted.rules)
            self._judged = _Judged(written, accepted, standing)
            self._tell(self._judged)
            return standing.rules

    async def _look(self) -> Written:
        """Return what is written, or was written before the file went wrong."""
        if self._place.path is None:
            return NOTHING_WRITTEN
        try:
            # A slow disk, or a large file, must not hold up everything else here.
            written = await asyncio.to_thread(self._read)
        except RulesFileError as error:
            self._complain(error)
            if self._good is None:
                raise
            return self._good
        if self._problem:
            _log.info("the rules file can be used again")
        self._problem, self._good = "", written
        return written

    def _read(self) -> Written:
        """Return what the file says; it is read unless it is still the one that was read last."""
        if self._seen is None or self._seen[0] != self._place.mark():
            mark, data = self._place.load()
            self._seen = mark, self._parsed(data)
        found = self._seen[1]
        if isinstance(found, RulesFileError):
            raise found
        return found

    def _parsed(self, data: bytes) -> Written | RulesFileError:
        try:
            return self._place.parse(data, self._tools)
        except RulesFileError as error:
            return error
        except Exception as error:  # noqa: BLE001 - whatever it is, the good rules stay in force
            message = f"cannot be understood ({type(error).__name__})"
            return RulesFileError(RuleFinding(0, "the file", message, "correct it"))

    def _complain(self, error: RulesFileError) -> None:
        code = "unreadable" if isinstance(error, UnreadableRulesError) else "wrong"
        problem = f"{code} {len(error.findings)}"
        if problem != self._problem:
            self._problem = problem
            told = {"code": code, "count": len(error.findings)}
            _log.warning("the rules file cannot be used: triage policy check", extra=told)

    def _tell(self, judged: _Judged) -> None:
        waiting = judged.standing.waiting
        digest = judged.standing.rules.digest()
        waits_for = judged.written.rules.digest() if waiting else ""
        if (digest, waits_for) == self._told:
            return
        self._told = digest, waits_for
        if waiting:
            told = {"digest": digest, "waiting": waits_for, "count": len(waiting)}
            _log.warning("rules wait for acceptance: triage policy accept", extra=told)
        else:
            _log.info("rules are in force", extra={"digest": digest})
