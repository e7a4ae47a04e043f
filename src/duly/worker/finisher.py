"""Settling: endings are durable before anybody hears of it, and none waits behind another's trouble."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import groupby, islice, takewhile
from operator import attrgetter
from uuid import UUID

import psycopg

from duly.model.decide import Transition
from duly.model.errors import ContractError, StoreError
from duly.model.outcome import Ending, ErrorInfo, Failed
from duly.model.redact import cut
from duly.model.states import Outcome
from duly.observe.fields import ids_of
from duly.store.claims import ClaimedJob
from duly.worker.job_log import Lines, refused
from duly.worker.steps import Steps
from duly.worker.writer import Ended, Writer

log = logging.getLogger("duly.worker")
_BATCH = 500
_AGAIN = 0.5
# Data exceptions, integrity violations, limits of the program: trying again changes nothing.
_REFUSALS = {"22", "23", "54"}


class Claims:
    """How many jobs of each claim are not settled yet."""

    def __init__(self) -> None:
        self._open: Counter[UUID] = Counter()
        self._over: set[UUID] = set()

    def expect(self, jobs: Sequence[ClaimedJob]) -> None:
        """These were claimed and will end some day."""
        for claim_id, of_it in groupby(jobs, attrgetter("claim_id")):
            self._open[claim_id] += len(list(of_it))

    @property
    def known(self) -> list[UUID]:
        """The claims whose jobs are at work, or about to be settled."""
        return list(self._open)

    def over_with(self, done: Counter[UUID]) -> set[UUID]:
        """The claims that end with these."""
        return {claim for claim, count in done.items() if self._open[claim] <= count}

    @property
    def left_over(self) -> set[UUID]:
        """Those whose last jobs were settled at two desks at once, so that neither ended them."""
        return set(self._over)

    def settle(self, done: Counter[UUID], written: set[UUID]) -> None:
        """So many are settled, and these claims went with them."""
        self._open -= done
        self._over = {claim for claim in self._over | set(done) if claim not in self._open} - written


class Finisher:
    """Takes endings as they come: three desks, since most succeed plainly, and callbacks take time."""

    def __init__(self, writer: Writer, steps: Steps, wake: Callable[[], None], lines: Lines) -> None:
        self._writer = writer
        self._claims = Claims()
        self._plain = Desk(writer, self._claims, steps, wake, lines)
        self._other = Desk(writer, self._claims, steps, wake, lines)
        self._telling = Desk(writer, self._claims, steps, wake, lines, batch=1)
        self._desks = (self._plain, self._other, self._telling)
        self.expect = self._claims.expect

    @property
    def waiting(self) -> int:
        """Endings that are not durable yet."""
        return sum(map(len, self._desks))

    @property
    def known_claims(self) -> list[UUID]:
        """The claims whose jobs are at work, or about to be settled."""
        return self._claims.known

    def put(self, ended: Ended) -> None:
        """It ended so."""
        if ended.is_plain:
            self._plain.put(ended)
        else:
            (self._telling if self._writer.may_tell(ended) else self._other).put(ended)

    async def run(self) -> None:
        """Settle until cancelled."""
        async with asyncio.TaskGroup() as at_work:
            for desk in self._desks:
                at_work.create_task(desk.run())

    async def until_empty(self) -> None:
        """Return when everything that has ended is settled."""
        for desk in self._desks:
            await desk.empty.wait()


class Desk:
    """Settles all that came while it was busy in one go, as far as a batch goes."""

    def __init__(
        self,
        writer: Writer,
        claims: Claims,
        steps: Steps,
        wake: Callable[[], None],
        lines: Lines,
        batch: int = _BATCH,
    ) -> None:
        self._writer = writer
        self._claims = claims
        self._lines = lines
        self._steps = steps
        self._wake = wake
        self._batch = batch
        self._ended: list[Ended] = []
        self._news = asyncio.Event()
        self.empty = asyncio.Event()
        self.empty.set()

    def __len__(self) -> int:
        return len(self._ended)

    def put(self, ended: Ended) -> None:
        """One more."""
        self._ended.append(ended)
        self.empty.clear()
        self._news.set()

    async def run(self) -> None:
        """Settle until cancelled."""
        while True:
            await self._news.wait()
            await self._flush()
            self.empty.set()

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
        """What one worker held: who was declared lost goes on under another name, and events tell which."""
        who = self._ended[0].worker_id
        return list(islice(takewhile(lambda ended: ended.worker_id == who, self._ended), self._batch))

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
                said = "job %s is not settled yet, trying again: %s"
                log.warning(said, first.job.job_id, its_own, extra=ids_of(first.job))
                self._ended.append(self._ended.pop(0))
                await asyncio.sleep(_AGAIN if len(batch) == 1 else 0)
                return []
            await self._settle([_unstorable(first, its_own)])
        return [first]

    async def _settle(self, batch: list[Ended]) -> None:
        done: Counter[UUID] = Counter()
        for claim_id, of_it in groupby(batch, lambda ended: ended.job.claim_id):
            done[claim_id] += len(list(of_it))
        over = self._claims.over_with(done)
        if self._batch > 1:  # a callback would keep others waiting for them
            over |= self._claims.left_over
        lost, failed = await self._writer.write(batch, over)
        self._claims.settle(done, over)
        if lost:
            endings = {ended.job.key: ended.ending for ended in batch}
            for job in lost:
                self._report_lost(job, endings[job.key])
        for job, to in failed:
            _report(job, to)

    def _report_lost(self, job: ClaimedJob, ending: Ending | None) -> None:
        """In our log, and with the job: who looks at it sees that somebody came too late."""
        self._steps.announce("lost")
        if self._lines.level <= logging.WARNING:
            self._lines.put([refused(job, ending)], last=True)
        said = "attempt %d of job %s was lost: what it did is not written"
        log.warning(said, job.attempt, job.job_id, extra=ids_of(job))


def _report(job: ClaimedJob, to: Transition) -> None:
    """One line for every attempt that failed."""
    assert to.error is not None
    again = f"again at {to.run_at:%H:%M:%S}" if to.run_at is not None else to.outcome.value
    level = logging.ERROR if to.outcome is Outcome.DEAD else logging.WARNING
    spent = job.attempt - job.returned
    said = (job.job_id, job.job_type, spent, to.error.code, cut(to.error.message), again)
    about = {**ids_of(job), "queue": job.queue, **_facts(to.error)}
    log.log(level, "job %s (%s), attempt %d: %s: %s; %s", *said, extra=about)


def _facts(error: ErrorInfo) -> dict[str, str]:
    """What broke, and where in the application."""
    where = error.context.get("where")
    found = {"error_code": error.code, "error_class": error.error_class}
    found["where"] = f"{where['file']}:{where['line']}" if where else ""
    return {name: value for name, value in found.items() if value}


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
