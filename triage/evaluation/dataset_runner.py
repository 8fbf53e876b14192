"""Running the cases of a data set as real workflows, with one or two configurations."""

from __future__ import annotations

import asyncio
from typing import Final
from uuid import uuid4

from temporalio.client import Client
from temporalio.exceptions import TemporalError

from triage.contracts.names import QUERY_STATE
from triage.contracts.options import IssueContext, RunOptions
from triage.contracts.state import StateView
from triage.evaluation.configuration import Configuration
from triage.evaluation.dataset import Dataset, DatasetCase
from triage.evaluation.execution import (
    NoResponse,
    Progress,
    mutations_of,
    result_of,
    side_by_side,
    start,
    store_script,
    too_late,
    why,
)
from triage.evaluation.judging import Judged, Ran, judge, judge_lost
from triage.evaluation.lending import borrow
from triage.evaluation.stack import own_stack
from triage.policy.rules import Rules
from triage.settings import Settings
from triage.storage.acceptances import NOBODY_YET, Acceptances
from triage.storage.documents import DocumentStore
from triage.storage.engine import Store

AT_ONCE: Final = 16
"""Cases that run at a time: enough to keep two cores busy."""
AT_ONCE_OF_A_PROVIDER: Final = 4
"""A model on this machine answers one after the other, and a provider limits how many."""
CASE_SECONDS: Final = 120.0
PROVIDER_CASE_SECONDS: Final = 900.0
"""Several calls, each with the deadline of the settings, and others before it in the queue."""


async def evaluate_dataset(
    dataset: Dataset,
    configuration: Configuration,
    settings: Settings,
    progress: Progress | None = None,
    at_once: int | None = None,
) -> tuple[Judged, ...]:
    """Run and judge every case on an embedded server, or on the one that is configured.

    Worker, task queue and database are the evaluation's own, and nothing is left of them.

    Args:
        dataset: the cases.
        configuration: what they are run with; it was checked.
        settings: the user's; what says how models are reached is kept of them.
        progress: called after each case.
        at_once: how many run at a time; None takes what suits the model.

    Raises:
        ServerUnreachable: the configured server cannot be used.
        EmbeddedError: a server or worker did not start, or ended.
    """
    lent = await configuration.lent(settings)
    async with own_stack(settings, "eval", configuration.kept(settings)) as stack:
        store = await Store.open(stack.settings.database_url)
        try:
            await borrow(DocumentStore(store), lent.values())
        finally:
            await store.close()
        main = evaluate_on(stack.client, dataset, configuration, stack.settings, progress, at_once)
        return await stack.run(main)


async def evaluate_on(
    client: Client,
    dataset: Dataset,
    configuration: Configuration,
    settings: Settings,
    progress: Progress | None = None,
    at_once: int | None = None,
) -> tuple[Judged, ...]:
    """Run and judge every case where a worker with exactly these settings runs already.

    Returns:
        One for each case, in the order of the data set, whatever became of its run.
    """
    store = await Store.open(settings.database_url)
    try:
        if (rules := configuration.written()) is not None:
            await _accept(store, rules)
        asks = configuration.asks_a_provider
        seconds = PROVIDER_CASE_SECONDS if asks else CASE_SECONDS
        bench = _Bench(client, DocumentStore(store), settings.task_queue, configuration, seconds)
        many = at_once or (AT_ONCE_OF_A_PROVIDER if asks else AT_ONCE)
        return await side_by_side(dataset.cases, bench.run, progress, many)
    finally:
        await store.close()


async def _accept(store: Store, rules: Rules) -> None:
    """Let the rules that are evaluated be in force in this database, which nobody else uses."""
    await Acceptances(store).accept(rules, replaces=NOBODY_YET, widens=(), by="triage evaluate")


class _Bench:
    """Runs single cases; every name that it uses is new to this evaluation."""

    def __init__(
        self,
        client: Client,
        documents: DocumentStore,
        task_queue: str,
        configuration: Configuration,
        seconds: float,
    ) -> None:
        self._client = client
        self._documents = documents
        self._task_queue = task_queue
        self._model = configuration.model
        self._seconds = seconds
        self._name = f"evaluation-{uuid4().hex}"

    async def run(self, case: DatasetCase, position: int) -> Judged:
        """Run a case and judge what came of it."""
        try:
            async with asyncio.timeout(self._seconds):
                return judge(case, await self._ran(case, position))
        except TimeoutError:
            return judge_lost(case, too_late(self._seconds))
        except NoResponse as error:
            return judge_lost(case, str(error))

    async def _ran(self, case: DatasetCase, position: int) -> Ran:
        model = self._model
        if case.decisions is not None:
            model = await store_script(self._documents, case.decisions)
        context = IssueContext(repository=f"{self._name}/{position}")
        try:
            handle = await start(
                self._client,
                case.request,
                RunOptions(model=model, context=context),
                workflow_id=f"{self._name}-{position}",
                task_queue=self._task_queue,
                seconds=self._seconds,
            )
            response = await result_of(handle)
            state = await handle.query(QUERY_STATE, result_type=StateView)
            return Ran(response, state, await mutations_of(handle, response))
        except TemporalError as error:
            raise NoResponse(why(error, self._seconds)) from None
