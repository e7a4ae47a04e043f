"""Settling: many endings in one fenced statement, durable before anybody hears of it."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from itertools import islice, takewhile
from typing import Any, NamedTuple
from uuid import UUID

import psycopg

from duly.client.app import App
from duly.client.bridge import pay
from duly.model.decide import Hold, Transition, decide
from duly.model.errors import ContractError, StoreError
from duly.model.outcome import Ending, ErrorInfo, Failed, Lost, Retry
from duly.model.policy import stored_policy
from duly.model.reconciliation import ReconciliationSource
from duly.model.redact import printable
from duly.model.states import Outcome, Status
from duly.store import work
from duly.store.claims import ClaimedJob
from duly.store.debts import Debt
from duly.store.pool import Connection
from duly.store.session import Database, retrying
from duly.store.work import Key
from duly.worker.claimer import Clock
from duly.worker.steps import Steps

log = logging.getLogger("duly.worker")
_BATCH = 500
_AGAIN = 0.5
_LONGEST_NAME = 150
# Data exceptions, integrity violations, limits of the program: trying again changes nothing.
_REFUSALS = {"22", "23", "54"}


class Ended(NamedTuple):
    """How an attempt ended; the ending is None if the attempt's own transaction has settled it."""

    job: ClaimedJob
    hold: Hold
    ending: Ending | None
    worker_id: UUID
    counts: dict[str, float] = {}  # noqa: RUF012
    failures: tuple[dict[str, Any], ...] = ()


class RetryBudget(NamedTuple):
    """How many retries an org may make against one dependency."""

    per_second: float
    burst: int


class Finisher:
    """Takes endings as they come, and settles all that came while it was busy in one go."""

    def __init__(
        self,
        app: App,
        database: Database,
        clock: Clock,
        steps: Steps,
        budget: RetryBudget,
        wake: Callable[[], None],
    ) -> None:
        self._app = app
        self._database = database
        self._clock = clock
        self._steps = steps
        self._budget = budget
        self._wake = wake
        self._ended: list[Ended] = []
        self._news = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()
        self._claims: Counter[UUID] = Counter()

    @property
    def waiting(self) -> int:
        """Endings that are not durable yet."""
        return len(self._ended)

    def expect(self, jobs: Sequence[ClaimedJob]) -> None:
        """These were claimed and will end some day."""
        self._claims.update(job.claim_id for job in jobs)

    @property
    def known_claims(self) -> list[UUID]:
        """The claims whose jobs are at work, or about to be settled."""
        return list(self._claims)

    def put(self, ended: Ended) -> None:
        """It ended so."""
        self._ended.append(ended)
        self._empty.clear()
        self._news.set()

    async def run(self) -> None:
        """Settle until cancelled."""
        while True:
            await self._news.wait()
            await self._flush()
            self._empty.set()

    async def until_empty(self) -> None:
        """Return when everything that has ended is settled."""
        await self._empty.wait()

    async def _flush(self) -> None:
        """Does not give up: what is not written is not over."""
        while self._ended:
            batch = self._next_batch()
            try:
                batch = await self._settle_what_can_be(batch)
            except Exception as error:
                # Usually the database is away. Whatever it is: without us nothing would end any more.
                unusual = not isinstance(error, psycopg.Error | StoreError)
                log.warning(
                    "%d endings are not written, trying again: %s", len(batch), error, exc_info=unusual
                )
                await asyncio.sleep(_AGAIN)
                continue
            del self._ended[: len(batch)]
            if batch:
                self._steps.announce("settled", len(batch))
                self._wake()
        self._news.clear()

    def _next_batch(self) -> list[Ended]:
        """What one worker held, but alone whoever may have somebody to tell: a callback takes its time.

        A worker that was declared lost starts over under another identity, and its events say which.
        """
        first = self._ended[0]
        if self._may_tell(first):
            return [first]
        ours = takewhile(lambda e: e.worker_id == first.worker_id and not self._may_tell(e), self._ended)
        return list(islice(ours, _BATCH))

    def _may_tell(self, ended: Ended) -> bool:
        known, name = self._app.registry, ended.job.job_type
        return (
            isinstance(ended.ending, Failed | Retry | Lost) and name in known and bool(known.get(name).bridge)
        )

    async def _settle_what_can_be(self, batch: list[Ended]) -> list[Ended]:
        """Settle them all, or else the first alone; those that are settled."""
        try:
            await self._settle(batch)
        except Exception as error:
            if not _is_refusal(error):
                raise
            return await self._settle_first(batch, error)
        return batch

    async def _settle_first(self, batch: list[Ended], error: Exception) -> list[Ended]:
        """One of them is refused: find it, and let it fail alone, or wait alone."""
        first = batch[0]
        try:
            if len(batch) > 1 or _is_locked(error):
                await self._settle([first])
            else:
                await self._settle([_unstorable(first, error)])
        except Exception as its_own:
            if not _is_refusal(its_own):
                raise
            if _is_locked(its_own) or len(batch) == 1:
                # The others must not wait behind it.
                log.warning("job %s is not settled yet, trying again: %s", first.job.job_id, its_own)
                self._ended.append(self._ended.pop(0))
                await asyncio.sleep(_AGAIN if len(batch) == 1 else 0)
                return []
            await self._settle([_unstorable(first, its_own)])
        return [first]

    async def _settle(self, batch: list[Ended]) -> None:
        live = [ended for ended in batch if ended.ending is not None]
        done = Counter(ended.job.claim_id for ended in batch)
        over = [claim for claim, count in done.items() if self._claims[claim] <= count]

        decided: list[tuple[ClaimedJob, Transition]] = []

        async def once(tell: bool) -> set[Key]:
            async with self._database.engine_session() as conn:
                decided[:] = await self._decided(conn, live)
                who = str(batch[0].worker_id)
                kept = await work.settle(conn, decided, actor_type="worker", actor_id=who, claim_ids=over)
                if tell and kept:
                    await self._tell(conn, live[0], decided[0][1])
                return kept

        kept = (
            await self._telling(once)
            if any(map(self._may_tell, live))
            else await retrying(partial(once, False))
        )
        self._claims -= done
        for job, to in decided:
            if job.key not in kept:
                self._report_lost(job)
            elif to.error is not None:
                _report(job, to)

    async def _telling(self, once: Callable[[bool], Awaitable[set[Key]]]) -> set[Key]:
        """With the callback; should it break the transaction, then without: the debt remains."""
        try:
            return await retrying(partial(once, True))
        except (psycopg.Error, StoreError) as error:
            log.warning("a callback broke the transaction that ends its job, and comes later: %s", error)
            return await retrying(partial(once, False))

    async def _tell(self, conn: Connection, ended: Ended, to: Transition) -> None:
        if to.status is Status.FAILED and self._may_tell(ended):
            job = ended.job
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

    def _report_lost(self, job: ClaimedJob) -> None:
        self._steps.announce("lost")
        log.warning("attempt %d of job %s was lost: what it did is not written", job.attempt, job.job_id)


