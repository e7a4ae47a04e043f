-- Purpose: a new queue; nothing if there is one of that name. Index: the primary key.
insert into duly.queues (queue, weight) values (%(queue)s, %(weight)s)
on conflict (queue) do nothing
returning queue, weight, paused_at, paused_by, pause_reason, alert_depth, alert_wait
