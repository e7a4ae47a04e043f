-- Purpose: claim up to `slots` runnable jobs of one lane, fairly between the orgs that have some, where no gate stands.
-- The same as `claim` without its gates, which cost a lone job a third of its claim: nearly all installations have none.
-- If an org that it meets has a gate, or any job type, it claims nothing and returns `more`; the caller uses `claim` then.
-- Transition: claim, queued -> running. The attempt is counted here. Event: job.started.
-- New jobs take the plain path: their claim row is all that is written for them, with one batch of events per org.
-- Locks: rows of ready, skipping those that others lock; then their state rows.
-- Index: as in `claim`: one step per org over ready's primary key, then the first rows of each org.
-- Materialized: without it the planner may claim more rows than the limit.
with recursive walk as (
    select %(after_org)s::uuid as org_id, null::smallint as rank, null::uuid as job_id, 1 as turn, 0 as steps
    union all
    select next.org_id, next.rank, next.job_id, next.turn, w.steps + 1
    from walk w
    cross join lateral (
        (select r.org_id, r.rank, r.job_id, w.turn from duly.ready r
         where r.queue = %(lane)s and r.org_id > w.org_id
           and r.org_id <= case w.turn when 1 then 'ffffffff-ffff-ffff-ffff-ffffffffffff' else %(after_org)s end
         order by r.org_id, r.rank, r.job_id limit 1)
        union all
        (select r.org_id, r.rank, r.job_id, 2 from duly.ready r
         where w.turn = 1 and r.queue = %(lane)s and r.org_id <= %(after_org)s
         order by r.org_id, r.rank, r.job_id limit 1)
        limit 1
    ) next
    where w.steps < least(%(slots)s, %(max_orgs)s)
), orgs as materialized (
    select org_id, rank, job_id, steps as position, count(*) over () as many from walk where steps > 0
), gated as materialized (
    select exists (select from duly.gates g where g.job_type <> '')
        or exists (select from orgs o cross join lateral (
            select from duly.gates g where g.org_id = o.org_id and g.job_type = ''
              and (g.max_running is not null or g.starts_per_second is not null or g.paused_at is not null) limit 1) g)
        as gated
), allowed as materialized (
    -- As in `claim`: a lost worker would claim the jobs that are being taken from it; a hint does not know of a pause.
    select case when (select gated from gated) or exists (
        select from duly.workers w where w.worker_id = %(worker_id)s and coalesce(w.lost_at, w.stopped_at) is not null
    ) or exists (
        select from duly.queues q where q.queue = %(lane)s and q.paused_at is not null
    ) then 0 else %(slots)s end as slots
), picked as materialized (
    select r.row_id, r.org_id, r.job_id, r.fresh
    from orgs o
    cross join lateral (
        select r.ctid as row_id, r.org_id, r.job_id, r.fresh from duly.ready r
        where r.queue = %(lane)s and r.org_id = o.org_id and (r.rank, r.job_id) >= (o.rank, o.job_id)
        order by r.rank, r.job_id
        limit ceil((select slots from allowed)::numeric / o.many)
        for update skip locked
    ) r
    order by o.position
    limit (select slots from allowed)
), taken as (
    -- By ctid: the rows are locked and never updated. A join could be planned for an empty table, and that plan reused.
    delete from duly.ready r where r.ctid = any (array(select p.row_id from picked p))
), plain as materialized (
    select p.org_id, p.job_id from picked p
    where p.fresh and exists (select from duly.layouts l where l.layout = 2)
    order by p.job_id
), held as (
    insert into duly.job_states as s (
        org_id, job_id, status, outcome, attempt, event_seq, run_at, worker_id, attempt_started_at, started_at, updated_at)
    select p.org_id, p.job_id, 'running', 'pending', 1, 2, n.now, %(worker_id)s, n.now, n.now, n.now
    from picked p cross join (select duly.now() as now) n
    where not (p.fresh and exists (select from plain))
    on conflict (org_id, job_id) do update set
        status = 'running', attempt = s.attempt + 1, event_seq = s.event_seq + 1, worker_id = excluded.worker_id,
        attempt_started_at = excluded.updated_at, started_at = coalesce(s.started_at, excluded.updated_at),
        updated_at = excluded.updated_at, counted = 0
    where s.status = 'queued'
    returning s.org_id, s.job_id, s.attempt, s.event_seq, s.returned, s.progress_percent, s.partial_count, s.context, s.run_at
), event as (
    insert into duly.event_log (
        org_id, job_id, event_seq, event_type, status, attempt, occurred_at, actor_type, actor_id)
    select h.org_id, h.job_id, h.event_seq, 'job.started', 'running', h.attempt, (select duly.now()), 'worker', %(worker_id)s::text
    from held h
), claim as (
    insert into duly.claims (claim_id, worker_id, claimed_at, org_ids, job_ids)
    select %(claim_id)s, %(worker_id)s, (select duly.now()), array_agg(h.org_id order by h.job_id), array_agg(h.job_id order by h.job_id)
    from held h having count(*) > 0
), plain_claim as (
    insert into duly.claims (claim_id, worker_id, claimed_at, org_ids, job_ids, plain, low, high, commit_xid)
    select %(plain_claim_id)s, %(worker_id)s, (select duly.now()), c.org_ids, c.job_ids, true, c.job_ids[1],
           c.job_ids[cardinality(c.job_ids)], pg_current_xact_id()
    from (select array_agg(p.org_id) as org_ids, array_agg(p.job_id) as job_ids from plain p having count(*) > 0) c
), batch as (
    insert into duly.event_batches (org_id, occurred_at, event_type, event_seq, first_job, job_count, job_ids)
    select b.org_id, (select duly.now()), 'job.started', 2, b.job_ids[1], cardinality(b.job_ids), b.job_ids
    from (select p.org_id, array_agg(p.job_id) as job_ids from plain p group by p.org_id) b
)
select j.*, last.org_id as last_org, (select gated from gated) as more
from (select org_id from orgs order by position desc limit 1) last
left join (
    select h.org_id, h.job_id, h.attempt, h.returned, h.progress_percent, h.partial_count, h.checkpoint,
           r.job_type, r.queue, r.priority, r.project_id, r.subject_id, r.actor_type, r.actor_id, r.request_id,
           r.correlation_id, r.traceparent, r.run_identity_hash, r.payload::text, r.payload_ref, r.metadata, h.plain,
           extract(epoch from (select duly.now()) - case h.attempt when 1 then r.run_at else h.run_at end)::float8,
           case when r.policy_hash is null or r.policy_hash is distinct from lag(r.policy_hash) over claim_order then duly.policy_of(r.policy, r.policy_hash)::text end
    from (
        select h.org_id, h.job_id, h.attempt, h.returned, h.progress_percent, h.partial_count,
               h.context -> 'checkpoint' as checkpoint, h.run_at, false as plain
        from held h
        union all
        select p.org_id, p.job_id, 1, 0, 0::real, 0, null, null, true from plain p
    ) h
    cross join lateral (
        select * from duly.job_records r where r.org_id = h.org_id and r.job_id = h.job_id limit 1) r
    window claim_order as (order by r.priority desc, h.job_id)
    order by r.priority desc, h.job_id
) j on true
