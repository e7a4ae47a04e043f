-- Purpose: read the conditions of a job's next step: its queue, its gates, its worker, the workers that could claim it, and
-- how many jobs of its org come first. Index: primary keys; workers are few; the row of ready and up to `limit` before it.
with job as materialized (
    select r.org_id, r.job_id, r.job_type, r.queue, -r.priority as rank, s.worker_id, s.status, coalesce(s.run_at, r.run_at) as run_at,
           duly.lane(r.queue, r.job_type) as lane
    from duly.job_records r
    left join lateral (select x.* from duly.state_of(r.org_id, r.job_id) x limit 1) s on true
    where r.org_id = %(org_id)s and r.job_id = %(job_id)s
)
select duly.now() as now,
       (select to_jsonb(q) from duly.queues q where q.queue = j.queue) as queue,
       (select coalesce(jsonb_agg(to_jsonb(g) || jsonb_build_object(
            'org_id', nullif(g.org_id, '00000000-0000-0000-0000-000000000000'), 'job_type', nullif(g.job_type, ''),
            'available', duly.gate_tokens(g), 'refilled_at', null) order by g.org_id, g.job_type), '[]')
        from duly.gates g
        where (g.org_id, g.job_type) in (
            (j.org_id, ''), ('00000000-0000-0000-0000-000000000000', j.job_type), (j.org_id, j.job_type))) as gates,
       (select jsonb_build_object('name', w.name, 'heartbeat_at', w.heartbeat_at, 'lost', w.lost_at is not null,
            'silent', w.heartbeat_at + w.lease < duly.now())
        from duly.workers w where w.worker_id = j.worker_id) as worker,
       (select count(*) from duly.workers w
        where w.stopped_at is null and w.lost_at is null and w.heartbeat_at + w.lease >= duly.now()
          and j.queue = any (w.queues)) as claimers,
       (select count(*) from (
            select from duly.ready r
            where r.queue = j.lane and r.org_id = j.org_id and (r.rank, r.job_id) < (j.rank, j.job_id)
            limit %(limit)s) b) as jobs_ahead,
       exists (select from duly.claims c where c.worker_id = j.worker_id and j.job_id = any (c.job_ids)) as claimed,
       exists (select from duly.ready r where r.queue in (j.queue, j.queue || '#' || j.job_type)
                 and r.org_id = j.org_id and r.rank = j.rank and r.job_id = j.job_id)
           or exists (select from duly.scheduled q
                      where q.run_at = j.run_at and q.org_id = j.org_id and q.job_id = j.job_id) as queued,
       (select jsonb_build_object('tries', d.tries, 'last_error', d.last_error, 'due_at', d.due_at)
        from duly.bridge_debts d where d.org_id = j.org_id and d.job_id = j.job_id) as callback
from job j
