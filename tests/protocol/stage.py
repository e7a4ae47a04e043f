"""The real statements on a real database, called from synchronous code, with a controlled clock."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

import psycopg
from psycopg.rows import dict_row

from duly.db.database import Database
from duly.db.pool import Connection
from duly.jobs import registry
from duly.testing import FreshDatabase
from duly.worker import workers_store as workers
from duly.worker.workers_store import HeldJobUpdate

T = TypeVar("T")
_CLOCK = "select set_config('duly.now', %s, {})"
_EMPTIED = ("claims", "workers", "ready", "scheduled")
# One plan for all reads: with this many partitions, planning takes longer than execution.
_PLANNED = "-c plan_cache_mode=force_generic_plan -c jit=off"
_PICTURE = """
select r.job_id, coalesce(s.status, 'queued') as status, coalesce(s.outcome, 'pending') as outcome,
       coalesce(s.attempt, 0) as attempt, coalesce(s.returned, 0) as returned,
       coalesce(s.event_seq, 1) as event_seq, coalesce(s.error_count, 0) as errors,
       coalesce(s.partial_count, 0) as partials, coalesce(s.progress_percent, 0) as progress,
       s.cancel_requested_at is not null as cancel,
       case when s.status in ('running', 'partial') then s.worker_id end as holder,
       array(select e.event_type from duly.events_of(r.org_id, r.job_id) e order by e.event_seq) as events,
       array(select e.event_seq from duly.events_of(r.org_id, r.job_id) e order by e.event_seq) as event_seqs,
       array(select e.event_seq from duly.all_events e where e.org_id = r.org_id and e.job_id = r.job_id
             order by e.event_seq) as seqs_by_commit,
       array(select x.result_kind from duly.all_results x
             where x.org_id = r.org_id and x.job_id = r.job_id order by x.result_seq) as results,
       array(select x.result_seq from duly.all_results x
             where x.org_id = r.org_id and x.job_id = r.job_id order by x.result_seq) as result_seqs,
       array(select x ->> 'status' from jsonb_array_elements(s.context -> 'reconciliations') x) as records,
       (select count(*) from duly.ready q where q.org_id = r.org_id and q.job_id = r.job_id) as ready,
       array(select q.run_at from duly.scheduled q
             where q.org_id = r.org_id and q.job_id = r.job_id) as scheduled,
       (select count(*) from duly.dead_letters d
        where d.org_id = r.org_id and d.job_id = r.job_id) as letters,
       (select count(*) from duly.bridge_debts d where d.org_id = r.org_id and d.job_id = r.job_id) as debts
from duly.job_records r
left join lateral (select x.* from duly.state_of(r.org_id, r.job_id) x) s on true
where r.org_id = any (%s) order by r.job_id
"""


class Picture(NamedTuple):
    """The content of the tables: jobs by id, and claims."""

    jobs: dict[UUID, dict[str, Any]]
    claims: dict[UUID, tuple[UUID, list[UUID]]]


class _Undone(Exception):
    """Raised to leave a session with a rollback."""


class Stage:
    """One database for many examples. Each has its own orgs and starts with empty queues."""

    def __init__(self, fresh: FreshDatabase) -> None:
        self._runner = asyncio.Runner()
        self._database = Database(fresh.url, pooled=fresh.url != fresh.direct_url)
        self._runner.run(self._database.open())
        self._sql = psycopg.connect(fresh.direct_url, autocommit=True, options=_PLANNED)
        self._beating = psycopg.connect(fresh.direct_url, autocommit=True)

    def close(self) -> None:
        self._beating.close()
        self._sql.close()
        self._runner.run(self._database.close())
        self._runner.close()

    def prepare(self, orgs: Sequence[UUID], now: datetime) -> None:
        """Begin an example."""
        for table in _EMPTIED:
            self._sql.execute(f"delete from duly.{table}")
        for org in orgs:
            self.run(lambda conn, org=org: registry.create_org(conn, org, "Acme"), now)

    def run(
        self,
        work: Callable[[Connection], Awaitable[T]],
        now: datetime,
        *,
        org: UUID | None = None,
        commit: bool = True,
    ) -> T:
        """Run one transaction at this time, as the engine or a tenant. Without a commit it is rolled back."""

        async def inside() -> T:
            database = self._database
            answers: list[T] = []
            try:
                async with database.engine() if org is None else database.tenant(org) as conn:
                    await conn.execute(_CLOCK.format("true"), [now.isoformat()])
                    answers.append(await work(conn))
                    if not commit:
                        raise _Undone
            except _Undone:
                pass
            return answers[0]

        return self._runner.run(inside())

    def beat(
        self, worker_id: UUID, held: Sequence[tuple[UUID, UUID, int]], now: datetime
    ) -> list[HeldJobUpdate] | None:
        """Send a heartbeat on its own connection."""
        self._beating.execute(_CLOCK.format("false"), [now.isoformat()])
        heard = workers.beat(self._beating, worker_id, held, draining=False)
        return None if heard is None else heard.updates

    def picture(self, orgs: Sequence[UUID]) -> Picture:
        """Read the current state."""
        with self._sql.cursor(row_factory=dict_row) as cursor:
            jobs = {row.pop("job_id"): row for row in cursor.execute(_PICTURE, [list(orgs)], prepare=True)}
        claims = self._sql.execute("select claim_id, worker_id, job_ids from duly.claims").fetchall()
        return Picture(jobs, {row[0]: (row[1], row[2]) for row in claims})
