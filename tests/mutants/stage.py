"""The environment of scenarios: an application on its own database, and a log of requests and reads."""

from __future__ import annotations

import tempfile
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg

from duly import Actor, Context, Duly, Handle, Job, context, errors
from duly.features.events.service import Feed
from duly.testing import DatabaseCluster
from duly.testing.history import (
    Cancellation,
    Effect,
    FeedRead,
    History,
    Observer,
    RecordedSubmission,
    StreamRead,
    by_field,
    export,
)
from duly.testing.history.recorder import Record
from duly.worker.worker import Worker
from tests.worker.working import until

USER = Actor.user("u1")
_TABLES = """
create table public.effects (
    org_id uuid, job_id uuid, attempt int, kind text default 'transaction', parent int,
    id int generated always as identity primary key,
    foreign key (parent) references public.effects (id) deferrable initially deferred);
grant insert, select on public.effects to duly_tenant;
"""
_EFFECT = "insert into public.effects (org_id, job_id, attempt, kind, parent) values (%s, %s, %s, %s, %s)"
_BUSY = """
select exists (select from duly.ready)
    or exists (select from duly.scheduled where run_at < duly.now() + interval '1 minute')
    or exists (select from duly.claims where worker_id = %s)
"""


class Stage:
    """Two orgs, an application without jobs, and the records."""

    def __init__(self, app: Duly, sql: psycopg.Connection[Any]) -> None:
        self.app = app
        self.sql = sql
        self.org, self.other = uuid.uuid4(), uuid.uuid4()
        self.required_effects: dict[str, tuple[str, ...]] = {}
        self._records: list[Record] = []
        self._feeds: dict[uuid.UUID, list[tuple[uuid.UUID, int]]] = defaultdict(list)
        self._cursors: dict[uuid.UUID, str | None] = {}
        self._observer = Observer("o1", self._records.append, parts=1)

    def keep(self, record: Record) -> None:
        """Record something."""
        self._records.append(record)

    def observe(self) -> None:
        """Let the observer read the tables."""
        self._observer.observe(self.sql)

    async def ask(self, job: Job[..., Any], *args: Any, key: str, conn: Any = None) -> Handle[Any]:
        """Submit a job as a client."""
        [handle] = await self.ask_many(job, args, keys=[key], conn=conn)
        return handle

    async def ask_many(
        self, job: Job[..., Any], args: tuple[Any, ...], *, keys: list[str], conn: Any = None
    ) -> list[Handle[Any]]:
        """Submit several jobs at once as a client."""
        with context(org_id=self.org, actor=USER):
            calls = [job.options(idempotency_key=key).call(*args) for key in keys]
            handles = await self.app.enqueue_many(calls, conn=conn)
        for key, handle in zip(keys, handles, strict=True):
            self.keep(RecordedSubmission("c1", self.org, key, job.name, "ok", handle.job_id))
        return handles

    async def cancel(self, handle: Handle[Any]) -> None:
        """Cancel a job as a client."""
        with context(org_id=handle.org_id, actor=USER):
            told = await handle.cancel("enough")
        self.keep(Cancellation("c1", handle.org_id, handle.job_id, "ok", told.value))

    async def write_effect(self, ctx: Context, conn: Any, *, parent: int | None = None) -> None:
        """Write an effect in `ctx.transaction()`."""
        job = ctx.job
        await conn.execute(_EFFECT, [job.org_id, job.job_id, job.attempt, "transaction", parent])

    async def write_bridge(self, failure: Any, conn: Any) -> None:
        """Record a failure callback."""
        job = failure.job
        await conn.execute(_EFFECT, [job.org_id, job.job_id, job.attempt, "bridge", None])

    def act_outside(self, ctx: Context) -> None:
        """Record an effect outside of any transaction."""
        job = ctx.job
        self.keep(Effect("outside", job.org_id, job.job_id, job.attempt, f"key-{job.job_id}"))

    async def rest(self, worker: Worker) -> None:
        """Wait until the worker is idle."""
        while True:
            await worker.loop_events.wait("idle", worker.loop_events.counts["idle"] + 2)
            if self.sql.execute(_BUSY, [worker.worker_id]).fetchone() == (False,):
                return

    async def read_stream(self, handle: Handle[Any]) -> None:
        """Read the events of a job if it has ended, reconnecting after each of them."""
        ended = "select true from duly.jobs where job_id = %s and finished_at is not null"
        if not self.sql.execute(ended, [handle.job_id]).fetchone():
            return
        seen: list[tuple[int, str]] = []
        while event := await anext(handle.events(after=seen[-1][0] if seen else 0), None):
            seen.append((event.event_seq, event.event_type))
        self.keep(StreamRead("r1", handle.org_id, handle.job_id, tuple(seen), to_the_end=True))

    async def read_feed(self, org: uuid.UUID | None = None) -> None:
        """Read new events of an org's feed."""
        org = org or self.org
        feed, more = Feed(self.app), True
        while more:
            page = await feed.read(org, self._cursors.get(org))
            self._feeds[org] += [(event.job_id, event.event_seq) for event in page.events]
            self._cursors[org], more = page.after, page.more

    async def read_feed_to_its_end(self) -> None:
        """Read the feed when the system is idle and no older transaction is open."""
        [now] = self.sql.execute("select pg_current_xact_id()::text").fetchone() or [""]
        await until(self.sql, f"select pg_snapshot_xmin(pg_current_snapshot()) > '{now}'::xid8")
        await self.read_feed()

    def history(self) -> History:
        """Return everything that was recorded."""
        for org, events in self._feeds.items():
            self.keep(FeedRead("f1", org, tuple(events)))
        for org, job, attempt, kind in self.sql.execute(
            "select org_id, job_id, attempt, kind from public.effects"
        ).fetchall():
            self.keep(Effect(kind, org, job, attempt))
        return export(self.sql, required_effects=self.required_effects, **by_field(self._records))


@asynccontextmanager
async def staged(cluster: DatabaseCluster) -> AsyncIterator[Stage]:
    """Return a stage on a fresh database."""
    with (
        cluster.fresh() as fresh,
        tempfile.TemporaryDirectory() as blobs,
        psycopg.connect(fresh.direct_url, autocommit=True) as sql,
    ):
        sql.execute(_TABLES)
        pooled = fresh.direct_url if fresh.url != fresh.direct_url else None
        app = Duly(database_url=fresh.url, database_direct_url=pooled, blobs_url=blobs, maintenance=False)
        try:
            stage = Stage(app, sql)
            for org in (stage.org, stage.other):
                await app.create_org(org, "Acme")
            yield stage
        finally:
            await app.close()


async def answer(question: Any) -> str:
    """Return the answer to a caller, as text."""
    try:
        return str(await question)
    except errors.DulyError as error:
        return f"{type(error).__name__}: {error}"
