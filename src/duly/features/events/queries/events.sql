-- name: feed_tip
-- Purpose: where the feed ends now: after the last event before which no transaction is open, and after the last drop.
-- Not the oldest open transaction itself: its number may be given again after a crash. Index: event_log_by_commit.
select coalesce(
           (select e.commit_xid::text::bigint + 1 from duly.event_log e
            where e.commit_xid < pg_snapshot_xmin(pg_current_snapshot())
            order by e.commit_xid desc limit 1), 0) as follows,
       (select coalesce(max(d.drop_id), 0) from duly.event_drops d) as drops

-- name: heads
-- Purpose: how far each of these jobs is: the number of its last event, and its status. Index: the primary keys.
-- A job without a state waits, and has its first event only.
select k.place, coalesce(s.event_seq, 1), coalesce(s.status, 'queued')
from unnest(%(org_ids)s::uuid[], %(job_ids)s::uuid[]) with ordinality k(org_id, job_id, place)
left join lateral (
    select s.event_seq, s.status from duly.job_states s where s.org_id = k.org_id and s.job_id = k.job_id limit 1) s on true

-- name: read_after
-- Purpose: the events of a job after a known one, in order. Index: the primary key.
select * from duly.job_events
where org_id = %(org_id)s and job_id = %(job_id)s and event_seq > %(after_seq)s
order by event_seq limit %(limit)s

-- name: read_last
-- Purpose: the last events of a job, the newest first. Index: the primary key, backwards.
select * from duly.job_events
where org_id = %(org_id)s and job_id = %(job_id)s
order by event_seq desc limit %(limit)s
