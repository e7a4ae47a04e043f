-- Purpose: list the workers that have not stopped, each with the number of jobs it holds; of the lost ones the latest.
-- Index: workers_beating, workers_lost; claims_by_worker, and the primary key of the states.
select w.worker_id, w.name, w.host, w.pid, w.version, w.queues, w.slots, w.lease, w.started_at, w.heartbeat_at,
       w.draining_at, w.drain_requested_at, w.drain_requested_by, w.drain_reason,
       case when w.lost_at is not null then 'lost'
            when w.heartbeat_at + w.lease < duly.now() then 'silent'
            when w.draining_at is not null then 'draining'
            else 'working' end as state,
       (select count(distinct h.job_id) from duly.held_jobs h
        where h.worker_id = w.worker_id and h.holder_id = w.worker_id) as running
from (
    (select w.* from duly.workers w
     where w.stopped_at is null and w.lost_at is null order by w.heartbeat_at desc limit %(limit)s)
    union all
    (select w.* from duly.workers w
     where w.stopped_at is null and w.lost_at is not null order by w.lost_at desc limit %(limit)s)
) w
order by w.started_at desc, w.worker_id
limit %(limit)s
