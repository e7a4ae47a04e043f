-- Purpose: which of these queues there are none of. Index: the primary key.
select w.queue from unnest(%(queues)s::text[]) w(queue)
where not exists (select from duly.queues q where q.queue = w.queue)
