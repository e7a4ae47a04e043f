"""A realistic database: many queued jobs, some ended, claimed and scheduled ones.

Half of the queued jobs belong to a few large orgs, which come first in the order of orgs, the others to many
small ones. One job in ten has a run identity, one org in ten has a limit.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import psycopg

from duly.testing import DatabaseCluster

LARGE_ORGS = 5
HELD = 100
"""Number of claimed jobs, ten per claim and twenty per worker, however many are queued."""
_FILL = """
with job as materialized (
    select case when n %% 2 = 0
               then ('00000000-0000-4000-8000-' || lpad((n / 2 %% %(large)s)::text, 12, '0'))::uuid
               else md5('org ' || n / 2 %% %(orgs)s)::uuid end as org_id,
           duly.uuid7() as job_id, md5('worker ' || n / 20)::uuid as worker_id, n,
           case when n <= %(held)s then 'held' when n <= %(held)s + %(ready)s then 'ready'
                when n <= %(held)s + %(ready)s * 1.20 then 'ended'
                when n <= %(held)s + %(ready)s * 1.25 then 'due' else 'later' end as what
    from generate_series(1, %(held)s + %(ready)s * 13 / 10) n
), org as materialized (
    select distinct org_id from job
), known as (
    insert into duly.organizations (org_id, name) select org_id, 'o' from org on conflict do nothing
), gate as (
    insert into duly.gates (org_id, job_type, max_waiting)
    select org_id, '', 1000000 from org where hashtext(org_id::text) %% 10 = 0 on conflict do nothing
), record as (
    insert into duly.job_records (
        org_id, job_id, result_id, job_type, category, queue, priority, max_attempts, subject_id,
        actor_type, actor_id, request_id, correlation_id, idempotency_key, run_identity_hash, payload,
        payload_hash, policy, run_at, created_at)
    select org_id, job_id, gen_random_uuid(), 'plans.noop', 'default', 'q:default', 0, 5, 'doc-' || n %% 500,
           'user', 'u1', 'r', 'r', job_id::text, case when n %% 10 = 0 then job_id::text end, '{}', 'h',
           '{"retry": {"max_attempts": 5}}', now(), now() from job
), run as (
    insert into duly.active_runs (org_id, job_type, run_identity_hash, job_id)
    select org_id, 'plans.noop', job_id::text, job_id from job where n %% 10 = 0 and what <> 'ended'
), ledger as (
    insert into duly.key_ledger (org_id, key_hash, job_id, first_seen_at, expires_at)
    select org_id, duly.key_hash(job_id::text), job_id, now(), now() + interval '1 day' from job
), event as (
    insert into duly.event_log (
        org_id, job_id, event_seq, event_type, status, attempt, occurred_at, actor_type, actor_id)
    select org_id, job_id, 1, 'job.queued', 'queued', 0, now(), 'user', 'u1' from job
), ready as (
    insert into duly.ready (queue, org_id, rank, job_id, fresh)
    select 'q:default', org_id, 0, job_id, n %% 10 <> 0 from job where what = 'ready'
), scheduled as (
    insert into duly.scheduled (run_at, org_id, job_id, queue, rank)
    select now() + case what when 'due' then -1 else 1 end * (1 + n) * interval '1 second', org_id, job_id,
           'q:default', 0
    from job where what in ('due', 'later')
), result as (
    insert into duly.result_snapshots (org_id, job_id, result_kind, result_seq, payload, created_at)
    select org_id, job_id, 'final', 1, '1', now() from job where what = 'ended'
), claim as (
    insert into duly.claims (claim_id, worker_id, claimed_at, org_ids, job_ids)
    select gen_random_uuid(), worker_id, now(), array_agg(org_id), array_agg(job_id)
    from job where what = 'held' group by worker_id, n / 10
), worker as (
    insert into duly.workers (worker_id, name, host, pid, version, layout, queues, slots, lease)
    select distinct worker_id, 'w', 'h', 1, '0', 4, array['q:default'], 20, interval '1 hour'
    from job where what = 'held' on conflict do nothing
)
insert into duly.job_states (
    org_id, job_id, status, outcome, attempt, event_seq, run_at, worker_id, attempt_started_at, updated_at,
    finished_at, progress_percent)
select org_id, job_id, case what when 'held' then 'running' else 'completed' end,
       case what when 'held' then 'pending' else 'succeeded' end, 1, 2, now(), worker_id, now(), now(),
       case what when 'ended' then now() end, case what when 'ended' then 100 else 0 end
from job where what in ('ended', 'held')
"""
# The test decides how old the statistics are.
_QUIET = """
do $$
declare
    t text;
begin
    for t in select relname from pg_class where relnamespace = 'duly'::regnamespace and relkind = 'r' loop
        execute format('alter table duly.%I set (autovacuum_enabled = off)', t);
    end loop;
end $$
"""


class Stock(NamedTuple):
    """A filled database, and one of its queued jobs."""

    url: str
    org_id: uuid.UUID
    job_id: uuid.UUID


def fill(conn: psycopg.Connection[tuple[object, ...]], ready: int) -> None:
    """Create this many runnable jobs, a tenth as many small orgs, and their records."""
    conn.execute(_FILL, {"ready": ready, "orgs": max(ready // 10, 1), "large": LARGE_ORGS, "held": HELD})


@contextmanager
def stocked(cluster: DatabaseCluster, ready: int, statistics: str) -> Iterator[Stock]:
    """Create a database with this many runnable jobs, and current or outdated statistics."""
    with cluster.fresh() as made, psycopg.connect(made.direct_url, autocommit=True) as conn:
        conn.execute(_QUIET)
        if statistics == "of a hundred jobs":
            fill(conn, 100)
        if statistics != "of now":
            conn.execute("vacuum analyze")
        fill(conn, ready)
        if statistics == "of now":
            conn.execute("vacuum analyze")
        # An org without a limit: with `max_waiting`, its queued jobs would be counted.
        row = conn.execute(
            "select org_id, job_id from duly.ready r where not exists "
            "(select from duly.gates g where g.org_id = r.org_id) order by job_id limit 1"
        ).fetchone()
        assert row
        yield Stock(made.direct_url, *row)
