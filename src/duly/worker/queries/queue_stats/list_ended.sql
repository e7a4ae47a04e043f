-- Purpose: list the activity of the session's org by minute and queue, from the newest `limit` ended jobs of each status:
-- counts, wait and run times of the last attempt. `since` is the time from which on that is complete; null means all.
-- Index: job_states_ended; the primary keys of the event batches, the ends and the records.
with ended as materialized (
    select e.status, s.*
    from unnest(array['completed', 'failed', 'canceled']) e(status)
    cross join lateral (
        (select s.job_id, s.run_at, s.attempt_started_at, s.finished_at from duly.job_states s
         where s.org_id = %(org_id)s and s.status = e.status and s.finished_at is not null
           and s.finished_at > duly.now() - %(since)s::interval
         order by s.finished_at desc limit %(limit)s)
        union all
        (select b.job_id, n.started_at, n.started_at, b.occurred_at
         from duly.batched_events b
         cross join lateral (
             select n.started_at from duly.job_ends n where n.org_id = %(org_id)s and n.job_id = b.job_id limit 1) n
         where e.status = 'completed' and b.org_id = %(org_id)s and b.event_type = 'job.completed'
           and b.occurred_at > duly.now() - %(since)s::interval
         order by b.occurred_at desc limit %(limit)s)
        order by finished_at desc limit %(limit)s
    ) s
), cut as materialized (
    select max(c.first) as since
    from (select min(e.finished_at) as first from ended e group by e.status having count(*) >= %(limit)s) c
)
select date_trunc('minute', e.finished_at) as minute, r.queue, c.since,
       count(*) filter (where e.status = 'completed') as completed,
       count(*) filter (where e.status = 'failed') as failed,
       count(*) filter (where e.status = 'canceled') as canceled,
       coalesce(array_agg(greatest(extract(epoch from e.attempt_started_at - e.run_at), 0)::float8)
           filter (where e.attempt_started_at is not null), '{}') as waits,
       coalesce(array_agg(greatest(extract(epoch from e.finished_at - e.attempt_started_at), 0)::float8)
           filter (where e.attempt_started_at is not null), '{}') as runs
from ended e
cross join cut c
cross join lateral (
    select r.queue from duly.job_records r where r.org_id = %(org_id)s and r.job_id = e.job_id limit 1) r
where c.since is null or e.finished_at >= c.since
group by 1, 2, 3
order by 1, 2
