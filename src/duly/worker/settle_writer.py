"""Write the endings of attempts: many in one fenced statement, with the failure callbacks that are owed."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from duly.core.decide import JobState, Transition, decide
from duly.core.outcome import DONE, AttemptOutcome, Completed, Failed, Lost, Retried
from duly.core.policy import parse_stored_policy
from duly.core.reconciliation import ReconciliationSource
from duly.core.redaction import printable
from duly.core.states import Status
from duly.db.clock import Clock
from duly.db.database import Database, retry_transaction
from duly.db.pool import Connection
from duly.jobs.application import App
from duly.jobs.failure_callbacks import PendingCallback, run_failure_callback, with_failure_callbacks
from duly.worker import settle_store
from duly.worker.claim import ClaimedJob
from duly.worker.metrics import WorkerMetrics
from duly.worker.settle_store import Key

_MAX_DEPENDENCY_LENGTH = 150


class FinishedAttempt(NamedTuple):
    """How an attempt ended; the ending is None if the attempt's own transaction has settled it."""

    job: ClaimedJob
    hold: JobState
    ending: AttemptOutcome | None
    worker_id: UUID
    counts: Mapping[str, float] = {}
    failures: tuple[dict[str, Any], ...] = ()
    seconds: float | None = None
    """How long the handler ran, if it did."""

    @property
    def is_plain(self) -> bool:
        """Whether it succeeded and left nothing but a result in its row."""
        done = self.ending
        if self.job.run_identity_hash is not None:
            return False
        return done is DONE or (
            isinstance(done, Completed)
            and done.result_ref is None
            and not (done.partially or done.summary_counts or done.failure_summary)
        )


class RetryBudget(NamedTuple):
    """How many retries an org may make against one dependency."""

    per_second: float
    burst: int


class SettleResult(NamedTuple):
    """Of a written batch: the attempts whose lease was lost, and the failures."""

    lost: list[ClaimedJob]
    failed: list[tuple[ClaimedJob, Transition]]


