"""Check the promises every few seconds on the jobs that have ended.

The promises are those of `duly.testing.history`, which the chaos tests use too. A job is checked once,
after it has ended, with its events, results and effects, against the client's records and the events feed.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

import httpx
import psycopg

from duly import Duly
from duly.core.errors import DulyError
from duly.core.states import TERMINAL_EVENT
from duly.testing.history import (
    PROMISES,
    Effect,
    FeedRead,
    History,
    JobObservation,
    PromiseViolation,
    export_jobs,
    observe_jobs,
)

from .customers import ORGS
from .job_requests import RUN_ID
from .observers import Leases, Ticks
from .probes import HttpProbes
from .submissions import SubmissionLog

log = logging.getLogger("demo")
EVERY = 3.0
BATCH = 300
MAX_REMEMBERED = 2_000
RECHECK_SAMPLE = 40
MAX_VIOLATIONS = 20
_PAGE = 500
REQUIRED_EFFECTS = {"invoice.book": ("transaction",)}
_ENDS = frozenset(event.value for event in TERMINAL_EVENT.values())
_EFFECTS = "select org_id, job_id, attempt from shop.bookings where job_id = any (%s)"
Key = tuple[UUID, UUID]


@dataclass
class PromiseState:
    """The state of one promise: the number of examined facts, and the violations."""

    promise: str
    description: str
    facts: int = 0
    broken: int = 0
    violations: list[PromiseViolation] = field(default_factory=list)
    """The first of them."""

    @property
    def verdict(self) -> str:
        """`held`, `broken`, or `unseen` without evidence."""
        return "broken" if self.broken else "held" if self.facts else "unseen"

    def add(self, facts: int, violations: Iterable[PromiseViolation]) -> None:
        """Add the result of one check."""
        found = list(violations)
        self.facts += facts
        self.broken += len(found)
        self.violations += found[: MAX_VIOLATIONS - len(self.violations)]


class Checker:
    """Checks ended jobs and keeps the state of every promise."""

    def __init__(self, app: Duly, submissions: SubmissionLog) -> None:
        self.states = {name: PromiseState(name, description) for name, description in _descriptions().items()}
        self.error = ""
        """Why the last look failed, if it did."""
        self.jobs = 0
        """How many were checked to the end."""
        self._app = app
        self._submissions = submissions
        self.probes: HttpProbes | None = None
        """Who asks over HTTP, once there is a service."""
        self._leases = Leases()
        self._ticks = Ticks()
        self._cursors: dict[UUID, str | None] = dict.fromkeys(org.org_id for org in ORGS)
        self._feed_events: dict[Key, list[tuple[UUID, int]]] = {}
        self._ended: deque[Key] = deque()
        self._remembered: OrderedDict[Key, JobObservation] = OrderedDict()

    @property
    def active(self) -> int:
        """The number of accepted jobs that have not ended or are not checked yet."""
        return len(self._submissions.open)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Check in the background until the end of the block."""
        self._cursors = {org_id: await self._app.feed.tip(org_id) for org_id in self._cursors}
        task = asyncio.create_task(self._run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            try:
                with await asyncio.to_thread(self._connect) as conn:
                    while True:
                        await self.check_once(conn)
                        await asyncio.sleep(EVERY)
            except Exception as exception:  # any error: unchecked must not look checked
                self.error = str(exception) or type(exception).__name__
                usual = isinstance(exception, psycopg.Error | httpx.HTTPError | DulyError)
                log.log(
                    logging.WARNING if usual else logging.ERROR,
                    "not checked: %s",
                    exception,
                    exc_info=not usual,
                )
                await asyncio.sleep(EVERY)

    def _connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self._app.database_urls.direct_url, autocommit=True)

    async def check_once(self, conn: psycopg.Connection[Any]) -> None:
        """Check what is new, at a cost that does not grow with the data."""
        for org_id in self._cursors:
            await self._read_feed(org_id)
        keys = [self._ended.popleft() for _ in range(min(BATCH, len(self._ended)))]
        if keys:
            history = await asyncio.to_thread(self._history, conn, keys)
            self._check(history, *_OF_JOBS)
            self._remember(history)
            self.jobs += len(keys)
        if self.probes is not None:
            self._check(History(probes=await self.probes.probe(list(self._remembered))), "I16")
            read = await self.probes.streams()
            if read:
                keys = [(one.org_id, one.job_id) for one in read]
                self._check(await asyncio.to_thread(export_jobs, conn, keys, streams=read), "I14", "I15")
        self._check(await asyncio.to_thread(self._leases.look, conn), "I17")
        self._check(await asyncio.to_thread(self._ticks.look, conn), "I13")
        self._check(await asyncio.to_thread(self._recheck, conn), "I19")
        await asyncio.to_thread(self._check_open_jobs, conn)
        self.error = ""

    async def _read_feed(self, org_id: UUID) -> None:
        page = await self._app.feed.read(org_id, self._cursors[org_id], _PAGE)
        self._cursors[org_id] = page.after
        for event in page.events:
            key = (org_id, event.job_id)
            if event.event_seq == 1:
                self._feed_events[key] = []
            if key in self._feed_events:  # jobs that began before the checker are skipped
                self._feed_events[key].append((event.job_id, event.event_seq))
                if event.event_type in _ENDS:
                    self._ended.append(key)

    def _history(self, conn: psycopg.Connection[Any], keys: list[Key]) -> History:
        job_ids = [job_id for _, job_id in keys]
        effects = [Effect("transaction", *row) for row in conn.execute(_EFFECTS, [job_ids])]
        feeds = [FeedRead("the checker", key[0], tuple(self._feed_events.pop(key, ()))) for key in keys]
        by_org = {
            org: FeedRead(
                "the checker", org, tuple(e for one in feeds if one.org_id == org for e in one.events)
            )
            for org in {org for org, _ in keys}
        }
        return export_jobs(
            conn, keys, effects=effects, feeds=list(by_org.values()), required_effects=REQUIRED_EFFECTS
        )

    def _check(self, history: History, *promises: str) -> None:
        for name in promises:
            found = _BY_NAME[name](self._with_client_records(history) if name in _OF_CLIENTS else history)
            self.states[name].add(found.facts, found)

    def _with_client_records(self, history: History) -> History:
        """Add the client's records, for the demo's own jobs only: visitors may submit others."""
        ours = [job for job in history.jobs if (job["metadata"] or {}).get("asked_by") == RUN_ID]
        records = self._submissions.of(
            [job["job_id"] for job in ours], {job["idempotency_key"] for job in ours}
        )
        return replace(
            history, jobs=ours, submissions=records.submissions, cancellations=records.cancellations
        )

    def _remember(self, history: History) -> None:
        for observation in history.observations:
            self._remembered[observation.org_id, observation.job_id] = observation
        while len(self._remembered) > MAX_REMEMBERED:
            self._remembered.popitem(last=False)

    def _recheck(self, conn: psycopg.Connection[Any]) -> History:
        """Read a sample of ended jobs again: they must not have changed."""
        sample = random.sample(list(self._remembered), min(RECHECK_SAMPLE, len(self._remembered)))
        before = [self._remembered[key] for key in sample]
        return History(observations=[*before, *observe_jobs(conn, sample, "the checker, again")])

    def _check_open_jobs(self, conn: psycopg.Connection[Any]) -> None:
        """Check that a sample of accepted jobs still exists."""
        open_ = self._submissions.open
        sample = random.sample(list(open_), min(BATCH, len(open_)))
        keys = [(records[0].org_id, job_id) for job_id in sample if (records := open_.get(job_id))]
        found_ids = {observation.job_id for observation in observe_jobs(conn, keys, "the checker")}
        lost = [
            PromiseViolation("I1", "it was accepted, and is not there", *key)
            for key in keys
            if key[1] not in found_ids
        ]
        self.states["I1"].add(0, lost)
        self._submissions.forget(key[1] for key in keys if key[1] not in found_ids or key in self._remembered)


_BY_NAME = {check.__name__.upper(): check for check in PROMISES}
_OF_CLIENTS = ("I1", "I10", "I18")
_OF_JOBS = [name for name in _BY_NAME if name not in ("I13", "I14", "I16")]
"""Those that a look at ended jobs shows."""


def _descriptions() -> dict[str, str]:
    return {name: check(History()).description for name, check in _BY_NAME.items()}
