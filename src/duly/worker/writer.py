"""Writing endings down: many in one fenced statement, with the callbacks that are owed."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from duly.client.app import App
from duly.client.bridge import pay, telling
from duly.model.decide import Hold, Transition, decide
from duly.model.outcome import Done, Ending, Failed, Lost, Retry
from duly.model.policy import stored_policy
from duly.model.reconciliation import ReconciliationSource
from duly.model.redact import printable
from duly.model.states import Status
from duly.store import work
from duly.store.claims import ClaimedJob
from duly.store.debts import Debt
from duly.store.pool import Connection
from duly.store.session import Database, retrying
from duly.worker.claimer import Clock
from duly.worker.tally import Tally

_LONGEST_NAME = 150


class Ended(NamedTuple):
    """How an attempt ended; the ending is None if the attempt's own transaction has settled it."""

    job: ClaimedJob
    hold: Hold
    ending: Ending | None
    worker_id: UUID
    counts: dict[str, float] = {}  # noqa: RUF012
    failures: tuple[dict[str, Any], ...] = ()
    seconds: float | None = None
    """How long the handler ran, if it did."""

    @property
    def is_plain(self) -> bool:
        """Whether it succeeded and left nothing but a result in its row."""
        done = self.ending
        return (
            isinstance(done, Done)
            and done.result_ref is None
            and not (done.partially or done.summary_counts or done.failure_summary)
            and self.job.run_identity_hash is None
        )


class RetryBudget(NamedTuple):
    """How many retries an org may make against one dependency."""

    per_second: float
    burst: int


class Written(NamedTuple):
    """Of the endings that were written: those that were not ours any more, and the errors."""

    lost: list[ClaimedJob]
    failed: list[tuple[ClaimedJob, Transition]]


class Writer:
    """Decides what endings mean, and writes it."""

    def __init__(
        self, app: App, database: Database, clock: Clock, budget: RetryBudget, tally: Tally | None = None
    ) -> None:
        self._app = app
        self._tally = tally or Tally()
        self._database = database
        self._clock = clock
        self._budget = budget

    def may_tell(self, ended: Ended) -> bool:
        """Whether its job type wants to be told, should this be a failure for good."""
        known, name = self._app.registry, ended.job.job_type
        bad = isinstance(ended.ending, Failed | Retry | Lost)
        return bad and name in known and bool(known.get(name).bridge)

    async def write(self, batch: Sequence[Ended], over: Iterable[UUID]) -> Written:
        """All of them or none; with them go the claims that are over."""
        if all(ended.is_plain for ended in batch):
            return await retrying(partial(self._complete, batch, list(over)))
        once = partial(self._once, batch, list(over))
        if len(batch) == 1 and self.may_tell(batch[0]):
            return await telling(once)
        return await retrying(partial(once, False))

    async def _complete(self, batch: Sequence[Ended], over: list[UUID]) -> Written:
        done = [(ended.job, ended.ending.result) for ended in batch if isinstance(ended.ending, Done)]
        async with self._database.engine_statement() as conn:
            lost = await work.complete(conn, done, worker_id=batch[0].worker_id, claim_ids=over)
        self._tally.completed(batch, lost)
        return Written([job for job, _ in done if lost and job.key in lost], [])

    async def _once(self, batch: Sequence[Ended], over: list[UUID], tell: bool) -> Written:
        live = [ended for ended in batch if ended.ending is not None]
        async with self._database.engine_session() as conn:
            decided = await self._decided(conn, live)
            who = str(batch[0].worker_id)
            kept = await work.settle(conn, decided, actor_type="worker", actor_id=who, claim_ids=over)
            if tell and kept:
                await self._tell(conn, *decided[0])
        self._tally.settled(batch, {job.key: to for job, to in decided if job.key in kept})
        failed = [(job, to) for job, to in decided if to.error is not None and job.key in kept]
        return Written([job for job, _ in decided if job.key not in kept], failed)

    async def _tell(self, conn: Connection, job: ClaimedJob, to: Transition) -> None:
        if to.status is Status.FAILED:
            debt = Debt(job.org_id, job.job_id, job.job_type)
            await pay(self._app, conn, debt, ReconciliationSource.FAILED_CALLBACK)

    async def _decided(self, conn: Connection, live: Sequence[Ended]) -> list[tuple[ClaimedJob, Transition]]:
        """What becomes of each; retries beyond the budget of their account queue up behind one another."""
        decided = [(ended, self._decide(ended, ended.ending)) for ended in live]
        again = [e for e, to in decided if isinstance(e.ending, Retry) and to.status is Status.QUEUED]
        if not again:
            return [(ended.job, to) for ended, to in decided]
        spending = Counter(_account(ended) for ended in again)
        per_second, burst = self._budget
        floors = await work.spend_retries(conn, spending, per_second=per_second, burst=burst)
        paced = {ended.job.key: self._paced(ended, floors) for ended in again}
        return [(ended.job, paced.get(ended.job.key, to)) for ended, to in decided]

    def _paced(self, ended: Ended, floors: dict[tuple[UUID, str], datetime]) -> Transition:
        account, ending = _account(ended), ended.ending
        assert isinstance(ending, Retry)
        floor = floors[account]
        floors[account] = floor + timedelta(seconds=1 / self._budget.per_second)
        wait = max(floor - self._clock.now(), ending.after or timedelta(0))
        return self._decide(ended, Retry(ending.error, wait, ending.dependency))

    def _decide(self, ended: Ended, ending: Ending | None) -> Transition:
        assert ending is not None
        retry = stored_policy(ended.job.policy).retry
        to = decide(ended.hold, ending, retry, self._clock.now(), random.random())  # noqa: S311
        if to.done is None and (ended.counts or ended.failures):
            return replace(to, summary_counts=ended.counts, failure_summary=ended.failures)
        return to


def _account(ended: Ended) -> tuple[UUID, str]:
    """Whose budget a retry spends. A long name is kept by its hash: it is part of a key."""
    dependency = getattr(ended.ending, "dependency", None) or ended.job.job_type
    name = printable(dependency)
    if len(name) > _LONGEST_NAME:
        name = (
            f"{name[:_LONGEST_NAME]}#{hashlib.sha256(dependency.encode(errors='replace')).hexdigest()[:16]}"
        )
    return (ended.job.org_id, name or ended.job.job_type)
