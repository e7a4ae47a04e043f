-- Purpose: take up to `slots` runnable jobs of one queue, fairly between the orgs that have some.
-- Transition: claim, queued -> running. The attempt is counted here. Event: job.started.
-- Locks: rows of ready, skipping what others hold; then their state rows.
-- Index: a loose scan over ready's primary key (one step per org, never the backlog), starting after the
-- org that was served last and wrapping once; then the first rows of each org in claim order.
-- Materialized: without it the planner may claim more rows than the limit.
with recursive after_cursor as (
    (select r.org_id, 1 as n from duly.ready r
     where r.queue = %(queue)s and r.org_id > %(after_org)s order by r.org_id limit 1)
    union all
    select next.org_id, a.n + 1
    from after_cursor a
    cross join lateral (
        select r.org_id from duly.ready r
        where r.queue = %(queue)s and r.org_id > a.org_id order by r.org_id limit 1) next
    where a.n < %(slots)s
), before_cursor as (
    (select r.org_id, 1 as n from duly.ready r
     where r.queue = %(queue)s and r.org_id <= %(after_org)s order by r.org_id limit 1)
    union all
    select next.org_id, b.n + 1
    from before_cursor b
    cross join lateral (
        select r.org_id from duly.ready r
        where r.queue = %(queue)s and r.org_id > b.org_id and r.org_id <= %(after_org)s
        order by r.org_id limit 1) next
    where b.n < %(slots)s
), orgs as materialized (
    select org_id, row_number() over (order by turn, org_id) as place, count(*) over () as many
    from (select org_id, 1 as turn from after_cursor union all select org_id, 2 from before_cursor) o
    order by turn, org_id
    limit %(slots)s
), picked as materialized (
    select r.queue, r.org_id, r.rank, r.job_id
    from orgs o
    cross join lateral (
        select * from duly.ready r
        where r.queue = %(queue)s and r.org_id = o.org_id
        order by r.rank, r.job_id
        limit ceil(%(slots)s::numeric / o.many)
        for update skip locked
    ) r
    order by o.place
    limit %(slots)s
), taken as (
    delete from duly.ready r using picked p
    where r.queue = p.queue and r.org_id = p.org_id and r.rank = p.rank and r.job_id = p.job_id
), held as (
    insert into duly.job_states as s (
        org_id, job_id, status, outcome, attempt, event_seq, run_at, worker_id, attempt_started_at, started_at, updated_at)
    select p.org_id, p.job_id, 'running', 'pending', 1, 2, duly.now(), %(worker_id)s, duly.now(), duly.now(), duly.now()
    from picked p
    on conflict (org_id, job_id) do update set
        status = 'running', attempt = s.attempt + 1, event_seq = s.event_seq + 1, worker_id = excluded.worker_id,
        attempt_started_at = duly.now(), started_at = coalesce(s.started_at, duly.now()), updated_at = duly.now()
    where s.status = 'queued'
    returning s.*
), event as (
    insert into duly.event_log (
        org_id, job_id, event_seq, event_type, status, attempt, occurred_at, actor_type, actor_id)
    select h.org_id, h.job_id, h.event_seq, 'job.started', 'running', h.attempt, duly.now(), 'worker', %(worker_id)s::text
    from held h
), claim as (
    insert into duly.claims (claim_id, worker_id, claimed_at, org_ids, job_ids)
    select %(claim_id)s, %(worker_id)s, duly.now(), array_agg(h.org_id order by h.job_id), array_agg(h.job_id order by h.job_id)
    from held h having count(*) > 0
)
select h.org_id, h.job_id, h.attempt, h.returned, h.progress_percent, h.partial_count,
       r.job_type, r.queue, r.priority, r.project_id, r.subject_id, r.actor_type, r.actor_id, r.request_id,
       r.correlation_id, r.traceparent, r.run_identity_hash, r.payload, r.payload_ref, r.policy
from held h
join duly.job_records r using (org_id, job_id)
