-- Purpose: read the orgs with queued or running jobs: how many run, and whether any are queued; and the slots of the
-- living workers. Queued jobs are looked for by org id, in at most `max_steps` steps.
-- Index: a loose scan over ready's primary key, one step for each lane and each org in it; claims and workers are few;
-- the primary key of the states, of at most `max_claimed` claimed jobs.
with recursive steps as (
    (select r.queue, r.org_id, 1 as n from duly.ready r order by r.queue, r.org_id limit 1)
    union all
    select next.queue, next.org_id, s.n + 1
    from steps s
    cross join lateral (
        select r.queue, r.org_id from duly.ready r
        where (r.queue, r.org_id) > (s.queue, s.org_id) order by r.queue, r.org_id limit 1) next
    where s.n < %(max_steps)s
), running as (
    select h.org_id, count(distinct h.job_id) as n
    from (select h.org_id, h.job_id from duly.held_jobs h limit %(max_claimed)s) h
    group by h.org_id
), active as (
    select x.org_id, sum(x.running)::integer as running, bool_or(x.waits) as waits
    from (
        select r.org_id, r.n as running, false as waits from running r
        union all
        select s.org_id, 0, true from steps s
    ) x
    group by x.org_id
)
select a.org_id, a.running, a.waits,
       (select coalesce(sum(w.slots), 0) from duly.workers w
        where w.stopped_at is null and w.lost_at is null and w.heartbeat_at + w.lease >= duly.now())::integer as slots,
       (select count(*) from steps) >= %(max_steps)s as more
from active a
order by a.org_id
