"""Which run has an issue by way of its deliveries, for who would start another one beside it.

Why it exists: a run that a delivery started has an id that says nothing, so no id tells who types
an issue's name that there is one already.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import and_, or_, select

from triage.contracts.repositories import folded_repository
from triage.storage.admission import Subject
from triage.storage.engine import Store
from triage.storage.schema import requests


@dataclass(frozen=True, slots=True)
class UnderWay:
    """What deliveries about one issue came to.

    Attributes:
        workflow_id: the run that has its newest started text, going on or ended; None without one.
        is_starting: whether a newer text waits for a run of its own or to be an edit.
    """

    workflow_id: str | None = None
    is_starting: bool = False


async def under_way(store: Store, subject: Subject) -> UnderWay:
    """Return what deliveries about an issue came to.

    It is the same issue if source, the repository's own id and the number are, or else by the
    repository's name, in any letters: not every tracker knows the id that deliveries carry, and
    a repository that was made anew under its old name has issues of its own.
    """
    r = requests.c
    same_number = and_(r.tenant == subject.tenant, r.number == subject.number)
    query = (
        select(r.subject_key, r.repository, r.state, r.workflow_id)
        .where(r.state.in_(("accepted", "started")), or_(r.subject_key == subject.key, same_number))
        .order_by(r.version.desc())
    )
    wanted = folded_repository(subject.repository)
    async with store.read() as connection:
        rows = (await connection.execute(query)).all()
    same = [row for row in rows if row.subject_key == subject.key]
    named = [row for row in rows if folded_repository(row.repository) == wanted]
    ours = [(row.state, row.workflow_id) for row in same or named]
    runs = (workflow_id for state, workflow_id in ours if state == "started")
    return UnderWay(next(runs, None), any(state == "accepted" for state, _ in ours))
