-- Purpose: list the activity of each queue in each of the last minutes, summed over all processes; oldest minute first.
-- Index: the primary key, which begins with the minute; once more for each minute and queue, for its histograms.
select g.*,
       (select coalesce(jsonb_object_agg(b.bucket, b.n), '{}') from (
            select u.bucket, sum(u.n) as n
            from duly.queue_minutes q cross join lateral unnest(q.wait_buckets, q.wait_counts) u(bucket, n)
            where q.minute = g.minute and q.queue = g.queue group by u.bucket) b) as waits,
       (select coalesce(jsonb_object_agg(b.bucket, b.n), '{}') from (
            select u.bucket, sum(u.n) as n
            from duly.queue_minutes q cross join lateral unnest(q.run_buckets, q.run_counts) u(bucket, n)
            where q.minute = g.minute and q.queue = g.queue group by u.bucket) b) as runs
from (
    select q.minute, q.queue, sum(q.started) as started, sum(q.completed) as completed, sum(q.failed) as failed,
           sum(q.retried) as retried, sum(q.canceled) as canceled, sum(q.run_seconds) as run_seconds
    from duly.queue_minutes q
    where q.minute > duly.now() - %(since)s::interval
    group by q.minute, q.queue
) g
order by g.minute, g.queue
