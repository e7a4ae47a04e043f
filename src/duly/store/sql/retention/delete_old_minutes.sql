-- Purpose: forget what the queues did in minutes so long ago.
-- Locks: the rows, skipping what others hold. Index: the primary key, which begins with the minute.
with old as materialized (
    select q.minute, q.queue, q.recorder_id from duly.queue_minutes q
    where q.minute < duly.now() - %(keep)s::interval
    order by q.minute limit %(limit)s for update skip locked
)
delete from duly.queue_minutes q using old o
where q.minute = o.minute and q.queue = o.queue and q.recorder_id = o.recorder_id