class SettleWriter:
    """Decides what each ending means for its job, and writes it."""

    def __init__(
        self,
        app: App,
        database: Database,
        clock: Clock,
        budget: RetryBudget,
        metrics: WorkerMetrics | None = None,
    ) -> None:
        self._app = app
        self._metrics = metrics or WorkerMetrics()
        self._database = database
        self._clock = clock
        self._budget = budget

    def may_call_back(self, finished: FinishedAttempt) -> bool:
        """Whether the job type has a failure callback, and this ending may be a final failure."""
        registry, job_type = self._app.registry, finished.job.job_type
        failed = isinstance(finished.ending, Failed | Retried | Lost)
        return failed and job_type in registry and bool(registry.get(job_type).failure_callbacks)

    async def write(self, batch: Sequence[FinishedAttempt], claim_ids: Iterable[UUID]) -> SettleResult:
        """Write all endings or none, and delete the claims that end with them."""
        if all(finished.is_plain for finished in batch):
            return await self._complete(batch, list(claim_ids))
        await settle_store.leave_plain_path(self._database, [finished.job for finished in batch])
        once = partial(self._settle, batch, list(claim_ids))
        if len(batch) == 1 and self.may_call_back(batch[0]):
            return await with_failure_callbacks(once)
        return await retry_transaction(partial(once, False))

    async def _complete(self, batch: Sequence[FinishedAttempt], claim_ids: list[UUID]) -> SettleResult:
        done = [(end.job, end.ending.result) for end in batch if isinstance(end.ending, Completed)]
        plain = [pair for pair in done if pair[0].is_plain]
        stateful = [pair for pair in done if not pair[0].is_plain] if len(plain) < len(done) else []
        if plain:
            other = await retry_transaction(
                partial(self._complete_plain, plain, [] if stateful else claim_ids)
            )
            stateful += [pair for pair in plain if other and pair[0].key[:2] in other]
        lost: set[Key] = set()
        if stateful:
            lost = await retry_transaction(
                partial(self._complete_stateful, stateful, batch[0].worker_id, claim_ids)
            )
        self._metrics.completed(batch, lost)
        return SettleResult([job for job, _ in done if lost and job.key in lost], [])

    async def _complete_plain(
        self, done: Sequence[tuple[ClaimedJob, Any]], claim_ids: list[UUID]
    ) -> set[tuple[UUID, UUID]]:
        async with self._database.engine_autocommit("settle") as conn:
            return await settle_store.complete_plain(conn, done, claim_ids=claim_ids)

    async def _complete_stateful(
        self, done: Sequence[tuple[ClaimedJob, Any]], worker_id: UUID, claim_ids: list[UUID]
    ) -> set[Key]:
        async with self._database.engine_autocommit("settle") as conn:
            return await settle_store.complete(conn, done, worker_id=worker_id, claim_ids=claim_ids)

    async def _settle(
        self, batch: Sequence[FinishedAttempt], claim_ids: list[UUID], call_back: bool
    ) -> SettleResult:
        unsettled = [finished for finished in batch if finished.ending is not None]
        async with self._database.engine() as conn:
            decided = await self._decide_all(conn, unsettled)
            worker_id = str(batch[0].worker_id)
            held = await settle_store.settle(
                conn, decided, actor_type="worker", actor_id=worker_id, claim_ids=claim_ids
            )
            if call_back and held:
                await self._call_back(conn, *decided[0])
        self._metrics.settled(batch, {job.key: to for job, to in decided if job.key in held})
        failed = [(job, to) for job, to in decided if to.error is not None and job.key in held]
        return SettleResult([job for job, _ in decided if job.key not in held], failed)

    async def _call_back(self, conn: Connection, job: ClaimedJob, to: Transition) -> None:
        if to.status is Status.FAILED:
            debt = PendingCallback(job.org_id, job.job_id, job.job_type)
            await run_failure_callback(self._app, conn, debt, ReconciliationSource.FAILED_CALLBACK)

    async def _decide_all(
        self, conn: Connection, unsettled: Sequence[FinishedAttempt]
    ) -> list[tuple[ClaimedJob, Transition]]:
        """Decide the transition of each attempt; retries beyond the budget are delayed one after another."""
        decided = [(finished, self._decide(finished, finished.ending)) for finished in unsettled]
        retries = [e for e, to in decided if isinstance(e.ending, Retried) and to.status is Status.QUEUED]
        if not retries:
            return [(finished.job, to) for finished, to in decided]
        spending = Counter(map(_budget_key, retries))
        per_second, burst = self._budget
        earliest = await settle_store.spend_retries(conn, spending, per_second=per_second, burst=burst)
        paced = {finished.job.key: self._pace(finished, earliest) for finished in retries}
        return [(finished.job, paced.get(finished.job.key, to)) for finished, to in decided]

    def _pace(self, finished: FinishedAttempt, earliest: dict[tuple[UUID, str], datetime]) -> Transition:
        key, ending = _budget_key(finished), finished.ending
        assert isinstance(ending, Retried)
        not_before = earliest[key]
        earliest[key] = not_before + timedelta(seconds=1 / self._budget.per_second)
        delay = max(not_before - self._clock.now(), ending.after or timedelta(0))
        return self._decide(finished, Retried(ending.error, delay, ending.dependency))

    def _decide(self, finished: FinishedAttempt, ending: AttemptOutcome | None) -> Transition:
        assert ending is not None
        retry = parse_stored_policy(finished.job.policy).retry
        to = decide(finished.hold, ending, retry, self._clock.now(), random.random())  # noqa: S311
        if to.done is None and (finished.counts or finished.failures):
            return replace(to, summary_counts=dict(finished.counts), failure_summary=finished.failures)
        return to


def _budget_key(finished: FinishedAttempt) -> tuple[UUID, str]:
    """Return the org and dependency whose budget a retry spends. Long names end in a hash: keys are short."""
    dependency = getattr(finished.ending, "dependency", None) or finished.job.job_type
    name = printable(dependency)
    if len(name) > _MAX_DEPENDENCY_LENGTH:
        digest = hashlib.sha256(dependency.encode(errors="replace")).hexdigest()[:16]
        name = f"{name[:_MAX_DEPENDENCY_LENGTH]}#{digest}"
    return (finished.job.org_id, name or finished.job.job_type)
