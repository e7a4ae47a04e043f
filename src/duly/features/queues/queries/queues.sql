-- name: change
-- Purpose: write the weight, the alerts and the pause of a queue; a null `paused_by` resumes it.
-- Index: the primary key. Locks: the queue's row, which the caller holds.
update duly.queues set
    weight = %(weight)s, alert_depth = %(alert_depth)s, alert_wait = %(alert_wait)s,
    paused_at = case when %(paused_by)s::text is not null then coalesce(paused_at, duly.now()) end,
    resumed_at = case when paused_at is not null and %(paused_by)s::text is null then duly.now() else resumed_at end,
    paused_by = %(paused_by)s, pause_reason = %(pause_reason)s
where queue = %(queue)s
returning queue, weight, paused_at, paused_by, pause_reason, alert_depth, alert_wait

-- name: create
-- Purpose: create a queue; no row if one of that name exists. Index: the primary key.
insert into duly.queues (queue, weight) values (%(queue)s, %(weight)s)
on conflict (queue) do nothing
returning queue, weight, paused_at, paused_by, pause_reason, alert_depth, alert_wait

-- name: find_unknown
-- Purpose: return those of these queues that do not exist. Index: the primary key.
select w.queue from unnest(%(queues)s::text[]) w(queue)
where not exists (select from duly.queues q where q.queue = w.queue)

-- name: list
-- Purpose: read every queue, highest weight first. Index: none; queues are few.
select queue, weight, paused_at, paused_by, pause_reason, alert_depth, alert_wait from duly.queues order by weight desc, queue

-- name: lock
-- Purpose: lock a queue for a change. Index: the primary key. Locks: the queue's row; claims only read it.
select queue, weight, paused_at, paused_by, pause_reason, alert_depth, alert_wait from duly.queues where queue = %(queue)s for no key update
