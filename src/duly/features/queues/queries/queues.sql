-- name: create
-- Purpose: a new queue; nothing if there is one of that name. Index: the primary key.
insert into duly.queues (queue, weight) values (%(queue)s, %(weight)s)
on conflict (queue) do nothing
returning queue, weight, paused_at, paused_by, pause_reason, alert_depth, alert_wait

-- name: list
-- Purpose: every queue, the weightiest first. Index: none; queues are few.
select queue, weight, paused_at, paused_by, pause_reason, alert_depth, alert_wait from duly.queues order by weight desc, queue

-- name: lock
-- Purpose: one queue, held for a change. Index: the primary key. Locks: the queue's row; claims only read it.
select queue, weight, paused_at, paused_by, pause_reason, alert_depth, alert_wait from duly.queues where queue = %(queue)s for update

-- name: unknown
-- Purpose: which of these queues there are none of. Index: the primary key.
select w.queue from unnest(%(queues)s::text[]) w(queue)
where not exists (select from duly.queues q where q.queue = w.queue)
