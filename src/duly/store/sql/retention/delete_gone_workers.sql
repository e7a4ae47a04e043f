-- Purpose: forget workers that stopped or were lost long ago. One whose claims are not settled yet stays.
-- Locks: the rows, skipping what others hold. Index: workers are few.
with old as materialized (
    select w.worker_id from duly.workers w
    where coalesce(w.stopped_at, w.lost_at) < duly.now() - %(keep)s::interval
      and not exists (select from duly.claims c where c.worker_id = w.worker_id)
    limit %(limit)s for update skip locked
)
delete from duly.workers w using old o where w.worker_id = o.worker_id
