-- Purpose: read every queue with its queued, scheduled and running jobs, each counted up to `max_count` + 1; and when
-- the oldest queued job became runnable, of the first `max_heads` that are next of their org and priority.
-- Index: loose scans over ready's primary key, one step per lane and one per org and priority; the head of scheduled;
-- claims are few, one per running batch; dead_letters_open.
with recursive lanes as (
    (select r.queue as lane from duly.ready r order by r.queue limit 1)
    union all
    select (select r.queue from duly.ready r where r.queue > l.lane order by r.queue limit 1)
    from lanes l where l.lane is not null
), waiting as (
    select split_part(l.lane, '#', 1) as queue, sum(w.n) as n, min(o.due_at) as due_at
    from lanes l
    cross join lateral (
        select count(*) as n from (select from duly.ready r where r.queue = l.lane limit %(max_count)s + 1) c) w
    cross join lateral (
        with recursive heads as (
            (select r.org_id, r.rank, r.job_id, 1 as n from duly.ready r
             where r.queue = l.lane order by r.org_id, r.rank, r.job_id limit 1)
            union all
            select next.org_id, next.rank, next.job_id, h.n + 1
            from heads h
            cross join lateral (
                select r.org_id, r.rank, r.job_id from duly.ready r
                where r.queue = l.lane and (r.org_id, r.rank) > (h.org_id, h.rank)
                order by r.org_id, r.rank, r.job_id limit 1) next
            where h.n < %(max_heads)s
        )
        select min(coalesce(s.run_at, r.run_at)) as due_at
        from heads h
        join duly.job_records r on r.org_id = h.org_id and r.job_id = h.job_id
        left join duly.job_states s on s.org_id = h.org_id and s.job_id = h.job_id
    ) o
    where l.lane is not null
    group by 1
), to_come as materialized (
    select s.queue from duly.scheduled s order by s.run_at limit %(max_count)s + 1
), claimed as materialized (
    select distinct h.org_id, h.job_id
    from (select h.org_id, h.job_id from duly.held_jobs h limit %(max_count)s + 1) h
), held as materialized (
    select r.queue
    from claimed j
    join duly.job_records r on r.org_id = j.org_id and r.job_id = j.job_id
), letters as (
    select count(*) as n
    from (select from duly.dead_letters d where d.resolution is null limit %(max_count)s + 1) d
)
select q.queue, q.weight, q.paused_at, q.paused_by, q.pause_reason, q.alert_depth, q.alert_wait,
       case when q.queue = 'q:deadletter' then (select n from letters) else coalesce(w.n, 0) end::bigint as waiting,
       false as more_waiting,
       (select count(*) from to_come t where t.queue = q.queue) as scheduled,
       (select count(*) from to_come) > %(max_count)s as more_scheduled,
       (select count(*) from held h where h.queue = q.queue) as running,
       (select count(*) from claimed) > %(max_count)s as more_running,
       w.due_at as oldest_waiting_at, duly.now() - w.due_at as oldest_waiting_age
from duly.queues q
left join waiting w using (queue)
order by q.weight desc, q.queue
