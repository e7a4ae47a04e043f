"""The promises, asked of what really happened: every few seconds, of the jobs that ended meanwhile.

The promises are those of `duly.testing.history`, which also judge the chaos runs. A job is checked once, when
it has ended, with all its events, results and effects, against what was asked for and what the feed told.
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

from .asked import Asked
from .outside import Outside
from .people import ORGS
from .watching import Leases, Ticks
from .wishes import ASKED_BY

log = logging.getLogger("demo")
EVERY = 3.0
_AT_ONCE = 300
_REMEMBERED = 2_000
_AGAIN = 40
_SHOWN = 20
_PAGE = 500
_MAKES = {"invoice.book": ("transaction",)}
_ENDS = frozenset(event.value for event in TERMINAL_EVENT.values())
_EFFECTS = "select org_id, job_id, attempt from shop.bookings where job_id = any (%s)"
Key = tuple[UUID, UUID]


@dataclass
class Standing:
    """How one promise stands: so many facts were examined, and these spoke against it."""

    promise: str
    words: str
    facts: int = 0
    broken: int = 0
    violations: list[PromiseViolation] = field(default_factory=list)
    """The first of them."""

    @property
    def verdict(self) -> str:
        """`held`, `broken`, or `unseen` while there is no evidence."""
        return "broken" if self.broken else "held" if self.facts else "unseen"

    def add(self, facts: int, violations: Iterable[PromiseViolation]) -> None:
        """What one look found."""
        found = list(violations)
        self.facts += facts
        self.broken += len(found)
        self.violations += found[: _SHOWN - len(self.violations)]


class Checker:
    """Looks at what ended, and keeps how every promise stands."""

    def __init__(self, app: Duly, asked: Asked) -> None:
        self.standings = {name: Standing(name, words) for name, words in _in_words().items()}
        self.trouble = ""
        """Why the last look failed, if it did."""
        self.jobs = 0
        """How many were checked to the end."""
        self._app = app
        self._asked = asked
        self.outside: Outside | None = None
        """Who asks over HTTP, once there is a service."""
        self._leases = Leases()
        self._ticks = Ticks()
        self._cursors: dict[UUID, str | None] = dict.fromkeys(org.org_id for org in ORGS)
        self._seen: dict[Key, list[tuple[UUID, int]]] = {}
        self._ended: deque[Key] = deque()
        self._remembered: OrderedDict[Key, JobObservation] = OrderedDict()

    @property
    def active(self) -> int:
        """Jobs that were accepted and have not ended, or are to be checked."""
        return len(self._asked.open)

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        """From now on, until the end of the block."""
        self._cursors = {org_id: await self._app.feed.tip(org_id) for org_id in self._cursors}
        running = asyncio.create_task(self._look_on())
        try:
            yield
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    async def _look_on(self) -> None:
        while True:
            try:
                with await asyncio.to_thread(self._connect) as conn:
                    while True:
                        await self.look(conn)
                        await asyncio.sleep(EVERY)
            except Exception as error:  # whatever it is: what is not checked must not look as if it were
                self.trouble = str(error) or type(error).__name__
                usual = isinstance(error, psycopg.Error | httpx.HTTPError | DulyError)
                log.log(
                    logging.WARNING if usual else logging.ERROR, "not checked: %s", error, exc_info=not usual
                )
                await asyncio.sleep(EVERY)

    def _connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self._app.database_urls.direct_url, autocommit=True)

    async def look(self, conn: psycopg.Connection[Any]) -> None:
        """One look at everything that is new; what it costs does not grow with what there is."""
        for org_id in self._cursors:
            await self._read_feed(org_id)
        keys = [self._ended.popleft() for _ in range(min(_AT_ONCE, len(self._ended)))]
        if keys:
            history = await asyncio.to_thread(self._history, conn, keys)
            self._check(history, *_OF_JOBS)
            self._remember(history)
            self.jobs += len(keys)
        if self.outside is not None:
            self._check(History(probes=await self.outside.probe(list(self._remembered))), "I16")
            read = await self.outside.streams()
            if read:
                keys = [(one.org_id, one.job_id) for one in read]
                self._check(await asyncio.to_thread(export_jobs, conn, keys, streams=read), "I14", "I15")
        self._check(await asyncio.to_thread(self._leases.look, conn), "I17")
        self._check(await asyncio.to_thread(self._ticks.look, conn), "I13")
        self._check(await asyncio.to_thread(self._again, conn), "I19")
        await asyncio.to_thread(self._still_there, conn)
        self.trouble = ""

    async def _read_feed(self, org_id: UUID) -> None:
        page = await self._app.feed.read(org_id, self._cursors[org_id], _PAGE)
        self._cursors[org_id] = page.after
        for event in page.events:
            key = (org_id, event.job_id)
            if event.event_seq == 1:
                self._seen[key] = []
            if key in self._seen:  # from its beginning on: what began before we looked is not ours to judge
                self._seen[key].append((event.job_id, event.event_seq))
                if event.event_type in _ENDS:
                    self._ended.append(key)

    def _history(self, conn: psycopg.Connection[Any], keys: list[Key]) -> History:
        job_ids = [job_id for _, job_id in keys]
        effects = [Effect("transaction", *row) for row in conn.execute(_EFFECTS, [job_ids])]
        feeds = [FeedRead("the checker", key[0], tuple(self._seen.pop(key, ()))) for key in keys]
        by_org = {
            org: FeedRead(
                "the checker", org, tuple(e for one in feeds if one.org_id == org for e in one.events)
            )
            for org in {org for org, _ in keys}
        }
        return export_jobs(conn, keys, effects=effects, feeds=list(by_org.values()), required_effects=_MAKES)

    def _check(self, history: History, *promises: str) -> None:
        for name in promises:
            found = _BY_NAME[name](self._as_asked(history) if name in _OF_CLIENTS else history)
            self.standings[name].add(found.facts, found)

    def _as_asked(self, history: History) -> History:
        """With what we asked, of the jobs that we asked for: visitors of the demo may ask for others."""
        ours = [job for job in history.jobs if (job["metadata"] or {}).get("asked_by") == ASKED_BY]
        said = self._asked.of([job["job_id"] for job in ours], {job["idempotency_key"] for job in ours})
        return replace(history, jobs=ours, submissions=said.submissions, cancellations=said.cancellations)

    def _remember(self, history: History) -> None:
        for sight in history.observations:
            self._remembered[sight.org_id, sight.job_id] = sight
        while len(self._remembered) > _REMEMBERED:
            self._remembered.popitem(last=False)

    def _again(self, conn: psycopg.Connection[Any]) -> History:
        """Some that had ended before: they must not have changed since."""
        some = random.sample(list(self._remembered), min(_AGAIN, len(self._remembered)))
        before = [self._remembered[key] for key in some]
        return History(observations=[*before, *observe_jobs(conn, some, "the checker, again")])

    def _still_there(self, conn: psycopg.Connection[Any]) -> None:
        """Of what was accepted and is not known to have ended: it is there, and ended or at work."""
        open_ = self._asked.open
        some = random.sample(list(open_), min(_AT_ONCE, len(open_)))
        keys = [(said[0].org_id, job_id) for job_id in some if (said := open_.get(job_id))]
        there = {sight.job_id for sight in observe_jobs(conn, keys, "the checker")}
        lost = [
            PromiseViolation("I1", "it was accepted, and is not there", *key)
            for key in keys
            if key[1] not in there
        ]
        self.standings["I1"].add(0, lost)
        self._asked.forget(key[1] for key in keys if key[1] not in there or key in self._remembered)


_BY_NAME = {promise.__name__.upper(): promise for promise in PROMISES}
_OF_CLIENTS = ("I1", "I10", "I18")
_OF_JOBS = [name for name in _BY_NAME if name not in ("I13", "I14", "I16")]
"""Those that a look at ended jobs shows."""


def _in_words() -> dict[str, str]:
    return {name: promise(History()).description for name, promise in _BY_NAME.items()}
