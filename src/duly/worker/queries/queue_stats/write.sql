-- Purpose: write what one process counted per minute and queue. Absolute numbers, so that writing twice does no harm.
-- Index: the primary key, which is the fence: no other process writes these rows.
insert into duly.queue_minutes as q (
    minute, queue, recorder_id, started, completed, failed, retried, canceled, run_seconds,
    wait_buckets, wait_counts, run_buckets, run_counts)
select to_timestamp(m.minute * 60), m.queue, %(recorder_id)s, m.started, m.completed, m.failed, m.retried, m.canceled,
       m.run_seconds, m.wait_buckets, m.wait_counts, m.run_buckets, m.run_counts
from jsonb_to_recordset(%(minutes)s) m(
    minute bigint, queue text, started integer, completed integer, failed integer, retried integer, canceled integer,
    run_seconds double precision, wait_buckets smallint[], wait_counts integer[], run_buckets smallint[],
    run_counts integer[])
order by m.minute, m.queue
on conflict (minute, queue, recorder_id) do update set
    started = excluded.started, completed = excluded.completed, failed = excluded.failed, retried = excluded.retried,
    canceled = excluded.canceled, run_seconds = excluded.run_seconds,
    wait_buckets = excluded.wait_buckets, wait_counts = excluded.wait_counts,
    run_buckets = excluded.run_buckets, run_counts = excluded.run_counts
