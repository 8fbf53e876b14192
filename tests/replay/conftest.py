"""Fixtures that several test processes need, made by the first of them for all."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.replay.child import Answer

Answers = dict[str, Answer]
Once = Callable[[str, Callable[[], Answers]], Answers]


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Once:
    """Return a function that makes something once, however many processes run the tests."""
    folder = tmp_path_factory.getbasetemp()
    shared = folder if worker_id == "master" else folder.parent

    def make(name: str, produce: Callable[[], Answers]) -> Answers:
        with (shared / f"{name}.lock").open("w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return _kept(shared / f"{name}.json", produce)

    return make


def _kept(file: Path, produce: Callable[[], Answers]) -> Answers:
    if not file.exists():
        file.write_text(json.dumps(produce()), encoding="utf-8")
    answers: Answers = json.loads(file.read_text(encoding="utf-8"))
    return answers