def _report(job: ClaimedJob, to: Transition) -> None:
    """One line for every attempt that failed."""
    assert to.error is not None
    again = f"again at {to.run_at:%H:%M:%S}" if to.run_at is not None else to.outcome.value
    level = logging.ERROR if to.outcome is Outcome.DEAD else logging.WARNING
    spent = job.attempt - job.returned
    said = (job.job_id, job.job_type, spent, to.error.code, to.error.message, again)
    log.log(level, "job %s (%s), attempt %d: %s: %s; %s", *said)


def _account(ended: Ended) -> tuple[UUID, str]:
    """Whose budget a retry spends. A long name is kept by its hash: it is part of a key."""
    dependency = getattr(ended.ending, "dependency", None) or ended.job.job_type
    name = printable(dependency)
    if len(name) > _LONGEST_NAME:
        name = (
            f"{name[:_LONGEST_NAME]}#{hashlib.sha256(dependency.encode(errors='replace')).hexdigest()[:16]}"
        )
    return (ended.job.org_id, name or ended.job.job_type)


def _is_refusal(error: Exception) -> bool:
    """Whether the database said no to what it was given, rather than being away, busy or in conflict."""
    if not isinstance(error, psycopg.Error):
        return isinstance(error, ValueError | TypeError | ContractError)
    return _is_locked(error) or (error.sqlstate or "")[:2] in _REFUSALS


def _is_locked(error: Exception) -> bool:
    return isinstance(error, psycopg.errors.LockNotAvailable)


def _unstorable(ended: Ended, error: Exception) -> Ended:
    said = f"PostgreSQL refused what the handler left: {type(error).__name__}"
    return ended._replace(ending=Failed(ErrorInfo("result.unstorable", said)), counts={}, failures=())
