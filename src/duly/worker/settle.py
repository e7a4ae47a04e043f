"""Settle finished attempts: in batches, retried until durable; no attempt blocks the others."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import groupby, islice
from operator import attrgetter
from uuid import UUID

import psycopg

from duly.core.decide import Transition
from duly.core.errors import ContractError, StoreError
from duly.core.outcome import AttemptOutcome, ErrorInfo, Failed
from duly.core.redaction import truncate
from duly.core.states import Outcome
from duly.observability.logs import ids_of
from duly.worker.claim import ClaimedJob
from duly.worker.job_log import JobLogSink, refused_line
from duly.worker.loop_events import LoopEvents
from duly.worker.settle_writer import FinishedAttempt, SettleWriter

log = logging.getLogger("duly.worker")
_MAX_BATCH = 500
_RETRY_PAUSE = 0.5
# Data exceptions, integrity violations, program limits: another try changes nothing.
_REFUSALS = {"22", "23", "54"}


class OpenClaims:
    """Counts the jobs of each claim that are not settled yet."""

    def __init__(self) -> None:
        self._open: Counter[UUID] = Counter()
        self._left_over: set[UUID] = set()

    def expect(self, jobs: Sequence[ClaimedJob]) -> None:
        """Add claimed jobs, which will be settled later."""
        for claim_id, of_claim in groupby(jobs, attrgetter("claim_id")):
            self._open[claim_id] += len(list(of_claim))

    @property
    def known(self) -> list[UUID]:
        """The claims with unsettled jobs."""
        return list(self._open)

    def completed_by(self, settled: Counter[UUID]) -> set[UUID]:
        """Return the claims whose last jobs these are."""
        return {claim for claim, count in settled.items() if self._open[claim] <= count}

    @property
    def left_over(self) -> set[UUID]:
        """The claims whose last jobs were settled by two queues at once, so that neither deleted them."""
        return set(self._left_over)

    def settle(self, settled: Counter[UUID], deleted: set[UUID]) -> None:
        """Subtract settled jobs, and the claims that were deleted with them."""
        self._open -= settled
        without_jobs = {claim for claim in self._left_over | set(settled) if claim not in self._open}
        self._left_over = without_jobs - deleted


class Settler:
    """Settles attempts through three queues: plain successes, the rest, and those with a failure callback."""

    def __init__(
        self, writer: SettleWriter, events: LoopEvents, wake: Callable[[], None], job_log: JobLogSink
    ) -> None:
        self._writer = writer
        self._claims = OpenClaims()
        self._plain = SettleQueue(writer, self._claims, events, wake, job_log)
        self._other = SettleQueue(writer, self._claims, events, wake, job_log)
        # Callbacks are user code and take time: one at a time, and other endings do not wait for them.
        self._with_callback = SettleQueue(writer, self._claims, events, wake, job_log, max_batch=1)
        self._queues = (self._plain, self._other, self._with_callback)
        self.expect = self._claims.expect

    @property
    def waiting(self) -> int:
        """Number of finished attempts that are not durable yet."""
        return sum(map(len, self._queues))

    @property
    def known_claims(self) -> list[UUID]:
        """The claims with unsettled jobs."""
        return self._claims.known

    def put(self, finished: FinishedAttempt) -> None:
        """Have a finished attempt settled."""
        if finished.is_plain:
            self._plain.put(finished)
        else:
            (self._with_callback if self._writer.may_call_back(finished) else self._other).put(finished)

    async def run(self) -> None:
        """Settle until cancelled."""
        async with asyncio.TaskGroup() as group:
            for queue in self._queues:
                group.create_task(queue.run())

    async def until_empty(self) -> None:
        """Return when every finished attempt is settled."""
        for queue in self._queues:
            await queue.empty.wait()


class SettleQueue:
    """Settles everything that arrived during the last write as one batch."""

    def __init__(
        self,
        writer: SettleWriter,
        claims: OpenClaims,
        events: LoopEvents,
        wake: Callable[[], None],
        job_log: JobLogSink,
        max_batch: int = _MAX_BATCH,
    ) -> None:
        self._writer = writer
        self._claims = claims
        self._job_log = job_log
        self._events = events
        self._wake = wake
        self._max_batch = max_batch
        self._finished: list[FinishedAttempt] = []
        self._arrived = asyncio.Event()
        self.empty = asyncio.Event()
        self.empty.set()

    def __len__(self) -> int:
        return len(self._finished)

    def put(self, finished: FinishedAttempt) -> None:
        """Add a finished attempt."""
        if not self._finished:
            self.empty.clear()
            self._arrived.set()
        self._finished.append(finished)

    async def run(self) -> None:
        """Settle until cancelled."""
        while True:
            await self._arrived.wait()
            await self._flush()
            self.empty.set()

    async def _flush(self) -> None:
        """Settle everything; retry for ever, because an attempt that is not written has not ended."""
        while self._finished:
            batch = self._next_batch()
            try:
                batch = await self._settle_accepted(batch)
            except Exception as error:
                # Usually the database is away. Whatever it is: without this loop no job would end any more.
                unusual = not isinstance(error, psycopg.Error | StoreError)
                log.warning("could not settle %d attempts, retrying: %s", len(batch), error, exc_info=unusual)
                await asyncio.sleep(_RETRY_PAUSE)
                continue
            del self._finished[: len(batch)]
            if batch:
                self._events.record("settled", len(batch))
                self._wake()
        self._arrived.clear()

    def _next_batch(self) -> list[FinishedAttempt]:
        """Return the next attempts of one worker id.

        A worker that was declared lost continues under a new id, and events name the id that held the job.
        """
        _, same_worker = next(groupby(self._finished, attrgetter("worker_id")))
        return list(islice(same_worker, self._max_batch))

    async def _settle_accepted(self, batch: list[FinishedAttempt]) -> list[FinishedAttempt]:
        """Settle the batch or, if the database refuses it, its first attempt; return what was settled."""
        try:
            await self._settle(batch)
        except Exception as error:
            if not _is_refusal(error):
                raise
            return await self._settle_first(batch, error)
        return batch

    async def _settle_first(self, batch: list[FinishedAttempt], error: Exception) -> list[FinishedAttempt]:
        """Settle the first attempt alone, so that a refused one fails alone, or waits alone."""
        first = batch[0]
        try:
            if len(batch) > 1 or _is_locked(error):
                await self._settle([first])
            else:
                await self._settle([_unstorable(first, error)])
        except Exception as first_error:
            if not _is_refusal(first_error):
                raise
            if _is_locked(first_error) or len(batch) == 1:
                # The others must not wait behind it.
                log.warning(
                    "could not settle job %s, retrying: %s",
                    first.job.job_id,
                    first_error,
                    extra=ids_of(first.job),
                )
                self._finished.append(self._finished.pop(0))
                await asyncio.sleep(_RETRY_PAUSE if len(batch) == 1 else 0)
                return []
            await self._settle([_unstorable(first, first_error)])
        return [first]

    async def _settle(self, batch: list[FinishedAttempt]) -> None:
        settled: Counter[UUID] = Counter()
        for claim_id, of_claim in groupby(batch, attrgetter("job.claim_id")):
            settled[claim_id] += len(list(of_claim))
        claim_ids = self._claims.completed_by(settled)
        if self._max_batch > 1:  # a callback would hold their rows while it runs
            claim_ids |= self._claims.left_over
        lost, failed = await self._writer.write(batch, claim_ids)
        self._claims.settle(settled, claim_ids)
        if lost:
            endings = {finished.job.key: finished.ending for finished in batch}
            for job in lost:
                self._report_lost(job, endings[job.key])
        for job, to in failed:
            _report_failure(job, to)

    def _report_lost(self, job: ClaimedJob, ending: AttemptOutcome | None) -> None:
        """Report an attempt that came too late, in the worker's log and in the job's."""
        self._events.record("lost")
        if self._job_log.level <= logging.WARNING:
            self._job_log.put([refused_line(job, ending)], last=True)
        log.warning(
            "attempt %d of job %s lost its lease; its writes were refused",
            job.attempt,
            job.job_id,
            extra=ids_of(job),
        )


def _report_failure(job: ClaimedJob, to: Transition) -> None:
    """Log one line for a failed attempt."""
    assert to.error is not None
    next_step = f"retry at {to.run_at:%H:%M:%S}" if to.run_at is not None else to.outcome.value
    level = logging.ERROR if to.outcome is Outcome.DEAD else logging.WARNING
    spent = job.attempt - job.returned
    values = (job.job_id, job.job_type, spent, to.error.code, truncate(to.error.message), next_step)
    fields = {**ids_of(job), "queue": job.queue, **_error_fields(to.error)}
    log.log(level, "job %s (%s), attempt %d: %s: %s; %s", *values, extra=fields)


def _error_fields(error: ErrorInfo) -> dict[str, str]:
    """Return the log fields of an error: its code, its class, and where in the application it was raised."""
    where = error.context.get("where")
    fields = {"error_code": error.code, "error_class": error.error_class}
    fields["where"] = f"{where['file']}:{where['line']}" if where else ""
    return {name: value for name, value in fields.items() if value}


def _is_refusal(error: Exception) -> bool:
    """Whether the database refused the values, rather than being away, busy or in conflict."""
    if not isinstance(error, psycopg.Error):
        return isinstance(error, ValueError | TypeError | ContractError)
    return _is_locked(error) or (error.sqlstate or "")[:2] in _REFUSALS


def _is_locked(error: Exception) -> bool:
    return isinstance(error, psycopg.errors.LockNotAvailable)


def _unstorable(finished: FinishedAttempt, error: Exception) -> FinishedAttempt:
    message = f"PostgreSQL refused the result of the handler: {type(error).__name__}"
    return finished._replace(ending=Failed(ErrorInfo("result.unstorable", message)), counts={}, failures=())
