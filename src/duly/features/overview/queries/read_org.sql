-- Purpose: count what else an org has, each up to `limit` + 1: scheduled and claimed jobs, open dead letters, jobs that
-- ended since a time; the workers; and the jobs whose freshness to assess: the first `heads` claimed ones, and overdue ones
-- among the first `heads` scheduled of all orgs.
-- Index: scheduled_by_org and the head of scheduled; claims and workers are few; dead_letters_open; job_states_ended and the primary key
-- of the event batches.
with held as materialized (
    select distinct h.job_id, h.status
    from (select h.job_id, h.status from duly.held_jobs h where h.org_id = %(org_id)s limit %(limit)s + 1) h
), ended as materialized (
    select e.status, n.n
    from unnest(array['completed', 'failed', 'canceled']) e(status)
    cross join lateral (
        select least(coalesce(sum(c.n), 0), %(limit)s + 1) as n
        from (
            select count(*) as n
            from (
                select from duly.job_states s
                where s.org_id = %(org_id)s and s.status = e.status and s.finished_at is not null
                  and s.finished_at >= duly.now() - %(since)s
                limit %(limit)s + 1
            ) s
            union all
            select sum(b.job_count)
            from (
                select b.job_count from duly.event_batches b
                where b.org_id = %(org_id)s and b.event_type = 'job.completed' and b.occurred_at >= duly.now() - %(since)s
                  and e.status = 'completed'
                limit %(limit)s + 1
            ) b
        ) c
    ) n
), workers as materialized (
    select count(*) as n, coalesce(sum(w.slots), 0) as slots from duly.workers w
    where w.stopped_at is null and w.lost_at is null and w.heartbeat_at + w.lease >= duly.now()
)
select duly.now() as looked_at,
       (select count(*) from (select from duly.scheduled s where s.org_id = %(org_id)s limit %(limit)s + 1) c) as scheduled,
       (select count(*) from held h where h.status = 'running') as running,
       (select count(*) from held h where h.status = 'partial') as partial,
       (select count(*) from (
            -- In index order: otherwise the table is read from end to end if there are few orgs.
            select from duly.dead_letters d where d.org_id = %(org_id)s and d.resolution is null
            order by d.org_id, d.fingerprint limit %(limit)s + 1) c) as dead_letters,
       (select jsonb_object_agg(e.status, e.n) from ended e) as ended,
       (select w.n from workers w) as workers,
       (select w.slots from workers w) as slots,
       array(select h.job_id from held h order by h.job_id limit %(heads)s)
       || array(
           select q.job_id
           from (
               select s.org_id, s.job_id from duly.scheduled s
               where s.run_at < duly.now() - interval '1 minute' order by s.run_at limit %(heads)s
           ) q
           where q.org_id = %(org_id)s
       ) as to_assess
